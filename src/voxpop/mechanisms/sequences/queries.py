"""Queries of a model, with an interval for each answer. Queries are post-processing, so they cost no budget.

Answers are computed from drawn sessions of the model. Intervals combine two errors. The error of the noise is the
spread of bootstrap models, whose true counts are drawn from the distribution given the released counts (`smooth` with
`bootstrap`). The error of the model is the distance to the answers of simpler models. The behaviour of users can depend
on more than the counted contexts, and a release cannot show the effect of a longer memory. However, a release shows the
effect of the last counted symbol, which is an estimate of the effect of one more symbol. The effects of copies and of
lengths within a class are estimated in the same way.

Sequences are drawn, scored and continued with the probabilities of the next symbol after each context.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit  # scipy.stats takes a tenth of the smallest memory limit

from voxpop.errors import InputError
from voxpop.kernels.arrays import Floats, Int32s, Int64s, Uint64s
from voxpop.kernels.sequences import count_reaching
from voxpop.kernels.threads import require_polars
from voxpop.mechanisms.sequences.constants import NEVER
from voxpop.mechanisms.sequences.context_tree import (
    ContextTree,
    Smoothed,
    lists_of_symbols,
    plain_starts,
    shortened,
    smooth,
)
from voxpop.mechanisms.sequences.drawing import Sessions, draw_sessions
from voxpop.mechanisms.sequences.profile import Fitted, StepProfile, even_lengths, fitted, plain_lengths
from voxpop.privacy.budget import check_whole
from voxpop.privacy.secret import Secret, Source

if TYPE_CHECKING:
    import polars as pl

_SESSIONS_AT_ONCE = 1 << 18
_MOST_DRAWN = 10**9


@dataclass(frozen=True, eq=False)
class ContextSampler:
    """Probabilities that are prepared for drawing.

    Attributes:
        tree: The public tree.
        smoothed: The estimates of the tree's nodes.
        sums: float64 (nodes, width), the cumulative probabilities.
        fit: The numbers that make drawn sequences agree with the profile.
    """

    tree: ContextTree
    smoothed: Smoothed
    sums: Floats
    fit: Fitted

    @staticmethod
    def of(tree: ContextTree, profile: StepProfile, bootstrap: Source | None = None) -> "ContextSampler":
        """Return the sampler of a released tree, or of a bootstrap sample of its counts."""
        smoothed = smooth(tree, bootstrap)
        sums = np.cumsum(smoothed.chances, axis=1)
        # Shape (nodes, width). The last sum of each node is exactly 1, despite rounding.
        sums /= sums[:, -1:]
        return ContextSampler(tree, smoothed, sums, fitted(tree, profile, smoothed, sums, bootstrap))

    def simpler(self, profile: StepProfile, kept: int) -> "list[ContextSampler]":
        """Return the sampler with shorter contexts (see `shortened`), and the sampler without copies."""
        smoothed = shortened(self.tree, self.smoothed, kept)
        sums = np.cumsum(smoothed.chances, axis=1)
        sums /= sums[:, -1:]
        shorter = replace(self, smoothed=smoothed, sums=sums, fit=fitted(self.tree, profile, smoothed, sums, None))
        return [shorter, replace(self, fit=replace(self.fit, novelty=NEVER, repeats=0.0))]

    def draw(self, seeds: Uint64s) -> Sessions:
        """Draw one sequence per seed. The result is a function of all seeds and the probabilities."""
        return draw_sessions(self.tree, self.sums, self.fit, seeds)

    def chances(self, prefix: list[int]) -> Floats:
        """Return the probability that each symbol, or the end, follows a prefix of a sequence."""
        width = self.tree.width
        if len(prefix) >= self.tree.max_length:
            # After max_length symbols, only the end can follow.
            return np.bincount([width - 1], minlength=width).astype(np.float64)
        length = len(prefix)
        # Find the node of the context at each position up to the end of the prefix.
        rows = np.tile(np.array(prefix, np.int32), (length + 1, 1))
        nodes = self.tree.find(rows, np.arange(length + 1), np.ones(length + 1, np.bool_))
        *symbols, end = self.smoothed.chances[nodes[-1]]
        stay = 1.0 - end
        # float64 by earlier position, the probability of a copy (see `draw_sessions`), or 0 if the context differs.
        places = max(length - int(nodes[-1] == 0), 0)
        urn = np.where(np.arange(length) < places, (1.0 - self.fit.repeats) / (self.fit.novelty + places), 0.0)
        urn[length - 1 :] += self.fit.repeats
        urn[nodes[:-1] != nodes[-1]] = 0.0
        copied = np.bincount(np.array(prefix, np.int64), urn, minlength=width - 1)
        odds = end * self.fit.ends[length]
        found: Floats = np.append(copied * stay + (1.0 - urn.sum()) * np.array(symbols), odds) / (stay + odds)
        return found

    def probability(self, sequence: list[int]) -> float:
        """Return the probability that a draw is this sequence. -1 represents a symbol outside the alphabet."""
        if not sequence or -1 in sequence or len(sequence) > self.tree.max_length:
            return 0.0
        # Compute the probability of each symbol after the preceding symbols, and of the end (the last column) after all
        # symbols.
        steps = enumerate([*sequence, -1])
        return float(np.prod([self.chances(sequence[:place])[symbol] for place, symbol in steps]))


def sample_frame(alphabet: tuple[str, ...], sampler: ContextSampler, n: int, seed: int | None) -> "pl.DataFrame":
    """Draw sequences as a table; see `SequenceModel.sample`."""
    import polars as pl

    require_polars()
    check_whole("n", n, _MOST_DRAWN, "the number of sequences to draw")
    check_released(sampler.tree)
    secret = Secret.of(seed)
    pieces = []
    for start in range(0, n, _SESSIONS_AT_ONCE):
        numbers = np.arange(start, min(n, start + _SESSIONS_AT_ONCE), dtype=np.uint64)
        drawn = sampler.draw(secret.draws("sequences/synthetic", numbers, 0)[:, 0])
        pieces.append(lists_of_symbols(alphabet, drawn.symbols, drawn.sizes))
    return pl.DataFrame({"user": np.arange(n), "sequence": pl.concat(pieces)})


def check_released(tree: ContextTree) -> None:
    """Raise an error if the tree has no counts above 0."""
    if not (tree.counts > 0).any():
        raise InputError(
            "the model has no counts above 0, so there is nothing to draw from. "
            "Use a larger epsilon, a smaller alphabet or a smaller max_length for less noise."
        )


MODELS = 40
"""The number of bootstrap models."""
SESSIONS = 200_000
SESSIONS_EACH = 20_000
"""The number of sessions drawn from each bootstrap model."""


SamplerQuery = Callable[[ContextSampler, Sessions], Floats]


class Queries:
    """The sessions of a model and of its bootstrap models, which are drawn at the first query."""

    def __init__(self, sampler: ContextSampler, profile: StepProfile) -> None:
        self._sampler, self._profile = sampler, profile
        self._simpler: dict[int, list[tuple[ContextSampler, Sessions]]] = {}

    @cached_property
    def _seeds(self) -> Uint64s:
        numbers = np.arange(max(SESSIONS, SESSIONS_EACH), dtype=np.uint64)
        return Secret.from_seed(0).draws("sequences/asking", numbers, 0)[:, 0]

    @cached_property
    def sessions(self) -> Sessions:
        """The sessions of the model."""
        return self._sampler.draw(self._seeds[:SESSIONS])

    @cached_property
    def _others(self) -> list[tuple[ContextSampler, Sessions]]:
        # The seeds may be public, because the released counts are public.
        secrets = (Secret.from_seed(number) for number in range(MODELS))
        return self._drawn([ContextSampler.of(self._sampler.tree, self._profile, bootstrap) for bootstrap in secrets])

    def _simpler_models(self, kept: int) -> list[tuple[ContextSampler, Sessions]]:
        if kept not in self._simpler:
            self._simpler[kept] = self._drawn(self._sampler.simpler(self._profile, kept))
        return self._simpler[kept]

    def _drawn(self, samplers: list[ContextSampler]) -> list[tuple[ContextSampler, Sessions]]:
        return [(sampler, sampler.draw(self._seeds[:SESSIONS_EACH])) for sampler in samplers]

    def following(self, prefix: list[int], level: float, **labels: Any) -> "pl.DataFrame":
        """Return the probabilities after a prefix; see `answer`."""
        tree = self._sampler.tree
        counted = [] if prefix else plain_starts(tree)
        length = len(prefix)
        (node,) = tree.find(np.array([prefix], np.int32).reshape(1, length), np.array([length]), np.ones(1, np.bool_))
        # A context that includes the beginning contains the whole prefix, so it is not shortened.
        kept = int(tree.depths[node]) if tree.begun[node] else 0
        return self.answer(lambda sampler, _: sampler.chances(prefix), level, counted, kept, **labels)

    def lengths(self, level: float, **labels: Any) -> "pl.DataFrame":
        """Return the shares of lengths; see `answer`."""
        # Bootstrap models are also shrunk, so all of them give a share above 0 to a length without users. Therefore the
        # answer is also compared with unadjusted and even shares.
        fit = self._sampler.fit
        return self.answer(lengths, level, (plain_lengths(self._profile, fit), even_lengths(fit)), **labels)

    def transitions(self, number: Int64s, rows: int, level: float, **labels: Any) -> "pl.DataFrame":
        """Return the followers of symbols; see `followers` and `answer`."""
        # Contexts of one symbol are not shortened, because the followers of each symbol are counted.
        return self.answer(partial(followers, number=number, rows=rows), level, kept=1, **labels)

    def answer(
        self, answer: SamplerQuery, level: float, others: Iterable[Floats] = (), kept: int = 0, **labels: Any
    ) -> "pl.DataFrame":
        """Return the columns of labels, followed by an answer with intervals that are computed from the other models.

        Args:
            answer: The query.
            level: The nominal share of intervals that are correct.
            others: Other answers from released numbers. The distances of these answers from the model's answer are
                added to the error.
            kept: The maximum length of contexts that the simpler model does not shorten.
            labels: The columns before the answer.
        """
        import polars as pl

        require_polars()
        if isinstance(level, bool) or not 0.5 <= level < 1:
            raise InputError(
                "`level` is the probability that an interval contains the correct answer. It must be at least 0.5 and "
                f"below 1, got {level!r}."
            )
        share = answer(self._sampler, self.sessions)
        # Shape (models, values), the answers of each bootstrap model to the same query.
        every = np.stack([answer(sampler, sessions) for sampler, sessions in self._others])
        centre = every.mean(axis=0)
        # Use the spread of the models, and also the distance of the answer from their mean, because shrinking biases
        # both.
        error = np.sqrt(((every - centre) ** 2).sum(axis=0) / (MODELS - 1) + (share - centre) ** 2)
        simpler = [answer(sampler, sessions) for sampler, sessions in self._simpler_models(kept)]
        for possible in (*simpler, *others):
            error = np.hypot(error, share - possible)
        # Use Student's t distribution, because the spread is estimated with MODELS - 1 degrees of freedom.
        reach = float(stdtrit(MODELS - 1, (1.0 + level) / 2.0)) * error
        low, high = np.clip(share - reach, 0.0, 1.0), np.clip(share + reach, 0.0, 1.0)
        return pl.DataFrame({**labels, "share": share, "error": error, "low": low, "high": high})

    def transitions_among(self, symbols: list[int], level: float) -> tuple[Floats, Floats, Floats]:
        """Return the share, low and high of the followers of some symbols, each as float64 (symbols, symbols + 2).

        The last two columns are for all other symbols together, and for the end.
        """
        rows = len(symbols)
        number = np.full(self._sampler.tree.width, rows)
        number[symbols], number[-1] = np.arange(rows), rows + 1
        found = self.transitions(number, rows, level)
        share, low, high = (found[name].to_numpy().reshape(rows, rows + 2) for name in ("share", "low", "high"))
        return share, low, high


def last_symbols(sampler: ContextSampler, sessions: Sessions) -> Floats:
    """Return the share of sessions that end with each symbol."""
    return np.bincount(sessions.symbols[sessions.starts[1:] - 1], minlength=sampler.tree.width - 1) / sessions.size


def lengths(sampler: ContextSampler, _: Sessions) -> Floats:
    """Return the estimated share of sequences of each length from 1 to the maximum.

    Drawn sessions would add an error, because contexts that nearly determine an end cannot be fitted to every length.
    """
    return sampler.fit.lengths


def followers(sampler: ContextSampler, sessions: Sessions, *, number: Int64s, rows: int) -> Floats:
    """Return the shares of the followers of each symbol, row by row.

    The truncation of a session does not count as a follower.

    Args:
        sampler: The sampler of the model.
        sessions: The drawn sessions.
        number: int64 by symbol, with the end last, the column of each symbol, which is also its row if it has a row.
        rows: The number of rows of the table.
    """
    width = int(number.max()) + 1
    after = np.append(sessions.symbols[1:], number.size - 1)
    # Each session is followed by its end and not by the next session.
    last = sessions.starts[1:] - 1
    after[last] = number.size - 1
    pairs = number[sessions.symbols] * width + number[after]
    # The follower of the last symbol of a session of the maximum length is unknown, because no end was counted.
    cut = pairs[last[sessions.sizes == sampler.tree.max_length]]
    table = np.bincount(pairs, minlength=width**2) - np.bincount(cut, minlength=width**2)
    # Remove the last rows, because their symbols have no row in the result.
    table = table.reshape(width, width)[:rows]
    found: Floats = (table / np.maximum(table.sum(axis=1, keepdims=True), 1)).ravel()
    return found


def reaching(_: ContextSampler, sessions: Sessions, *, steps: Int32s, within: int) -> Floats:
    """Return the share of sessions that reach each step of a funnel."""
    return count_reaching(sessions.symbols, sessions.starts, steps, within) / sessions.size


def commonest_runs(sessions: Sessions, length: int, number: int, size: int) -> list[tuple[int, ...]]:
    """Return the runs of this length that occur in the most sessions."""
    counts = runs_of(sessions, length, size).group_by("run").len()
    top = counts.sort("len", "run", descending=[True, False])["run"].head(number).to_numpy()
    columns = [(top // size ** (length - 1 - place)) % size for place in range(length)]
    return [tuple(int(symbol) for symbol in run) for run in zip(*columns, strict=True)]


def containing(sessions: Sessions, runs: list[tuple[int, ...]], size: int) -> Floats:
    """Return the share of sessions that contain each run."""
    import polars as pl

    require_polars()
    if not runs:
        return np.empty(0)
    wanted = [_number(run, size) for run in runs]
    held = runs_of(sessions, len(runs[0]), size).filter(pl.col("run").is_in(wanted)).group_by("run").len()
    counts = dict(held.iter_rows())
    return np.array([counts.get(run, 0) for run in wanted]) / sessions.size


def runs_of(sessions: Sessions, length: int, size: int) -> "pl.DataFrame":
    """Return every run of this length as a number, once for each session that contains the run."""
    import polars as pl

    require_polars()
    if size**length > 2**62:
        raise InputError("the alphabet has too many possible runs of this length. Use a smaller `length`.")
    owner = np.repeat(np.arange(sessions.size), sessions.sizes)
    symbols = sessions.symbols.astype(np.int64)
    first = np.arange(max(symbols.size - length + 1, 0))
    first = first[owner[first] == owner[first + length - 1]]
    runs = _number((symbols[first + place] for place in range(length)), size)
    return pl.DataFrame({"session": owner[first], "run": runs}).unique()


def _number(run: Iterable[Any], size: int) -> Any:
    """Return a run as a number with one digit per symbol."""
    return reduce(lambda number, symbol: number * size + symbol, run, 0)
