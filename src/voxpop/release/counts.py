"""Counts and rankings of the grams of a release, which are noisy and therefore public."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import InputError, InternalError, ReleaseError, required
from voxpop.files.folder import folder_to_read, read_whole
from voxpop.kernels.arrays import Bools, Int64s
from voxpop.privacy.budget import SAMPLE_SIZE, all_printable, card, check_whole, printable
from voxpop.privacy.composition import Charged, total_of
from voxpop.privacy.guarantee import Guarantee, cautions
from voxpop.reading.arrow import int64_array, joined, numbers_of
from voxpop.release.release import Release, report_of
from voxpop.release.report.page import Grid
from voxpop.release.result import NO_METADATA, Metadata, Plan, Result, restored
from voxpop.release.saving import (
    BESIDE,
    COUNTS,
    RANKINGS,
    RELEASE,
    REPORT,
    SUMS,
    ResultKind,
    checksum,
    identity,
    record_of,
)
from voxpop.release.table import (
    Completer,
    free_name,
    read_parquet,
    single_items,
    with_items,
    with_result,
    write_parquet,
)

if TYPE_CHECKING:
    from voxpop.release.table import Completion


INTERVAL: Final = 1.96
"""The number of standard errors on either side of an estimate. The interval contains the true value with probability
0.95."""
_UNRELEASED: Final = "unreleased"
"""The column of saved counts with the listed items that were not released. It is empty in all other rows."""
MOST_DRAWN: Final = 30
"""The default number of bars of a chart."""


class Addition(Result):
    """A result that describes the grams of a release and has a separate budget.

    Attributes:
        grams: The release.
    """

    grams: Release

    @property
    def _numbered(self) -> tuple[str, Int64s, Int64s]:
        """The name of the result column, the release row of each table row, and the results."""
        raise NotImplementedError

    @property
    def rows(self) -> Release:
        """The grams that have a result.

        These are the grams of the release, and for counts also the items of a public list.
        """
        return self.grams

    def to_arrow(self) -> pa.Table:
        """Return the rows of the release with a result column (int64).

        Counts have the column `users` in descending order. A ranking has the column `place`, which starts at 1. If the
        release has a key column with this name, the result column is called `noisy_users` or `noisy_place`. Counts with
        a public list also have the column `released` (bool), which is true for released items.
        """
        name, places, numbers = self._numbered
        return with_result(self.rows.to_arrow().take(int64_array(places)), name, numbers)

    @property
    def _together(self) -> tuple[Charged, ...]:
        return (self.grams._stated, self._stated)

    def _page(self, checksums: Mapping[str, str]) -> bytes:
        return _page_of(replace(self.grams, metadata=self.metadata), [self], checksums)

    def _grid(self) -> "Grid":
        """Return the table of the report."""
        raise NotImplementedError


def page_of_all(files: Mapping[str, bytes], folder: str | PathLike[str]) -> bytes:
    """Return the report of a release and of the counts and rankings in its folder.

    Args:
        files: The contents of the files of the folder, by name.
        folder: The name of the folder, for messages.
    """
    record, tables = RELEASE.checked(files, folder)
    release = RELEASE.restored(record, tables, folder)
    there = [each for each in BESIDE if each.record in files]
    additions = [each.restored(*each.checked(files, folder), folder, (record, release)) for each in there]
    checksums = {name: checksum(files[name]) for name in sorted({*files} - {REPORT, SUMS})}
    return _page_of(release, additions, checksums)


def _page_of(release: Release, additions: Sequence[Addition], checksums: Mapping[str, str]) -> bytes:
    total = total_of([each._stated for each in (release, *additions)])
    together = replace(release, guarantee=total.adaptive)
    counts = next((np.maximum(each.users[each.released], 0) for each in additions if isinstance(each, Counts)), None)
    ranked = any(isinstance(each, Top) for each in additions)
    return report_of(together, checksums, [each._grid() for each in additions], counts, ranked=ranked, total=total)


def _save(
    kind: ResultKind, addition: Addition, numbers: pa.Table, folder: str | PathLike[str], overwrite: bool
) -> None:
    """Write the numbers and their record to the folder of the release, and replace all its files in one step.

    Raises:
        ReleaseError: If the folder contains another release or already contains these files, or cannot be written.
    """
    target = kind.check_target(folder, overwrite=overwrite)
    stored = RELEASE.load(folder)
    # Equal tables are not sufficient, because releases about different users may contain the same grams.
    if stored.id != addition.grams.id or stored != addition.grams:
        raise ReleaseError(f"{folder} contains another release. Save {kind.what} to the folder of their release.")
    files = {each.name: read_whole(each) for each in sorted(folder_to_read(target).iterdir())}
    files[kind.tables[0]] = write_parquet(numbers)
    content = {
        **record_of(addition),
        "total": str(total_of(addition._together)),
        "release": identity(json.loads(files[RELEASE.record])),
    }
    files[kind.record] = kind.record_of(content, {name: files[name] for name in kind.tables})
    RELEASE.put(files, folder, overwrite=True)


@final
@dataclass(frozen=True, repr=False, eq=False)
class Counts(Addition):
    """The noisy number of users of each released gram, in descending order.

    A count can be negative if a gram has few users, because replacing negative counts with 0 would bias sums. A user
    with more grams than the limit of the plan counts as less than one user.

    Attributes:
        grams: The release with the counted grams.
        users: The noisy number of users of each gram, as int64 in the order of `rows`.
        error: The standard deviation of the noise on each number.
        plan: The public numbers of the plan.
        guarantee: The guarantee of the counts alone, which does not include the release.
        metadata: The operator's statements about the counts.
        counted: The release extended by the items of the public list, if there is a list.
    """

    _saved_as = COUNTS

    grams: Release
    users: Int64s
    error: float
    plan: Plan
    guarantee: Guarantee
    metadata: Metadata = NO_METADATA
    counted: Release | None = None

    def __post_init__(self) -> None:
        if len(self.users) != len(self.rows):
            raise InternalError("counts need one number for each gram")

    @property
    def rows(self) -> Release:
        """The grams with a count, which are the grams of the release and all items of the public list."""
        return self.grams if self.counted is None else self.counted

    @cached_property
    def released(self) -> Bools:
        """Whether each row was released (bool array). Rows that were not released occur only with a public list."""
        found = np.ones(len(self), np.bool_)
        if self.counted is not None:
            mine, theirs = (
                single_items(each.grams.filter(pc.equal(each.grams["length"], 1)))
                for each in (self.counted, self.grams)
            )
            found[: len(mine)] = np.asarray(pc.is_in(mine, value_set=theirs))
        return found

    def to_arrow(self) -> pa.Table:
        """Return the rows with the column `users` (see `Addition.to_arrow`)."""
        table = super().to_arrow()
        if self.counted is None:
            return table
        return table.append_column(free_name("released", table.column_names), pa.array(self.released[self._order]))

    @property
    def _numbered(self) -> tuple[str, Int64s, Int64s]:
        return "users", self._order, self.users[self._order]

    def top(self, k: int) -> list[tuple[Any, int]]:
        """Return the k items or grams with the largest counts. This costs no budget, because the counts are public.

        In contrast, `release.top` spends a separate budget and ranks with less noise if k is small.

        Args:
            k: The number of items or grams.

        Raises:
            InputError: If k is below 1.
        """
        check_whole("k", k, 2**31, "the number of grams in the ranking")
        return list(islice(self, k))

    def complete(self, prompt: str | Sequence[str], first: int = 10) -> list["Completion"]:
        """Return the continuations of a prompt as `Release.complete` does, but in descending order of counts.

        The continuations of the longest context are still first. Within a context, the noisy counts determine the
        order, so the order has the guarantee `total`.

        Args:
            prompt: A text or a list of tokens.
            first: The maximum number of continuations.

        Raises:
            InputError: If the prompt is neither a text nor a list of strings, or `first` is below 1.
        """
        return self._completer.complete(prompt, first)

    @cached_property
    def _completer(self) -> "Completer":
        return Completer(self.rows.each_gram(), self.grams.token_source, self._by_gram)

    @cached_property
    def _by_gram(self) -> dict[tuple[str, ...], int]:
        return dict(zip(self.rows.each_gram(), self.users.tolist(), strict=True))

    def each_gram(self) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yield each gram as a tuple of tokens with its noisy number of users, in descending order of counts."""
        grams = list(self.rows.each_gram())
        return ((grams[place], int(self.users[place])) for place in self._order)

    def plot(self, path: str | PathLike[str], most: int = MOST_DRAWN) -> None:
        """Draw the grams with the most users as bars with 95 percent intervals (see `Profile.plot`)."""
        named = [(" ".join(gram), users) for gram, users in self.each_gram()]
        reach = INTERVAL * self.error
        rows = [(printable([text]), users, users - reach, users + reach) for text, users in named]
        draw_bars(sorted(rows, key=lambda row: -row[1])[:most], len(named), path)

    def _write(self, folder: str | PathLike[str], *, overwrite: bool) -> None:
        columns: dict[str, Any] = {"users": int64_array(self.users)}
        if self.counted is not None:
            # The folder already contains the released items.
            columns[_UNRELEASED] = pc.if_else(pa.array(self.released), "", _first_tokens(self.counted))
            columns["released"] = pa.array(self.released)
        _save(COUNTS, self, pa.table(columns), folder, overwrite)

    def _grid(self) -> "Grid":
        note = "The list shows a negative count as 0. The guarantee of the counts alone is "
        note += f"{self.guarantee}; the one above covers the release too."
        if self.counted is not None:
            note += f" All of {self.plan.to_dict()['known']['size']:,} items of a public list were counted. The list "
            note += "shows only the released items; counts.parquet contains all of them."
        return Grid("Noisy counts", ["grams", "standard error"], [[f"{len(self):,}", f"{self.error:.3g} users"]], note)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        """Yield each item or gram with its noisy number of users, in descending order.

        Ties are in the order of the release.
        """
        grams = self.rows.to_list()
        return ((grams[place], int(self.users[place])) for place in self._order)

    def __getitem__(self, gram: Any) -> int:
        """Return the noisy number of users of an item or gram, given as in `item in release`.

        Raises:
            KeyError: If the item or gram was not released.
        """
        keys = self.grams.keys
        if keys is not None and keys.columns:
            item = keys.item(gram)
            if item is None:  # The columns cannot contain this value.
                raise KeyError(gram)
            return self.of_gram((item,))
        return self.of_gram((gram,) if isinstance(gram, str) else tuple(gram))

    def of_gram(self, gram: tuple[str, ...]) -> int:
        """Return the noisy number of users who have the gram with these tokens.

        Raises:
            KeyError: If the item or gram was not released.
        """
        return self._by_gram[gram]

    def __repr__(self) -> str:
        return f"Counts({len(self):,} gram{'' if len(self) == 1 else 's'}, error {self.error:.3g}, {self.guarantee})"

    def _repr_html_(self) -> str:
        """Return the guarantee, the error and the first grams for a notebook."""
        first = list(islice(self.each_gram(), SAMPLE_SIZE))
        texts = all_printable(gram for gram, _ in first)
        rows = [(text, f"{users:,}") for text, (_, users) in zip(texts, first, strict=True)]
        rows += [("…", "…")] * (len(self) > SAMPLE_SIZE)
        title = f"Noisy numbers of users of {len(self):,} gram{'' if len(self) == 1 else 's'}"
        stated = f"{self.guarantee}; with the release: {self.total}"
        lines = [f"Standard error of each: {self.error:.3g} users.", stated]
        return card(title, lines, ("gram", "users, about"), rows, cautions(self.total.adaptive))

    @property
    def _order(self) -> Int64s:
        return np.argsort(-self.users, kind="stable")


@final
@dataclass(frozen=True, repr=False, eq=False)
class Top(Addition):
    """The grams of a release with the largest numbers of users, in noisy order and without counts.

    Attributes:
        grams: The ranked release.
        places: The rows of the release in descending order of users, as int64.
        plan: The public numbers of the plan.
        guarantee: The guarantee of the ranking without the release.
        metadata: The operator's statements about the ranking.
    """

    _saved_as = RANKINGS

    grams: Release
    places: Int64s
    plan: Plan
    guarantee: Guarantee
    metadata: Metadata = NO_METADATA

    @property
    def _numbered(self) -> tuple[str, Int64s, Int64s]:
        return "place", self.places, np.arange(1, self.places.size + 1, dtype=np.int64)

    def each_gram(self) -> Iterator[tuple[str, ...]]:
        """Yield each ranked gram as a tuple of tokens, in order."""
        return map(tuple, self.grams.grams["gram"].take(int64_array(self.places)).to_pylist())

    def _write(self, folder: str | PathLike[str], *, overwrite: bool) -> None:
        _save(RANKINGS, self, pa.table({"place": int64_array(self.places)}), folder, overwrite)

    def _grid(self) -> "Grid":
        texts = all_printable(islice(self.each_gram(), 100))
        rows = [[f"{place:,}", text] for place, text in enumerate(texts, start=1)]
        head = ["place", "gram"]
        if self.grams.known is not None:
            head.append("known before")
            marks = self.grams.known[self.places[: len(rows)]].tolist()
            rows = [[*row, "on the list" if mark else ""] for row, mark in zip(rows, marks, strict=True)]
        note = f"The guarantee of the ranking alone is {self.guarantee}; the one above covers the release too."
        return Grid("Most users first, in noisy order", head, rows, note)

    def __len__(self) -> int:
        return int(self.places.size)

    def __iter__(self) -> Iterator[Any]:
        """Yield the items or grams in descending order of users."""
        grams = self.grams.to_list()
        return (grams[place] for place in self.places)

    def __repr__(self) -> str:
        return f"Top({len(self):,} of {len(self.grams):,} grams, {self.guarantee})"

    def _repr_html_(self) -> str:
        """Return the guarantee and the first grams for a notebook."""
        first = enumerate(all_printable(islice(self.each_gram(), SAMPLE_SIZE)), start=1)
        rows = [(f"{place:,}", text) for place, text in first] + [("…", "…")] * (len(self) > SAMPLE_SIZE)
        title = f"The {len(self):,} of {len(self.grams):,} with the most users"
        lines = [f"{self.guarantee}; with the release: {self.total}", "In noisy order; no counts."]
        return card(title, lines, ("place", "gram"), rows, cautions(self.total.adaptive))


def counts_of(record: Mapping[str, Any], tables: Mapping[str, bytes], release: Release) -> Counts:
    """Restore the counts from a record and its tables."""
    table, counted = read_parquet(tables[COUNTS.tables[0]]), None
    if _UNRELEASED in table.column_names:
        items = joined(table[_UNRELEASED]).filter(pc.invert(joined(table["released"])))
        if len(items) > record["plan"]["known"]["size"]:
            raise ValueError("more items than the list")
        counted = replace(release, grams=with_items(release.grams, items, release.keys), known=None)
        table = table.select(["users"])
    counts = Counts(release, _numbers(table), float(record["plan"]["error"]), counted=counted, **restored(record))
    if (counted is None) != ("known" not in record["plan"]):
        raise ValueError("items of a list without a list, or a list without its items")
    return counts


def top_of_record(record: Mapping[str, Any], tables: Mapping[str, bytes], release: Release) -> Top:
    """Restore the ranking from a record and its tables."""
    places = _numbers(read_parquet(tables[RANKINGS.tables[0]]))
    if np.unique(places).size < places.size or not ((places >= 0) & (places < len(release))).all():
        raise ValueError("not rows of the release")
    return Top(release, places, **restored(record))


def _first_tokens(release: Release) -> pa.Array:
    return pc.list_element(joined(release.grams["gram"]), 0)


def _numbers(table: pa.Table) -> Int64s:
    (column,) = table.columns
    return numbers_of(column.combine_chunks()).astype(np.int64)


def draw_bars(rows: Sequence[tuple[str, float, float, float]], whole: int, path: str | PathLike[str]) -> None:
    """Write a chart of horizontal bars with intervals. The name of the file selects PNG or SVG.

    Args:
        rows: The label, the number, and the lower and the upper end of the interval of each bar.
        whole: The number of released keys, which may exceed the number of bars.
        path: The path of the file.

    Raises:
        InputError: If the file has an unknown suffix, or matplotlib is not installed.
    """
    kind = Path(path).suffix.lower()
    if kind not in (".png", ".svg"):
        raise InputError("a chart is a PNG or an SVG file. Choose a name that ends in .png or .svg.")
    backend = {".png": "agg", ".svg": "svg"}[kind]
    drawn = required("matplotlib.figure", "a chart", "matplotlib")
    canvas = required(f"matplotlib.backends.backend_{backend}", "a chart", "matplotlib")
    figure = drawn.Figure(figsize=(7, 1.2 + 0.28 * max(1, len(rows))), layout="constrained")
    # These canvases open no window, and SVG contains labels as text.
    canvas.FigureCanvas(figure)
    axes = figure.add_subplot()
    places, widths = range(len(rows)), [row[1] for row in rows]
    reaches = [[row[1] - row[2] for row in rows], [row[3] - row[1] for row in rows]]
    axes.barh(places, widths, color="#7fa6c9", xerr=reaches, error_kw={"elinewidth": 1, "capsize": 2})
    # Labels are released text, so a dollar sign in them must not start a formula.
    axes.set_yticks(places, [row[0].replace("$", r"\$") for row in rows])
    axes.invert_yaxis()
    # Without bars, the axis would end at 0.05 users.
    axes.set_xlim(left=min(0.0, *(row[2] for row in rows)) if rows else 0.0, right=None if rows else 1.0)
    shown = "" if len(rows) == whole else f"The {len(rows):,} largest of {whole:,} released keys. "
    axes.set_xlabel("users, with 95 % intervals")
    axes.set_title(f"{shown}A missing key is not zero.", fontsize="small", loc="left")
    # The file contains no date, so that equal results produce equal files.
    figure.savefig(path, dpi=150, metadata={"Date": None} if kind == ".svg" else {"Software": None})
