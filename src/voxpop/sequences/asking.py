"""Questions to a model of contexts, each answer with an interval: post-processing, so no question costs budget.

Answers come from drawn sessions of the model. Intervals come from models whose counts are drawn anew from what they may
have been, given the released ones (`settle` with draws): noise, and what it hides, widen them. **What they leave out**
is that people remember more than the longest context that is counted: no release can say how much that is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from voxpop.arrays import Floats, Int32s, Int64s, Uint64s
from voxpop.errors import InputError
from voxpop.kernels.sessions import count_reaching
from voxpop.privacy.secret import Secret
from voxpop.sequences.context_sampling import ContextSampler
from voxpop.sequences.context_tree import ContextTree

if TYPE_CHECKING:
    import polars as pl

MODELS = 40
SESSIONS = 200_000
SESSIONS_EACH = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Sessions:
    """Drawn sessions: int32 symbols, one behind the other, and int64 starts (sessions + 1)."""

    symbols: Int32s
    starts: Int64s

    @property
    def size(self) -> int:
        """How many."""
        return int(self.starts.size - 1)

    @staticmethod
    def of(sampler: ContextSampler, seeds: Uint64s) -> "Sessions":
        """Draw sessions; the same ones whenever chances are the same."""
        symbols, sizes = sampler.draw(seeds)
        return Sessions(symbols, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


Answer = Callable[[ContextSampler, Sessions], Floats]


class Asking:
    """A model made ready for questions: its sessions, and those of models that it may have been."""

    def __init__(self, tree: ContextTree, sampler: ContextSampler, alphabet: tuple[str, ...], max_length: int) -> None:
        """Keep what questions are about; sessions are drawn at the first."""
        self._tree, self._sampler, self._alphabet, self._longest = tree, sampler, alphabet, max_length

    @cached_property
    def _seeds(self) -> Uint64s:
        numbers = np.arange(max(SESSIONS, SESSIONS_EACH), dtype=np.uint64)
        return Secret.from_seed(0).draws("sequences/asking", numbers, 0)[:, 0]

    @cached_property
    def _sessions(self) -> Sessions:
        return Sessions.of(self._sampler, self._seeds[:SESSIONS])

    @cached_property
    def _others(self) -> list[tuple[ContextSampler, Sessions]]:
        # What the true counts may have been, drawn anew for each model; public seeds, as the counts are public.
        redraws = (Secret.from_seed(number) for number in range(MODELS))
        samplers = [ContextSampler.of(self._tree, self._longest, redraw) for redraw in redraws]
        seeds = self._seeds[:SESSIONS_EACH]
        return [(sampler, Sessions.of(sampler, seeds)) for sampler in samplers]

    def following(self, prefix: list[int], level: float) -> "pl.DataFrame":
        """Return what comes next; see `SequenceModel.following`."""
        return self._frame(lambda sampler, _: sampler.chances(prefix), level, [*self._alphabet, None]).sort(
            "share", descending=True, maintain_order=True
        )

    def starting(self, level: float) -> "pl.DataFrame":
        """Return what sessions begin with; see `SequenceModel.starting`."""
        return self.following([], level).filter(_is_symbol())

    def ending(self, level: float) -> "pl.DataFrame":
        """Return what sessions end with; see `SequenceModel.ending`."""
        size = len(self._alphabet)

        def ends(_: ContextSampler, sessions: Sessions) -> Floats:
            return np.bincount(sessions.symbols[sessions.starts[1:] - 1], minlength=size) / sessions.size

        return self._frame(ends, level, list(self._alphabet)).sort("share", descending=True, maintain_order=True)

    def lengths(self, level: float) -> "pl.DataFrame":
        """Return how long sessions are; see `SequenceModel.lengths`."""
        import polars as pl

        def shares(_: ContextSampler, sessions: Sessions) -> Floats:
            return np.bincount(np.diff(sessions.starts), minlength=self._longest + 1)[1:] / sessions.size

        found = self._frame(shares, level, [None] * self._longest).drop("symbol")
        return found.select(pl.Series("length", np.arange(1, self._longest + 1)), pl.all())

    def transitions(self, level: float) -> "pl.DataFrame":
        """Return what follows each symbol, wherever it stands; see `SequenceModel.transitions`."""
        import polars as pl

        width = len(self._alphabet) + 1
        answer = partial(_followers, longest=self._longest, number=np.arange(width), rows=width - 1)
        found = self._frame(answer, level, [*self._alphabet, None] * (width - 1))
        return found.select(pl.Series("from", np.repeat(self._alphabet, width), pl.String), pl.all())

    def transitions_among(self, symbols: list[int], level: float) -> tuple[Floats, Floats, Floats]:
        """Return what follows some symbols: share, low and high, float64 (symbols, symbols + 2).

        The last columns are all other symbols together, and the end.
        """
        rows = len(symbols)
        number = np.full(len(self._alphabet) + 1, rows)
        number[symbols], number[-1] = np.arange(rows), rows + 1
        answer = partial(_followers, longest=self._longest, number=number, rows=rows)
        found = self._frame(answer, level, [None] * (rows * (rows + 2)))
        share, low, high = (found[name].to_numpy().reshape(rows, rows + 2) for name in ("share", "low", "high"))
        return share, low, high

    def commonest(self, number: int) -> list[int]:
        """Return the symbols that stand in sessions most often."""
        counts = np.bincount(self._sessions.symbols, minlength=len(self._alphabet))
        return [int(symbol) for symbol in np.argsort(-counts, kind="stable")[:number]]

    def paths(self, length: int, number: int, level: float) -> "pl.DataFrame":
        """Return the runs that most sessions contain; see `SequenceModel.paths`."""
        import polars as pl

        runs = _commonest(self._sessions, length, number, len(self._alphabet))
        found = self._frame(
            lambda _, sessions: _containing(sessions, runs, len(self._alphabet)), level, [None] * len(runs)
        )
        names = pl.Series("path", [[self._alphabet[symbol] for symbol in run] for run in runs], pl.List(pl.String))
        return found.drop("symbol").select(names, pl.all())

    def funnel(self, steps: list[int], within: int, level: float) -> "pl.DataFrame":
        """Return the share of sessions that get as far as each step; see `SequenceModel.funnel`."""
        import polars as pl

        wanted = np.array(steps, np.int32)

        def shares(_: ContextSampler, sessions: Sessions) -> Floats:
            return count_reaching(sessions.symbols, sessions.starts, wanted, within) / sessions.size

        found = self._frame(shares, level, [self._alphabet[step] for step in steps])
        return found.rename({"symbol": "step"}).with_columns(pl.col("step").cast(pl.String))

    def _frame(self, answer: Answer, level: float, symbols: Sequence[str | None]) -> "pl.DataFrame":
        """Return an answer with its intervals: as wide as the models that there may have been differ."""
        import polars as pl

        if isinstance(level, bool) or not 0.5 <= level < 1:
            raise InputError(f"`level` must lie between 0.5 and 1, got {level!r}: the share of intervals that hold.")
        share = answer(self._sampler, self._sessions)
        # (models, values): the same question to each model that there may have been.
        every = np.stack([answer(sampler, sessions) for sampler, sessions in self._others])
        centre = every.mean(axis=0)
        # Spread of the models, and how far the answer lies from their mean: shrinking pulls both ways.
        error = np.sqrt(((every - centre) ** 2).sum(axis=0) / (MODELS - 1) + (share - centre) ** 2)
        reach = _reach(level) * error
        low, high = np.clip(share - reach, 0.0, 1.0), np.clip(share + reach, 0.0, 1.0)
        columns = {"share": share, "error": error, "low": low, "high": high}
        return pl.DataFrame({"symbol": pl.Series(symbols, dtype=pl.String), **columns})


def _followers(_: ContextSampler, sessions: Sessions, *, longest: int, number: Int64s, rows: int) -> Floats:
    """Return what share of each symbol's followers each is, row by row; what cuts a session off is no follower.

    Args:
        sessions: drawn.
        longest: most symbols of one.
        number: int64 by symbol and, last, the end: its column, which is its row as well where it has one.
        rows: of the table.
    """
    width = int(number.max()) + 1
    after = np.append(sessions.symbols[1:], number.size - 1)
    # Behind each session stands its end, not the next session.
    last = sessions.starts[1:] - 1
    after[last] = number.size - 1
    pairs = number[sessions.symbols] * width + number[after]
    # What follows the last symbol of a session of the greatest length is not known: no end was counted.
    cut = pairs[last[np.diff(sessions.starts) == longest]]
    table = np.bincount(pairs, minlength=width**2) - np.bincount(cut, minlength=width**2)
    # Symbols without a row of their own are in the rows behind.
    table = table.reshape(width, width)[:rows]
    found: Floats = (table / np.maximum(table.sum(axis=1, keepdims=True), 1)).ravel()
    return found


def _is_symbol() -> "pl.Expr":
    import polars as pl

    return pl.col("symbol").is_not_null()


def _reach(level: float) -> float:
    """Return how many errors an interval reaches: Student's t, for the errors are of so many models only."""
    from scipy.special import stdtrit  # scipy.stats takes a tenth of the least limit of memory

    # The spread is an estimate of its own, with MODELS - 1 degrees of freedom.
    return float(stdtrit(MODELS - 1, (1.0 + level) / 2.0))


def _runs(sessions: Sessions, length: int, size: int) -> tuple[Int64s, Int64s]:
    """Return every run of a length as one number, with the number of its session, in their order."""
    if size**length * max(sessions.size, 1) > 2**62:
        raise InputError("so many symbols have too many runs of this length; ask for shorter ones.")
    owner = np.repeat(np.arange(sessions.size), np.diff(sessions.starts))
    symbols = sessions.symbols.astype(np.int64)
    first = np.arange(max(symbols.size - length + 1, 0))
    first = first[owner[first] == owner[first + length - 1]]
    # (runs,): the run as a number whose digits are its symbols.
    codes = np.zeros(first.size, np.int64)
    for place in range(length):
        codes = codes * size + symbols[first + place]
    return codes, owner[first]


def _sorted_once(numbers: Int64s) -> Int64s:
    """Return distinct numbers, rising; sorting takes a fraction of the time of a hash table here."""
    rising = np.sort(numbers)
    once: Int64s = rising[np.append(True, rising[1:] != rising[:-1])[: rising.size]]
    return once


def _commonest(sessions: Sessions, length: int, number: int, size: int) -> list[tuple[int, ...]]:
    codes, owners = _runs(sessions, length, size)
    kinds = size**length
    held = np.sort(_sorted_once(owners * kinds + codes) % kinds)  # each run once for each session that contains it
    distinct = _sorted_once(held)
    counts = np.diff(np.append(np.searchsorted(held, distinct), held.size))
    top = distinct[np.argsort(-counts, kind="stable")[:number]]
    columns = [(top // size ** (length - 1 - place)) % size for place in range(length)]
    return [tuple(int(symbol) for symbol in run) for run in zip(*columns, strict=True)]


def _containing(sessions: Sessions, runs: list[tuple[int, ...]], size: int) -> Floats:
    """Return the share of sessions that contain each run."""
    if not runs:
        return np.empty(0)
    codes, owners = _runs(sessions, len(runs[0]), size)
    wanted = np.array(
        [sum(symbol * size ** (len(run) - 1 - place) for place, symbol in enumerate(run)) for run in runs]
    )
    order = np.argsort(wanted)
    at = np.minimum(np.searchsorted(wanted[order], codes), wanted.size - 1)
    hits = wanted[order][at] == codes
    found = _sorted_once(owners[hits] * wanted.size + at[hits]) % wanted.size
    shares = np.empty(wanted.size)
    shares[order] = np.bincount(found, minlength=wanted.size) / sessions.size
    return shares
