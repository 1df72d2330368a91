"""Queries to a model, each answer with an interval: post-processing, so no query costs budget.

Answers are computed from drawn sessions of the model. Intervals are computed from bootstrap models, whose true counts
are drawn from their distribution given the released counts (`smooth` with `bootstrap`), so they contain the noise and
its effects. **The intervals do not contain the error of the model**: users remember more than the longest counted
context, and a release cannot show the effect.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from voxpop.errors import InputError
from voxpop.kernels.arrays import Floats, Int32s, Int64s, Uint64s
from voxpop.kernels.sequences import count_reaching
from voxpop.mechanisms.sequences.sampling import ContextSampler
from voxpop.privacy.secret import Secret

if TYPE_CHECKING:
    import polars as pl

MODELS = 40
"""Number of bootstrap models."""
SESSIONS = 200_000
SESSIONS_EACH = 20_000
"""Sessions drawn from each bootstrap model."""
MOST_ROWS = 1_100_000
"""Maximum number of rows of a table of transitions."""


@dataclass(frozen=True, slots=True, eq=False)
class Sessions:
    """Drawn sessions: int32 symbols, one behind the other, and int64 starts (sessions + 1)."""

    symbols: Int32s
    starts: Int64s

    @property
    def size(self) -> int:
        """Number of sessions."""
        return int(self.starts.size - 1)

    @staticmethod
    def of(sampler: ContextSampler, seeds: Uint64s) -> "Sessions":
        """Draw sessions, which are a function of the seeds and the probabilities."""
        symbols, sizes = sampler.draw(seeds)
        return Sessions(symbols, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


Answer = Callable[[ContextSampler, Sessions], Floats]


class Queries:
    """The sessions of a model and of its bootstrap models, drawn at the first query."""

    def __init__(self, sampler: ContextSampler, alphabet: tuple[str, ...]) -> None:
        self._sampler, self._alphabet, self._longest = sampler, alphabet, sampler.max_length

    @cached_property
    def _seeds(self) -> Uint64s:
        numbers = np.arange(max(SESSIONS, SESSIONS_EACH), dtype=np.uint64)
        return Secret.from_seed(0).draws("sequences/asking", numbers, 0)[:, 0]

    @cached_property
    def _sessions(self) -> Sessions:
        return Sessions.of(self._sampler, self._seeds[:SESSIONS])

    @cached_property
    def _others(self) -> list[tuple[ContextSampler, Sessions]]:
        # Public seeds, because the released counts are public.
        secrets = (Secret.from_seed(number) for number in range(MODELS))
        samplers = [ContextSampler.of(self._sampler.tree, self._longest, bootstrap) for bootstrap in secrets]
        seeds = self._seeds[:SESSIONS_EACH]
        return [(sampler, Sessions.of(sampler, seeds)) for sampler in samplers]

    def next(self, prefix: list[int], level: float) -> "pl.DataFrame":
        """Return the next symbols, with intervals; see `SequenceModel.next`."""
        return self._frame(lambda sampler, _: sampler.chances(prefix), level, [*self._alphabet, None]).sort(
            "share", descending=True, maintain_order=True
        )

    def starting(self, level: float) -> "pl.DataFrame":
        """Return the first symbols of sessions; see `SequenceModel.starting`."""
        return self.next([], level).filter(_is_symbol())

    def ending(self, level: float) -> "pl.DataFrame":
        """Return the last symbols of sessions; see `SequenceModel.ending`."""
        size = len(self._alphabet)

        def ends(_: ContextSampler, sessions: Sessions) -> Floats:
            return np.bincount(sessions.symbols[sessions.starts[1:] - 1], minlength=size) / sessions.size

        return self._frame(ends, level, list(self._alphabet)).sort("share", descending=True, maintain_order=True)

    def lengths(self, level: float) -> "pl.DataFrame":
        """Return the lengths of sessions; see `SequenceModel.lengths`."""
        import polars as pl

        def shares(_: ContextSampler, sessions: Sessions) -> Floats:
            return np.bincount(np.diff(sessions.starts), minlength=self._longest + 1)[1:] / sessions.size

        found = self._frame(shares, level, [None] * self._longest).drop("symbol")
        return found.select(pl.Series("length", np.arange(1, self._longest + 1)), pl.all())

    def transitions(self, level: float) -> "pl.DataFrame":
        """Return the followers of each symbol; see `SequenceModel.transitions`."""
        import polars as pl

        width = len(self._alphabet) + 1
        if width * (width - 1) > MOST_ROWS:
            raise InputError(
                f"the transitions among {width - 1:,} symbols have more than {MOST_ROWS:,} rows. "
                "Use `next([symbol])` for single symbols."
            )
        answer = partial(_followers, longest=self._longest, number=np.arange(width), rows=width - 1)
        found = self._frame(answer, level, [*self._alphabet, None] * (width - 1))
        return found.select(pl.Series("from", np.repeat(self._alphabet, width), pl.String), pl.all())

    def transitions_among(self, symbols: list[int], level: float) -> tuple[Floats, Floats, Floats]:
        """Return the followers of some symbols: share, low and high, float64 (symbols, symbols + 2).

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
        """Return the most frequent symbols of the sessions."""
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
        """Return the share of sessions that reach each step; see `SequenceModel.funnel`."""
        import polars as pl

        wanted = np.array(steps, np.int32)

        def shares(_: ContextSampler, sessions: Sessions) -> Floats:
            return count_reaching(sessions.symbols, sessions.starts, wanted, within) / sessions.size

        found = self._frame(shares, level, [self._alphabet[step] for step in steps])
        return found.rename({"symbol": "step"}).with_columns(pl.col("step").cast(pl.String))

    def _frame(self, answer: Answer, level: float, symbols: Sequence[str | None]) -> "pl.DataFrame":
        """Return an answer with its intervals, from the spread of the bootstrap models."""
        import polars as pl

        if isinstance(level, bool) or not 0.5 <= level < 1:
            raise InputError(f"`level` must be at least 0.5 and below 1, got {level!r}: the share of correct answers.")
        share = answer(self._sampler, self._sessions)
        # (models, values): the same query to each bootstrap model.
        every = np.stack([answer(sampler, sessions) for sampler, sessions in self._others])
        centre = every.mean(axis=0)
        # The spread of the models, and the distance of the answer from their mean, because shrinking pulls both ways.
        error = np.sqrt(((every - centre) ** 2).sum(axis=0) / (MODELS - 1) + (share - centre) ** 2)
        reach = _reach(level) * error
        low, high = np.clip(share - reach, 0.0, 1.0), np.clip(share + reach, 0.0, 1.0)
        columns = {"share": share, "error": error, "low": low, "high": high}
        return pl.DataFrame({"symbol": pl.Series(symbols, dtype=pl.String), **columns})


def _followers(_: ContextSampler, sessions: Sessions, *, longest: int, number: Int64s, rows: int) -> Floats:
    """Return the shares of the followers of each symbol, row by row; the cut of a session is not a follower.

    Args:
        sessions: drawn.
        longest: most symbols of one.
        number: int64 by symbol and, last, the end: its column, and its row if it has one.
        rows: of the table.
    """
    width = int(number.max()) + 1
    after = np.append(sessions.symbols[1:], number.size - 1)
    # Each session is followed by its end, not by the next session.
    last = sessions.starts[1:] - 1
    after[last] = number.size - 1
    pairs = number[sessions.symbols] * width + number[after]
    # The follower of the last symbol of a session of the maximum length is unknown: no end was counted.
    cut = pairs[last[np.diff(sessions.starts) == longest]]
    table = np.bincount(pairs, minlength=width**2) - np.bincount(cut, minlength=width**2)
    # Symbols without rows are in the last rows.
    table = table.reshape(width, width)[:rows]
    found: Floats = (table / np.maximum(table.sum(axis=1, keepdims=True), 1)).ravel()
    return found


def _is_symbol() -> "pl.Expr":
    import polars as pl

    return pl.col("symbol").is_not_null()


def _reach(level: float) -> float:
    """Return the number of standard errors to the ends of an interval: Student's t."""
    from scipy.special import stdtrit  # scipy.stats takes a tenth of the least limit of memory

    # The spread is estimated with MODELS - 1 degrees of freedom.
    return float(stdtrit(MODELS - 1, (1.0 + level) / 2.0))


def _runs(sessions: Sessions, length: int, size: int) -> tuple[Int64s, Int64s]:
    """Return every run of a length as one number, with the number of its session, in their order."""
    if size**length * max(sessions.size, 1) > 2**62:
        raise InputError("the alphabet has too many possible runs of this length. Use a smaller `length`.")
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
