"""A released model of sequences: grams with noisy counts, and what follows from them. All public."""

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, final

from voxpop.arguments import check_whole
from voxpop.errors import InputError
from voxpop.privacy.guarantee import Guarantee
from voxpop.release.about import NOTHING_SAID, About
from voxpop.release.released import Plan
from voxpop.release.stated import Stated
from voxpop.sequences.tree import Tree

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from voxpop.sequences.asking import Asking
    from voxpop.sequences.context_sampling import ContextSampler
    from voxpop.sequences.context_tree import ContextTree
    from voxpop.sequences.sampling import Sampler

ROWS_SHOWN = 10


@final
@dataclass(frozen=True, repr=False, eq=False)
class SequenceModel(Stated):
    """A model of whole sequences: which grams are frequent, and how often they occur, with noise.

    Everything here is a function of the released noisy counts, so nothing that is done with a model costs budget.

    Attributes:
        alphabet: the public symbols, in order of their bytes.
        tree: released grams with their noisy and consistent counts.
        max_length: most symbols of a sequence.
        plan: the numbers that ran; `plan.to_dict()` and `str(plan)` show them.
        guarantee: what the release guarantees, or that it is not private.
        about: what the operator says of it, for the report. It is not compared.
    """

    alphabet: tuple[str, ...]
    tree: "Tree | ContextTree"
    max_length: int
    plan: Plan
    guarantee: Guarantee
    about: About = NOTHING_SAID

    @property
    def sequences(self) -> float:
        """The number of users with a sequence, estimated from the noisy counts of endings."""
        return self._sampler.sequences

    def to_polars(self) -> "pl.DataFrame":
        """Return the released grams.

        Returns:
            Columns gram (list of str); ends, whether the end of the sequence follows; count, the noisy integer that was
            released (raised to 0 where negative); estimate, made consistent with shorter grams; scale, of the count's
            noise. In order of length and then of symbols.
        """
        from voxpop.sequences.context_table import context_table
        from voxpop.sequences.table import table_of

        if isinstance(self.tree, Tree):
            return table_of(self.alphabet, self.tree)
        return context_table(self.alphabet, self.tree, self._sampler.settled)  # type: ignore[union-attr]

    def sample(self, n: int, seed: int | None = None) -> "pl.DataFrame":
        """Draw synthetic sequences.

        Args:
            n: how many, at least 1.
            seed: draws the same ones again; it concerns nobody's privacy.

        Returns:
            Columns user (0 to n - 1) and sequence (list of str): what `voxpop.read` reads with sequence="sequence".
            Each has at least one symbol and at most `max_length`.

        Raises:
            InputError: where n is out of range, or nothing was released.
        """
        from voxpop.sequences.sampling import sample_frame

        return sample_frame(self.alphabet, self.tree, self._sampler, n, seed)

    def probability(self, sequence: SequenceOf[str]) -> float:
        """Return how likely `sample` draws exactly this sequence.

        Args:
            sequence: symbols.

        Returns:
            A probability; 0 for what can never be drawn.
        """
        return self._sampler.probability(self._symbols(sequence, known=False))

    def next(self, prefix: SequenceOf[str] = ()) -> "pl.DataFrame":
        """Return what comes next in a sequence that begins with `prefix`.

        Args:
            prefix: symbols; none for the beginning.

        Returns:
            Columns symbol (null for the end of the sequence) and probability, likeliest first; probabilities sum to 1.

        Raises:
            InputError: where the prefix holds a symbol that is not in the alphabet, or nothing was released.
        """
        from voxpop.sequences.sampling import next_frame

        return next_frame(self.alphabet, self.tree, self._sampler, self._symbols(prefix, known=True))

    def following(self, prefix: SequenceOf[str] = (), level: float = 0.9) -> "pl.DataFrame":
        """Return what comes next in a session that begins with `prefix`, with intervals.

        Like all questions below it is for models of contexts (`Sequences(tree="contexts")`, the default for small
        alphabets), costs no budget, and its intervals hold the noise, not what a longer memory would add.

        Args:
            prefix: symbols; none for the beginning.
            level: what share of intervals is to hold, 0.9 for nine in ten.

        Returns:
            Columns symbol (null for the end), share, error (one standard error), low and high; the likeliest first.

        Raises:
            InputError: where the prefix holds a stranger, the level is out of range or the model counts grams.

        Example:
            >>> import polars as pl
            >>> import voxpop as vp
            >>> visits = pl.DataFrame({"who": range(3000), "pages": [["home", "news"], ["home"], ["news"]] * 1000})
            >>> corpus = vp.read(visits, user="who", sequence="pages")
            >>> model = vp.Sequences(max_length=4, alphabet=["home", "news"]).release(corpus, vp.Budget(2), seed=1)
            >>> model.following(["home"]).columns
            ['symbol', 'share', 'error', 'low', 'high']
        """
        return self._asking.following(self._symbols(prefix, known=True), level)

    def starting(self, level: float = 0.9) -> "pl.DataFrame":
        """Return what sessions begin with; columns as of `following`."""
        return self._asking.starting(level)

    def ending(self, level: float = 0.9) -> "pl.DataFrame":
        """Return the last symbols of sessions, those cut at `max_length` among them; columns as of `following`."""
        return self._asking.ending(level)

    def lengths(self, level: float = 0.9) -> "pl.DataFrame":
        """Return how long sessions are: columns length (1 to `max_length`, which stands for more), share, error, ..."""
        return self._asking.lengths(level)

    def transitions(self, level: float = 0.9) -> "pl.DataFrame":
        """Return what follows each symbol wherever it stands: columns from, symbol (null for the end), share, ..."""
        return self._asking.transitions(level)

    def paths(self, length: int = 3, number: int = 20, level: float = 0.9) -> "pl.DataFrame":
        """Return the runs of symbols that most sessions contain.

        Args:
            length: of the runs.
            number: how many at most.
            level: as of `following`.

        Returns:
            Columns path (list of str), share of sessions that contain it, error, low and high; the commonest first.
        """
        check_whole("length", length, self.max_length, "the number of symbols in a run")
        check_whole("number", number, 10_000, "how many runs to return")
        return self._asking.paths(length, number, level)

    def funnel(self, steps: SequenceOf[str], within: int | None = None, level: float = 0.9) -> "pl.DataFrame":
        """Return the share of sessions that get as far as each step.

        Args:
            steps: symbols, in the order wanted.
            within: most symbols from one step to the next; none for any number.
            level: as of `following`.

        Returns:
            Columns step, share, error, low and high, in the order given.
        """
        wanted = self._symbols(steps, known=True)
        if not wanted:
            raise InputError("a funnel needs one step at least.")
        if within is not None:
            check_whole("within", within, self.max_length, "the most symbols from one step to the next")
        return self._asking.funnel(wanted, self.max_length if within is None else within, level)

    def synthesize(self) -> "pl.DataFrame":
        """Make the synthetic data set of the paper: long grams first, each as often as the counts allow.

        Returns:
            Columns sequence (list of str) and count, how often it occurs; the longest first. A function of the
            released counts: no randomness. `sample` keeps lengths and beginnings better.
        """
        from voxpop.sequences.synthesis import synthetic_frame

        return synthetic_frame(self.alphabet, self.tree, self.max_length)

    def to_arrow(self) -> "pa.Table":
        """Return the table of `to_polars` as a pyarrow table."""
        return self.to_polars().to_arrow()

    def to_pandas(self) -> "pd.DataFrame":
        """Return the table of `to_polars` as a pandas table; needs pandas."""
        return self.to_arrow().to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the table of `to_arrow` to whatever speaks Arrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _with_about(self, about: About) -> "SequenceModel":
        return replace(self, about=about)

    def _save(self, folder: str | PathLike[str], *, overwrite: bool) -> None:
        from voxpop.sequences.saving import save_model

        save_model(self, folder, overwrite=overwrite)

    @staticmethod
    def load(folder: str | PathLike[str]) -> "SequenceModel":
        """Load a model that `save` saved.

        Args:
            folder: where it was saved.

        Returns:
            The model. Its plan shows the numbers that ran, and cannot run again.

        Raises:
            ReleaseError: if the folder is not a model or is damaged.
        """
        from voxpop.sequences.saving import load_model

        return load_model(folder, SequenceModel)

    def __len__(self) -> int:
        """Return the number of released grams."""
        from voxpop.sequences.context_tree import ContextTree

        return int(self.tree.counts.size if isinstance(self.tree, ContextTree) else self.tree.symbols.size)

    def __eq__(self, other: object) -> bool:
        """Compare the released grams and counts, the numbers that ran, and the guarantee."""
        if not isinstance(other, SequenceModel):
            return NotImplemented
        mine = (self.alphabet, self.max_length, self.guarantee, self.plan.to_dict())
        theirs = (other.alphabet, other.max_length, other.guarantee, other.plan.to_dict())
        return mine == theirs and self.to_polars().equals(other.to_polars())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SequenceModel({len(self):,} gram{'' if len(self) == 1 else 's'}, {self.guarantee})"

    def _repr_html_(self) -> str:
        """Return the guarantee and the first grams with their noisy counts, for a notebook."""
        from voxpop.privacy.in_words import cautions
        from voxpop.showing import card, printable

        shown = self.to_polars().head(ROWS_SHOWN).select("gram", "ends", "count").to_dicts()
        rows = [(f"{printable(row['gram'])}{' .' if row['ends'] else ''}", f"{row['count']:,}") for row in shown]
        title = f"A model of {len(self):,} gram{'' if len(self) == 1 else 's'} with noisy counts"
        lines = [
            str(self.guarantee),
            "A dot is the end of a sequence. model.to_polars() has all of them.",
        ]
        return card(title, lines, ("gram", "noisy count"), rows, cautions(self.guarantee))

    def _symbols(self, tokens: SequenceOf[str], *, known: bool) -> list[int]:
        """Return the numbers of symbols; -1 for strangers, or a refusal."""
        if isinstance(tokens, str):
            raise InputError("a sequence is a list of symbols, got one string; put it in a list.")
        numbers = [self._numbers.get(token, -1) for token in tokens]
        if known and -1 in numbers:
            raise InputError(f"the symbol at place {numbers.index(-1) + 1} of the prefix is not in the alphabet.")
        return numbers

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {symbol: number for number, symbol in enumerate(self.alphabet)}

    @cached_property
    def _asking(self) -> "Asking":
        from voxpop.sequences.asking import Asking
        from voxpop.sequences.context_sampling import ContextSampler
        from voxpop.sequences.context_tree import ContextTree

        if not isinstance(self.tree, ContextTree) or not isinstance(self._sampler, ContextSampler):
            raise InputError(
                "this model counts grams, whose answers have no intervals: use `next` and `sample`, or release with "
                'tree="contexts".'
            )
        return Asking(self.tree, self._sampler, self.alphabet, self.max_length)

    @cached_property
    def _sampler(self) -> "Sampler | ContextSampler":
        from voxpop.sequences.context_sampling import ContextSampler
        from voxpop.sequences.context_tree import ContextTree
        from voxpop.sequences.sampling import Sampler

        if isinstance(self.tree, ContextTree):
            return ContextSampler.of(self.tree, self.max_length)
        return Sampler.of(self.tree, self.max_length)
