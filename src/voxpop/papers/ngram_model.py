"""The variable-length n-gram model of Chen, Acs and Castelluccia (CCS 2012, "CAC12"), as published.

"Differentially Private Sequential Data Publication via Variable-Length N-Grams", Algorithm 1 (the exploration tree),
4.3.2 (adaptive budgets), 4.3.3 (threshold), 4.3.4 (consistency constraints) and 4.3.5 (synthetic sequences). The paper
protects one record. Here each user has one record, which is drawn from the user's sequences. docs/privacy/sequences.md
has the proof and the errata. `benchmarks.papers.sequences_msnbc` recomputes the numbers of the paper's tables.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import floor, log
from typing import TYPE_CHECKING, Any, NamedTuple, cast, final

import numpy as np

from voxpop.engine.contract import check_engine, check_ordered
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.errors import InputError, InternalError
from voxpop.kernels.arrays import Floats, Int32s, Int64s
from voxpop.kernels.threads import require_polars
from voxpop.mechanisms.sequences.context_tree import lists_of_symbols
from voxpop.mechanisms.sequences.mechanism import LONGEST_GRAM, LONGEST_SEQUENCE, public_alphabet
from voxpop.mechanisms.sequences.plan import check_epsilon
from voxpop.papers.gram_tree import Level, Tree, gram_symbols, grow_tree, plant, synthetic_sequences
from voxpop.privacy.budget import Budget, check_budget, check_whole
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.passes import Claim, PathsProof
from voxpop.privacy.path_budget import Limits, PathBudget
from voxpop.privacy.planned import GateCall, Mechanism, Planned, certified, run_passes, with_record

if TYPE_CHECKING:
    import polars as pl

    from voxpop.engine.data import Corpus
    from voxpop.privacy.gate.trees import PathsGate
    from voxpop.release.release import Release

MOST_MODEL_SYMBOLS = 10_000
"""The maximum size of the alphabet, because every node of the last level releases a count for every symbol."""
SMALLEST_ALPHABET = 3
"""The minimum alphabet size in the formula of the threshold. Below it, the logarithm of half the size is at most 0, so
the threshold would keep all counts.
"""


@final
@dataclass(frozen=True, slots=True)
class VariableLengthNGrams(Mechanism["Corpus", "GramModel"]):
    """Release the frequent grams of users' sequences with noisy counts (CAC12, Algorithm 1).

    The release is (epsilon, 0)-differentially private for one user added or removed. `voxpop.Sequences` has smaller
    errors at the same budget. This class runs in the memory of one machine.

    Attributes:
        l_max: The maximum length of a sequence, which is the sensitivity. Longer sequences are truncated.
        n_max: The maximum length of a gram, including the end mark.
        alphabet: All symbols that may occur, which are public.

    Raises:
        InputError: If a field is out of range.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> visits = pl.DataFrame({"who": range(3000), "pages": [["home", "news"], ["home"], ["news", "home"]] * 1000})
        >>> corpus = vp.read(visits, user="who", sequence="pages")
        >>> mechanism = vp.papers.VariableLengthNGrams(l_max=4, n_max=3, alphabet=["home", "news", "sport"])
        >>> model = mechanism.release(corpus, vp.Budget(epsilon=2))
        >>> model.synthesize().columns
        ['sequence', 'count']
    """

    l_max: int = 20
    n_max: int = 5
    alphabet: "Iterable[str] | Release" = ()

    def __post_init__(self) -> None:
        """Check every field, and sort the alphabet."""
        check_whole(
            "l_max", self.l_max, LONGEST_SEQUENCE, "the maximum length of a sequence; the paper uses 20 for MSNBC"
        )
        check_whole("n_max", self.n_max, LONGEST_GRAM, "the maximum length of a gram; the paper uses 5")
        alphabet = public_alphabet(self.alphabet)
        if len(alphabet) > MOST_MODEL_SYMBOLS:
            raise InputError(
                f"`alphabet` must have at most {MOST_MODEL_SYMBOLS:,} symbols, got {len(alphabet):,}, because "
                "Algorithm 1 releases a count of every symbol at every last node. Use voxpop.Sequences for larger "
                "alphabets."
            )
        object.__setattr__(self, "alphabet", alphabet)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The alphabet, in the order of its bytes."""
        return cast("tuple[str, ...]", self.alphabet)

    def plan(self, budget: Budget) -> "GramPlan":
        """Compute the noise for a budget, without data.

        Raises:
            BudgetError: If epsilon is too small for the length.
        """
        check_budget(budget)
        check_epsilon(self.l_max, budget.epsilon)
        return certified(GramPlan(self, budget))


@final
@dataclass(frozen=True, slots=True, repr=False)
class GramPlan(Planned[VariableLengthNGrams, "Corpus", "GramModel"]):
    """The plan that `VariableLengthNGrams.plan` returns.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.papers.VariableLengthNGrams(20, 5, alphabet=["a", "b", "c"]).plan(vp.Budget(1))
        >>> plan.scale, round(plan.threshold, 2)
        (100.0, 40.55)
    """

    def _proof(self) -> PathsProof:
        limits = self._limits
        return PathsProof("grams", limits.epsilon, limits.alphabet, limits.max_length, limits.max_gram, None)

    @property
    def _claim(self) -> Claim:
        return Claim(self.budget.epsilon, 0.0)

    @property
    def scale(self) -> float:
        """The scale of the noise on the counts of single symbols."""
        return self._limits.max_length * self._limits.max_gram / float(self._limits.epsilon)

    @property
    def threshold(self) -> float:
        """The noisy count above which a single symbol is extended (4.3.3)."""
        return self.scale * threshold_factor(self._limits.alphabet)

    @property
    def _limits(self) -> Limits:
        mechanism = self.mechanism
        return Limits(Fraction(self.budget.epsilon), len(mechanism.symbols), mechanism.l_max, mechanism.n_max)

    def _run(self, data: "Corpus", seed: int | None) -> "GramModel":
        engine = check_engine(data)
        check_ordered(engine)
        gate, guarantee = self.begin(seed)
        if not isinstance(engine, LocalCorpus):
            raise InputError(
                "VariableLengthNGrams runs in the memory of one machine and the data is on a cluster. "
                "Use voxpop.Sequences, or read the data locally."
            )
        alphabet = self.mechanism.symbols
        gate.open(engine, alphabet)
        return GramModel(alphabet, explore(gate), with_record(self, gate), guarantee)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        limits = self._limits
        # Deeper levels have other scales, which depend on released counts.
        levels = {"levels": limits.max_gram, "sensitivity": limits.max_length}
        return {
            "mechanism": "variable-length n-grams (CAC12)",
            "l_max": limits.max_length,
            "n_max": limits.max_gram,
            "alphabet_size": limits.alphabet,
            "epsilon": self.budget.epsilon,
            "delta": 0.0,
            "passes": [{"pass": "level", **levels, "scale": self.scale, "threshold": self.threshold}],
        }

    def __str__(self) -> str:
        """Return the plan as text."""
        plan = self.to_dict()
        (level,) = plan["passes"]
        return (
            f"CAC12 with l_max {plan['l_max']:,}, n_max {plan['n_max']} and {plan['alphabet_size']:,} symbols\n"
            f"{Guarantee(self.budget.epsilon, 0.0)}; integer Laplace noise\n"
            f"single symbols: scale {level['scale']:.6g}, continued above {level['threshold']:.6g}"
        )


@final
@dataclass(frozen=True, eq=False)
class GramModel:
    """The released grams with noisy counts, and the synthetic sequences that are computed from them. Both are public.

    Attributes:
        alphabet: The symbols, in the order of their bytes.
        tree: The released grams.
        plan: The plan of the release.
        guarantee: The guarantee of the release.
    """

    alphabet: tuple[str, ...]
    tree: Tree
    plan: GramPlan
    guarantee: Guarantee

    def to_polars(self) -> "pl.DataFrame":
        """Return the released grams, in order of length and symbols.

        Returns:
            A table with these columns: gram (list of str); ends, whether the end of the sequence follows; count, the
            noisy integer, or 0 if it is negative; estimate, the count after it is made consistent with shorter grams;
            and scale, the scale of the noise on the count.
        """
        import polars as pl

        require_polars()
        tree, entries = self.tree, self.tree.entries
        nodes, last = np.divmod(entries, tree.width)
        return pl.DataFrame(
            {
                "gram": lists_of_symbols(self.alphabet, *gram_symbols(tree)),
                "ends": last == tree.width - 1,
                "count": tree.counts[nodes, last],
                "estimate": tree.entry_totals()[nodes, last],
                "scale": tree.scales[nodes],
            }
        )

    def synthesize(self) -> "pl.DataFrame":
        """Return the synthetic data set of 4.3.5.

        The longest grams are used first, and each gram is used as often as the counts allow.

        Returns:
            A table with the columns sequence (list of str) and count, longest sequence first. The table is a
            deterministic function of the released counts.
        """
        import polars as pl

        require_polars()
        columns, counts = synthetic_sequences(self.tree, self.plan.mechanism.l_max)
        sizes = (columns >= 0).sum(axis=1)
        return pl.DataFrame(
            {"sequence": lists_of_symbols(self.alphabet, columns[columns >= 0], sizes), "count": counts}
        )

    def __len__(self) -> int:
        """Return the number of released grams."""
        return int(self.tree.entries.size)

    def __repr__(self) -> str:
        return f"GramModel({len(self):,} grams, {self.guarantee})"


def threshold_factor(alphabet: int) -> float:
    """Return the threshold in noise scales. This threshold allows one false child per node on average (4.3.3)."""
    # P(X > T) is about e^(-T r) / 2, so the expected number of false children is 1 at T = ln(alphabet / 2) / r.
    return log(max(alphabet, SMALLEST_ALPHABET) / 2)


class Following(NamedTuple):
    """The nodes of one level, whose children will be counted next.

    Attributes:
        entries: int64, the entry of the tree that each node extends, in increasing order, or -1 for the root.
        rows: int64, the row of each node's gram in the previous level.
        symbols: int64, the last symbol of each node's gram.
        heights: int64, the predicted number of levels below each node, including this level. A node of height 1 spends
            the rest of epsilon.
        parts: The part of the remaining budget on a path that each node of the path spends.
    """

    entries: Int64s
    rows: Int64s
    symbols: Int64s
    heights: Int64s
    parts: list[Fraction]


def least(paths: PathBudget, share: int) -> int:
    """Return the smallest integer above the threshold for a share."""
    return floor(paths.scale(share) * threshold_factor(paths.limits.alphabet)) + 1


def released_children(paths: PathBudget, counted: Following, shares: Int64s, noisy: Int64s, scales: Floats) -> Level:
    """Select the noisy counts that the paper releases from among the noisy counts of all possible children.

    Args:
        paths: The shares of all paths.
        counted: The nodes.
        shares: int64, the index of each node's share among the shares of all paths.
        noisy: int64 (nodes, width), the noisy counts.
        scales: float64 (nodes), the scale of the noise.

    Returns:
        The released children, which are public.
    """
    at_root = bool(counted.entries[0] < 0)
    kept = noisy >= np.array([least(paths, share) for share in shares.tolist()])[:, None]
    # Algorithm 1 keeps all children of the root and of nodes without further levels.
    kept |= (at_root | (counted.heights <= 1))[:, None]
    # The root has no bin for the end mark.
    kept[:, _bins(paths.limits.alphabet + 1, at_root) :] = False
    return Level(counted.entries, scales, np.where(kept, np.maximum(noisy, 0), -1))


def _bins(width: int, at_root: bool) -> int:
    return width - 1 if at_root else width


class _Explored(NamedTuple):
    """The public tree, and the nodes of its last level before and after their children are counted."""

    tree: Tree
    counted: Following
    level: Level
    nodes: Int32s
    depth: int = 1


def explore(gate: "PathsGate") -> Tree:
    """Count and release grams, and continue with grams that are one symbol longer, level by level (Algorithm 1).

    Args:
        gate: The opened gate of the release.

    Returns:
        The public tree, which is (epsilon, 0)-differentially private.
    """
    done = run_passes(None, partial(_next_grams, gate), gate, "lengths")
    if done is None:
        raise InternalError("the passes ended before the root")
    return done.tree


def _next_grams(gate: "PathsGate", state: _Explored | None) -> "GateCall[PathsGate, _Explored | None] | None":
    """Return the pass that counts the next level."""
    paths, most, first = gate.paths, gate.paths.limits.max_gram, gate.numbers.size
    none = np.empty(0, np.int64)
    # The root is one of n_max levels, so it spends 1 / n_max of epsilon.
    following = Following(np.array([-1]), none, none, np.array([most]), [Fraction(1, most)])
    if state is not None:
        # The next grams depend only on released counts, so the whole release is an adaptive composition.
        following = _open_next(paths, state, most - state.depth)
        if state.depth == most or not following.entries.size:
            return None

    def after(released: tuple[Int64s, Floats]) -> _Explored:
        level = released_children(paths, following, gate.numbers[first:], *released)
        if state is None:
            return _Explored(plant(level), following, level, np.zeros(1, np.int32))
        tree, nodes = grow_tree(state.tree, level)
        return _Explored(tree, following, level, nodes, state.depth + 1)

    return GateCall(lambda gate: gate.children(following.rows, following.symbols, following.parts), after)


def _open_next(paths: PathBudget, state: _Explored, levels_left: int) -> Following:
    """Return the children that are extended on the next level."""
    tree, counted, level, nodes, _ = state
    thresholds = level.scales * threshold_factor(paths.limits.alphabet)
    # A gram is extended if levels remain on its path and its count is clearly above the noise.
    grows = (counted.heights > 1)[:, None] & (level.counts > thresholds[:, None])
    # No symbol follows the end mark.
    grows[:, -1] = False
    rows, symbols = np.nonzero(grows)
    entries = nodes[rows].astype(np.int64) * tree.width + symbols
    largest = tree.chances[tree.neighbours_of(entries)].max(axis=1)
    heights = predicted_heights(thresholds[rows], level.counts[grows], largest, levels_left)
    return Following(entries, rows, symbols, heights, [Fraction(1, height) for height in heights.tolist()])


def predicted_heights(thresholds: Floats, counts: Int64s, largest: Floats, most: int) -> Int64s:
    """Return the number of levels below each gram that are expected to exceed the threshold. This number is at least 1.

    Args:
        thresholds: The threshold of the histogram that contains the gram.
        counts: The noisy counts, which exceed their thresholds.
        largest: The largest probability of any symbol at the gram's Markov neighbour.
        most: The number of remaining levels.

    Returns:
        The smallest number of multiplications by `largest` that reduce the count to the threshold (CAC12, 4.3.2).
    """
    sure = (largest <= 0.0) | (largest >= 1.0)
    # The result is the smallest h with count * largest^h <= threshold (CAC12, 4.3.2).
    steps = np.log(thresholds / counts) / np.log(np.where(sure, 0.5, largest))
    return np.where(sure, most, np.clip(np.ceil(steps), 1, most)).astype(np.int64)
