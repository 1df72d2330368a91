"""A released model of sequences: noisy counts of the symbols after each context, and queries. All of it is public."""

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, replace
from functools import cached_property, partial
from os import PathLike
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyarrow as pa

from voxpop.errors import InputError
from voxpop.kernels.threads import require_polars
from voxpop.mechanisms.sequences import queries
from voxpop.mechanisms.sequences.context_tree import ContextTree, context_columns, context_table, context_tree_of
from voxpop.mechanisms.sequences.describe import report_of_model
from voxpop.mechanisms.sequences.profile import StepProfile, profile_record, step_profile_of
from voxpop.privacy.budget import card, check_whole, printable
from voxpop.privacy.guarantee import Guarantee, cautions
from voxpop.reading.arrow import numbers_of, string_array
from voxpop.release.result import NO_METADATA, Metadata, Plan, Result, restored
from voxpop.release.saving import MODEL, record_of
from voxpop.release.table import read_parquet, write_parquet

if TYPE_CHECKING:
    import polars as pl


ROWS_SHOWN = 10
_MOST_ROWS = 1_100_000
"""The maximum number of rows in a table of transitions."""


@final
@dataclass(frozen=True, repr=False, eq=False)
class SequenceModel(Result):
    """A model of whole sequences, based on noisy counts of the symbols after each context.

    Every result is a function of the released noisy counts, so no use of a model costs budget.

    All queries (`starting`, `ending`, `lengths`, `transitions`, `paths`, `funnel`, and `next` with a level) return the
    columns share, error (one standard error), low and high. `level` is the nominal share of intervals from low to high
    that contain the true share of the data. The error contains the noise, and the distances of the answer from the
    answers of two simpler models: one with contexts that are one symbol shorter, and one without copies of earlier
    symbols. These distances estimate the effect of a longer memory, but they do not bound it. Therefore intervals are
    wide if much depends on the last counted symbol, and they can be wrong more often than the level implies. Such
    errors were measured for frequent paths. They were also measured for first symbols and transitions if only single
    symbols are counted (`tree.nodes` is 1), because no released count then shows how sequences begin and continue. See
    `benchmarks/results/sequences_intervals.md` for public data at level 0.9.

    Attributes:
        alphabet: The public symbols, in the order of their bytes.
        tree: The released noisy counts by context.
        profile: The released noisy numbers of sequences by length, and of distinct and repeated symbols.
        plan: The numbers that were used, which `plan.to_dict()` and `str(plan)` return.
        guarantee: The guarantee of the release, or the statement that the release is not private.
        metadata: The operator's statements for the report. Comparisons of models ignore them.
    """

    alphabet: tuple[str, ...]
    tree: ContextTree
    profile: StepProfile
    plan: Plan
    guarantee: Guarantee
    metadata: Metadata = NO_METADATA

    @property
    def max_length(self) -> int:
        """The maximum number of symbols of a sequence."""
        return self.tree.max_length

    @property
    def counted_steps(self) -> int:
        """The number of steps counted from the start of each sequence, which depends on the released lengths."""
        return self.tree.counted

    @property
    def n_users(self) -> float:
        """The number of users with a sequence, estimated from the noisy counts."""
        return self._sampler.fit.sequences

    def to_polars(self) -> "pl.DataFrame":
        """Return the released counts.

        Returns:
            A table with these columns: gram (list of str), a context and the symbol after it; begins, whether the
            context is the beginning of a sequence; others, whether the row covers all longer contexts without separate
            rows; ends, whether the end of the sequence follows; count, the noisy integer that was released; estimate,
            the smoothed count; and scale, the scale of the noise.
        """
        smoothed = self._sampler.smoothed
        return context_table(self.alphabet, self.tree, smoothed.totals[:, None] * smoothed.chances)

    def sample(self, n: int, seed: int | None = None) -> "pl.DataFrame":
        """Draw synthetic sequences.

        Sequences are drawn together. Each sequence has the distribution of the model, but the counts of symbols and
        short runs in the whole sample are nearer to their expected values than in a sample of independent sequences.

        Args:
            n: The number of sequences, at least 1.
            seed: The seed, which does not affect privacy. The same seed and the same n draw the same sequences again.

        Returns:
            A table with the columns user (0 to n - 1) and sequence (list of str), which `voxpop.read` accepts with
            sequence="sequence". Each sequence has at least one symbol and at most `max_length` symbols.

        Raises:
            InputError: If n is out of range, or nothing was released.
        """
        return queries.sample_frame(self.alphabet, self._sampler, n, seed)

    def to_events(self, n: int, seed: int | None = None) -> "pl.DataFrame":
        """Draw synthetic sequences as a table of events, one event per row.

        Args:
            n: The number of sequences, at least 1.
            seed: The seed, as in `sample`. The same seed draws the same sequences as `sample`.

        Returns:
            A table with the columns case (0 to n - 1), activity (the symbol) and time, which are usual names in event
            logs. Therefore `voxpop.read` accepts the table without further arguments. The time is an integer, 1 for the
            first event of a sequence, 2 for the second, and so on, because no real times are released.

        Raises:
            InputError: If n is out of range, or nothing was released.

        Example:
            >>> import polars as pl
            >>> import voxpop as vp
            >>> log = pl.DataFrame({"case": range(3000), "steps": [["open", "close"], ["open"], ["open"]] * 1000})
            >>> corpus = vp.read(log, user="case", sequence="steps")
            >>> model = vp.Sequences(alphabet=["open", "close"]).release(corpus, vp.Budget(2), seed=1)
            >>> events = model.to_events(100)
            >>> events.columns
            ['case', 'activity', 'time']
            >>> again = vp.read(events)
        """
        import polars as pl

        drawn = self.sample(n, seed)
        events = drawn.with_columns(time=pl.int_ranges(1, pl.col("sequence").list.len() + 1)).explode(
            "sequence", "time"
        )
        return events.select(case="user", activity="sequence", time="time")

    def probability(self, sequence: SequenceOf[str | int]) -> float:
        """Return the probability that `sample` draws exactly this sequence.

        Args:
            sequence: The symbols.

        Returns:
            The probability, which is 0 for a sequence that cannot be drawn.
        """
        return self._sampler.probability(self._symbols(sequence, known=False))

    def next(self, prefix: SequenceOf[str | int] = (), level: float | None = None) -> "pl.DataFrame":
        """Return the next symbols in a sequence that begins with `prefix`.

        Args:
            prefix: The symbols of the prefix. The default is the beginning of a sequence.
            level: The nominal share of intervals that are correct, such as 0.9. By default, no intervals are computed,
                which is faster.

        Returns:
            A table with the columns symbol (null for the end of the sequence) and probability. With a level, it also
            has the columns error, low and high. The most probable symbol is first. Probabilities sum to 1.

        Raises:
            InputError: If the prefix contains a symbol that is not in the alphabet, or nothing was released.

        Example:
            >>> import polars as pl
            >>> import voxpop as vp
            >>> visits = pl.DataFrame({"who": range(3000), "pages": [["home", "news"], ["home"], ["news"]] * 1000})
            >>> corpus = vp.read(visits, user="who", sequence="pages")
            >>> model = vp.Sequences(max_length=4, alphabet=["home", "news"]).release(corpus, vp.Budget(2), seed=1)
            >>> model.next(["home"], level=0.9).columns
            ['symbol', 'probability', 'error', 'low', 'high']
        """
        import polars as pl

        require_polars()
        queries.check_released(self.tree)
        numbers = self._symbols(prefix, known=True)
        if level is not None:
            return self._following(numbers, level).rename({"share": "probability"})
        frame = pl.DataFrame({"symbol": [*self.alphabet, None], "probability": self._sampler.chances(numbers)})
        return frame.sort("probability", descending=True, maintain_order=True)

    def _following(self, prefix: list[int], level: float) -> "pl.DataFrame":
        found = self._queries.following(prefix, level, symbol=[*self.alphabet, None])
        return found.sort("share", descending=True, maintain_order=True)

    def starting(self, level: float = 0.9) -> "pl.DataFrame":
        """Return the first symbols of sequences, with the columns symbol, share, error, low and high."""
        return self._following([], level).drop_nulls("symbol")

    def ending(self, level: float = 0.9) -> "pl.DataFrame":
        """Return the last symbols of sequences (including truncated sequences), with the columns of `starting`."""
        found = self._queries.answer(queries.last_symbols, level, symbol=self.alphabet)
        return found.sort("share", descending=True, maintain_order=True)

    def lengths(self, level: float = 0.9) -> "pl.DataFrame":
        """Return the lengths of sequences, with the columns length (`max_length` means this length or more), share, ...

        Sums over length classes agree with the released numbers. Shares within a class follow from the contexts, so the
        error also contains their distance from equal shares within the class. The lengths of drawn sequences can have
        other shares if contexts nearly determine the end.
        """
        return self._queries.lengths(level, length=range(1, self.max_length + 1))

    def transitions(self, level: float = 0.9) -> "pl.DataFrame":
        """Return the next symbols after each symbol, with the columns from, symbol (null for the end), share, ..."""
        size = len(self.alphabet)
        if size * (size + 1) > _MOST_ROWS:
            raise InputError(
                f"the transitions among {size:,} symbols have more than {_MOST_ROWS:,} rows. "
                "Use `next([symbol])` for sequences that begin with one symbol."
            )
        labels: dict[str, Any] = {
            "from": [symbol for symbol in self.alphabet for _ in range(size + 1)],
            "symbol": [*self.alphabet, None] * size,
        }
        return self._queries.transitions(np.arange(size + 1), size, level, **labels)

    def paths(self, length: int = 3, number: int = 20, level: float = 0.9) -> "pl.DataFrame":
        """Return the runs of symbols that occur in the most sequences.

        Args:
            length: The number of symbols in a run.
            number: The maximum number of rows.
            level: The nominal share of intervals that are correct.

        Returns:
            A table with the columns path (list of str), share (of sequences that contain the path), error, low and
            high. The most frequent path is first.
        """
        import polars as pl

        require_polars()
        check_whole("length", length, self.max_length, "the number of symbols in a run")
        check_whole("number", number, 10_000, "the number of runs to return")
        size = len(self.alphabet)
        runs = queries.commonest_runs(self._queries.sessions, length, number, size)
        names = pl.Series([[self.alphabet[symbol] for symbol in run] for run in runs], dtype=pl.List(pl.String))
        return self._queries.answer(lambda _, sessions: queries.containing(sessions, runs, size), level, path=names)

    def funnel(self, steps: SequenceOf[str | int], within: int | None = None, level: float = 0.9) -> "pl.DataFrame":
        """Return the share of sequences that reach each step.

        Args:
            steps: The symbols of the steps, in order.
            within: The maximum number of symbols from one step to the next (None for any number).
            level: The nominal share of intervals that are correct.

        Returns:
            A table with the columns step, share, error, low and high, in the given order.
        """
        wanted = self._symbols(steps, known=True)
        if not wanted:
            raise InputError("`steps` is empty; a funnel must have at least one step.")
        if within is not None:
            check_whole("within", within, self.max_length, "the maximum number of symbols from one step to the next")
        answer = partial(queries.reaching, steps=np.array(wanted, np.int32), within=within or self.max_length)
        return self._queries.answer(answer, level, step=[self.alphabet[step] for step in wanted])

    def to_arrow(self) -> "pa.Table":
        """Return the table of `to_polars` as a pyarrow table."""
        return self.to_polars().to_arrow()

    def _write(self, folder: str | PathLike[str], *, overwrite: bool) -> None:

        save_model(self, folder, overwrite=overwrite)

    def _page(self, checksums: Mapping[str, str]) -> bytes:
        return report_of_model(self, checksums)

    def __iter__(self) -> Iterator[tuple[tuple[str | None, ...], int]]:
        """Yield each gram with its noisy count. None at the end of a gram represents the end of the sequence."""
        for gram, ends, count in self.to_polars().select("gram", "ends", "count").iter_rows():
            yield (*gram, None) if ends else tuple(gram), count

    def __len__(self) -> int:
        """Return the number of released counts."""
        return int(self.tree.counts.size)

    def __eq__(self, other: object) -> bool:
        """Compare the released counts, the numbers used, and the guarantee."""
        if not isinstance(other, SequenceModel):
            return NotImplemented
        mine, theirs = (
            (each.alphabet, each.tree.counted, profile_record(each.profile), each.guarantee, each.plan.to_dict())
            for each in (self, other)
        )
        return mine == theirs and self.to_polars().equals(other.to_polars())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SequenceModel({len(self):,} noisy counts, {self.guarantee})"

    def _repr_html_(self) -> str:
        """Return the guarantee and the first counts as HTML for a notebook."""
        shown = self.to_polars().head(ROWS_SHOWN).select("gram", "ends", "count").to_dicts()
        rows = [(f"{printable(row['gram'])}{' .' if row['ends'] else ''}", f"{row['count']:,}") for row in shown]
        lines = [str(self.guarantee), "A dot is the end of a sequence. model.to_polars() returns all counts."]
        title = f"A model of {len(self):,} noisy counts"
        return card(title, lines, ("gram", "noisy count"), rows, cautions(self.guarantee))

    def _symbols(self, tokens: SequenceOf[str | int], *, known: bool) -> list[int]:
        """Return the number of each symbol, which is -1 for symbols outside the alphabet.

        If `known` is true, raise an error for such symbols.
        """
        if isinstance(tokens, str):
            raise InputError("a sequence is a list of symbols, got one string; put it in a list.")
        # voxpop.read converts integers into decimal strings, so this method does the same.
        numbers = [self._numbers.get(str(token), -1) for token in tokens]
        if known and -1 in numbers:
            raise InputError(
                f"the symbol at place {numbers.index(-1) + 1} is not in the alphabet. `model.alphabet` is the list of "
                "symbols."
            )
        return numbers

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {symbol: number for number, symbol in enumerate(self.alphabet)}

    @cached_property
    def _queries(self) -> queries.Queries:
        return queries.Queries(self._sampler, self.profile)

    @cached_property
    def _sampler(self) -> queries.ContextSampler:
        return queries.ContextSampler.of(self.tree, self.profile)


COUNTS, ALPHABET = MODEL.tables


def save_model(
    model: SequenceModel,
    folder: str | PathLike[str],
    extra: dict[str, bytes] | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Write the files of a model, and additional files, to the same folder; see `SequenceModel.save`."""
    symbols = pa.table({"symbol": string_array(model.alphabet).cast(pa.string())})
    tables = {COUNTS: write_parquet(context_columns(model.tree)), ALPHABET: write_parquet(symbols), **(extra or {})}
    numbers = {"max_length": model.max_length, "counted_steps": model.counted_steps}
    content = {**record_of(model), **numbers, "profile": profile_record(model.profile)}
    MODEL.save(content, tables, model._page, folder, overwrite=overwrite)


def model_of(record: Mapping[str, Any], contents: Mapping[str, bytes]) -> SequenceModel:
    """Return the model from a record and its tables."""
    words = read_parquet(contents[ALPHABET])["symbol"].to_pylist()
    table = read_parquet(contents[COUNTS])
    columns = {name: table[name].combine_chunks() for name in ("parent", "before", "scale", "counts")}
    counts = columns["counts"].cast(pa.list_(pa.int64()))
    width, max_length, steps = len(words) + 1, int(record["max_length"]), int(record["counted_steps"])
    if not 1 <= steps <= max_length:
        raise ValueError("not a number of steps")
    if (numbers_of(counts.value_lengths()) != width).any():
        raise ValueError("not one count of each symbol")
    parents, before, scales = (numbers_of(columns[name]) for name in ("parent", "before", "scale"))
    profile = step_profile_of(record["profile"], max_length)
    tree = context_tree_of(width, max_length, parents, before, scales, numbers_of(counts.flatten()))
    tree = replace(tree, steps=steps if steps < max_length else None, sequences=int(profile.lengths.sum()))
    return SequenceModel(tuple(words), tree, profile, **restored(record))
