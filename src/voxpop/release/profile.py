"""The class `Profile`, which contains the released values of the columns of a table, with counts and cover."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import hypot, isclose
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import InputError, InternalError
from voxpop.privacy.budget import SAMPLE_SIZE, card, printable
from voxpop.privacy.guarantee import Guarantee, cautions
from voxpop.reading.arrow import int64_array, joined, numbers_of
from voxpop.reading.keys import KeyColumn, split_texts
from voxpop.reading.typed_keys import MOST_CANDIDATES, TypedKeys
from voxpop.release.counts import INTERVAL, MOST_DRAWN, draw_bars
from voxpop.release.registry import load_object
from voxpop.release.release import Release
from voxpop.release.report.page import Grid, page_of, story_of
from voxpop.release.result import NO_METADATA, Metadata, Plan, Result, restored
from voxpop.release.saving import PROFILE, record_of
from voxpop.release.table import free_name, key_texts, read_parquet, table_of_lists, write_parquet

if TYPE_CHECKING:
    from voxpop.kernels.arrays import Bools, Int64s

KNOWN_MARKS: Final = "known"
"""The column of a table that marks values of a public list."""
_SURE: Final = 4.0
"""The number of standard errors below which a number of users is too small for a share."""
ONLY_NOISE: Final = (
    "`low` and `high` cover only the noise, with probability 0.95 each. They do not cover the effect of the limit. A "
    "user with more keys than the limit counts only for some of them, or as less than one user, so the exact number "
    "may be above `high`."
)
"""The meaning of the bounds of counts, for plans and reports of keys."""
SUMS_OF_ONE: Final = 1 << 10
"""Sums of the cover are rounded to integer multiples of the inverse of this number."""
MOST_NAMED: Final = 5
"""The maximum number of values in the row of a column in the report."""


class ColumnCover(NamedTuple):
    """The share of a column that the released values cover. Each user counts once, regardless of the number of rows.

    Attributes:
        covered: The noisy sum over users of the share of their rows with a released value in this column. For texts,
            words are used instead of rows.
        other: The noisy sum of the shares of all other rows, except rows without a value.
        error: The standard error of each of the two sums.

    Example:
        >>> cover = ColumnCover(covered=900.0, other=100.0, error=10.0)
        >>> cover.share, round(cover.share_error, 4)
        (0.9, 0.0091)
    """

    covered: float
    other: float
    error: float

    @property
    def users(self) -> float:
        """The noisy number of users with a value in this column, with a standard error of `error` times 2 ** 0.5."""
        return self.covered + self.other

    @property
    def share(self) -> float | None:
        """The mean share of a user's rows that the released values cover, or None if too few users have a value."""
        if self.users < _SURE * self.error:
            return None
        return min(1.0, max(0.0, self.covered / self.users))

    def shown(self, released: int) -> str | None:
        """Return the share as text, or None if its noise is as large as the number.

        Args:
            released: The number of released values of the column. If this number is 0, the share is 0, regardless of
                the noise.
        """
        if self.share is None or self.share_error is None:
            return None
        if not released:
            return "0 %"
        if INTERVAL * self.share_error > self.share:
            return None
        return f"{100 * self.share:.1f} % ± {100 * INTERVAL * self.share_error:.1f}"

    @property
    def share_error(self) -> float | None:
        """The standard error of the share, if there is a share."""
        if self.share is None:
            return None
        return self.error * hypot(self.covered, self.other) / self.users**2


@final
@dataclass(frozen=True, repr=False, eq=False)
class Profile(Result):
    """The released values of columns and of combinations of columns of a table, and the released words of its texts.

    One guarantee covers the whole profile. Iteration yields the names of the columns of each value, the value, and its
    noisy number of users (None without counts).

    Attributes:
        keys: The columns and combinations.
        table: A pyarrow table with the columns `set` (int32, the index of the column or combination) and `item`
            (large_string, as a release spells it). With public lists, it also has the column `known` (bool, whether the
            value was on the list of its column). With counts, it also has the column `users` (int64).
        cover: The cover of each column. Without counts, there is no cover.
        plan: The public numbers of the plan.
        guarantee: The guarantee of the whole profile.
        token_source: The tokenizer for texts.
        error: The standard error of each count, if there are counts.
        metadata: The operator's statements about the profile.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> table = pl.DataFrame({"who": range(3000), "city": ["Delft", "Lund"] * 1500})
        >>> profile = vp.profile(table, user="who", budget=vp.Budget(1, 1e-8))
        >>> profile.columns["city"].to_list()
        ['Delft', 'Lund']
        >>> profile.counts("city").column_names
        ['city', 'users', 'low', 'high']
        >>> profile.cover["city"].share
        1.0
    """

    keys: TypedKeys
    table: pa.Table
    cover: Mapping[str, ColumnCover]
    plan: Plan
    guarantee: Guarantee
    token_source: str = ""
    error: float | None = None
    metadata: Metadata = NO_METADATA

    def __post_init__(self) -> None:
        if ("users" in self.table.column_names) != (self.error is not None):
            raise InternalError("the counts of a profile need a standard error")

    @cached_property
    def columns(self) -> dict[str, Release]:
        """The values of each column as a release with the type of the column.

        The values of a text column are its words.
        """
        return {names[0]: self._release(number) for number, names in enumerate(self.keys.sets) if len(names) == 1}

    @cached_property
    def joint(self) -> dict[tuple[str, ...], Release]:
        """The joint values of each combination. The single values of a joint value are always in `columns`."""
        return {names: self._release(number) for number, names in enumerate(self.keys.sets) if len(names) > 1}

    def counts(self, *names: str) -> pa.Table:
        """Return the values of a column or combination with noisy numbers of users, in descending order.

        Args:
            names: The name of one column, or the names of the columns of a combination in its order.

        Returns:
            The columns with their types, then `users` (int64) and its bounds `low` and `high`, which contain the number
            without noise with probability 0.95 each. The last three columns are called `noisy_users` and so on if a
            column of the table has the same name. The bounds cover only the noise. A user with more keys than the limit
            counts only for some of them, or as less than one user, so the exact number may be above `high`. For a text,
            the first column contains the words.

        Raises:
            InputError: The profile has no such column or combination, or no counts.
        """
        if names not in self.keys.sets:
            raise InputError(
                "the profile has no such column or combination. Choose from "
                f"{', '.join(' x '.join(each) for each in self.keys.sets[:20])}."
            )
        if self.error is None:
            raise InputError("this profile has no counts. Make one with counts=True.")
        number = self.keys.sets.index(names)
        items, users = self._rows(number)
        order = np.argsort(-users, kind="stable")
        items, users = items.take(int64_array(order)), users[order]
        keys = self.keys.keys_of(number)
        values = keys.table(items) if keys.columns else pa.table({names[0]: items})
        for name, numbers in self._bounds(users).items():
            values = values.append_column(free_name(name, values.column_names), int64_array(numbers))
        return values

    def plot(self, *names: str, path: str | PathLike[str], most: int = MOST_DRAWN) -> None:
        """Draw the keys with the most users as bars with 95 percent intervals.

        Args:
            names: The name of one column, or the names of the columns of a combination in its order.
            path: The path of the file. Its suffix selects PNG or SVG.
            most: The maximum number of bars.

        Raises:
            InputError: The profile has no counts of these columns, the path has an unknown suffix, or matplotlib is not
                installed.
        """
        table = self.counts(*names)
        numbers = (table[each].to_pylist() for each in table.column_names[-3:])
        labels = zip(*(map(str, table[name].to_pylist()) for name in table.column_names[:-3]), strict=True)
        rows = [(printable(text), *each) for text, *each in zip(labels, *numbers, strict=True)]
        draw_bars(rows[:most], len(rows), path)

    @property
    def _reach(self) -> float:
        """The bound that the noise of a count does not exceed with probability 0.95."""
        # If each key has one noisy number, the plan computes the bound, because the noise is not Gaussian.
        return float(self.plan.to_dict().get("error_bound") or INTERVAL * (self.error or 0.0))

    def _bounds(self, users: "Int64s") -> dict[str, "Int64s"]:
        low, high = np.floor(users - self._reach), np.ceil(users + self._reach)
        return {"users": users, "low": low.astype(np.int64), "high": high.astype(np.int64)}

    def to_arrow(self) -> pa.Table:
        """Return a flat table of all values, for example for CSV files and dbt seeds.

        Returns:
            A pyarrow table with the columns `column` (names joined by " x ") and `value` (spelled values joined by
            bars, with a backslash before bars and backslashes of joint values). With counts, it also has `users`, `low`
            and `high`.
        """
        names, items, users = list[str](), list[pa.Array](), list["Int64s"]()
        for _, own, mine, counts in self._each():
            names += [" x ".join(own)] * len(mine)
            items.append(mine)
            users.append(counts)
        found = {"column": pa.array(names, pa.string()), "value": pa.chunked_array(items, pa.large_string())}
        if self.error is not None:
            bounds = self._bounds(np.concatenate([np.empty(0, np.int64), *users]))
            found |= {name: int64_array(each) for name, each in bounds.items()}
        return pa.table(found)

    def each_text(self) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], int]]:
        """Yield the columns, the spelled values, and the noisy number of users (or 0), in the order of iteration."""
        for _, names, items, users in self._each():
            for texts, count in zip(key_texts(items, len(names)), users.tolist(), strict=True):
                yield names, texts, count

    def _release(self, number: int) -> Release:
        items, _ = self._rows(number)
        keys = self.keys.keys_of(number)
        known = self._marks(number) if KNOWN_MARKS in self.table.column_names else None
        source = self.token_source if not keys.columns else "items"
        return Release.from_items(items, self.plan, self.guarantee, source, keys, known)

    def _marks(self, number: int) -> "Bools":
        """Return, for the values of a set in the order of their bytes, whether each was on the list of its column."""
        mine = self.table.filter(pc.equal(self.table["set"], number))
        if KNOWN_MARKS not in mine.column_names:
            return np.zeros(len(mine), np.bool_)
        order = pc.array_sort_indices(joined(mine["item"]).cast(pa.large_binary()))
        return np.asarray(joined(mine[KNOWN_MARKS]).take(order)).astype(np.bool_)

    def _rows(self, number: int) -> tuple[pa.LargeStringArray, "Int64s"]:
        """Return the items of a set in the order of their bytes, and their noisy numbers of users, or zeros."""
        chosen = pc.equal(self.table["set"], number)
        mine = self.table.filter(chosen)
        items = joined(mine["item"])
        users = numbers_of(joined(mine["users"])) if self.error is not None else np.zeros(len(items), np.int64)
        order = numbers_of(pc.array_sort_indices(items.cast(pa.large_binary()))).astype(np.int64)
        return items.take(int64_array(order)), users[order].astype(np.int64)

    def _each(self) -> Iterator[tuple[int, tuple[str, ...], pa.LargeStringArray, "Int64s"]]:
        """Yield the number of each set, its columns, its items and their noisy numbers of users."""
        return ((number, names, *self._rows(number)) for number, names in enumerate(self.keys.sets))

    def _write(self, folder: str | PathLike[str], *, overwrite: bool) -> None:
        content = {
            **record_of(self),
            "token_source": self.token_source,
            "columns": [{"name": each.name, "type": each.kind} for each in self.keys.columns],
            "text": list(self.keys.texts),
            "joint": [list(names) for names in self.keys.joint],
            "alone": self.keys.alone,
            "error": self.error,
            "cover": {name: each._asdict() for name, each in self.cover.items()},
        }
        tables = {PROFILE.tables[0]: write_parquet(self.table)}
        PROFILE.save(content, tables, self._page, folder, overwrite=overwrite)

    def _page(self, checksums: Mapping[str, str]) -> bytes:
        marks = np.concatenate([np.empty(0, np.bool_), *map(self._marks, range(len(self.keys.sets)))]).tolist()
        pairs = zip(self.each_text(), marks, strict=True)
        rows = [((" × ".join(names), *texts), users, mark) for (names, texts, users), mark in pairs]
        rows.sort(key=lambda row: (len(row[0]), [token.encode() for token in row[0]]))
        grams = [gram for gram, _, _ in rows]
        sizes = dict(sorted(Counter(map(len, grams)).items()))
        counts = None if self.error is None else np.array([max(0, users) for _, users, _ in rows], np.int64)
        known = np.array([mark for _, _, mark in rows], np.int64) if KNOWN_MARKS in self.table.column_names else None
        story = replace(story_of(self.plan.to_dict(), sizes), summary=self._grid())
        return page_of(story, self, sizes, table_of_lists(grams), "items", counts, checksums, known=known)

    def _grid(self) -> "Grid":
        """Return a row for each column and combination."""
        rows, alone = [], self.keys.alone
        sizes = [] if alone else [len(self._rows(number)[0]) for number in range(len(self.keys.columns))]
        tried = set(self.keys.joint) if alone else set(self.keys.sizes_of(sizes))
        for number, names, items, users in self._each():
            keys = self.keys.keys_of(number)
            kind = " × ".join(each.kind for each in keys.columns) or "words"
            first = items.take(int64_array(np.argsort(-users, kind="stable")[:MOST_NAMED]))
            shown = [" · ".join(printable([text]) for text in texts) for texts in key_texts(first, len(names))]
            cover = self.cover.get(" x ".join(names)) if alone or len(names) == 1 else None
            share = "–" if cover is None else cover.shown(len(items)) or "–"
            if len(names) > 1 and names not in tried:
                shown = [f"omitted: more than {MOST_CANDIDATES:,} combinations of released values"]
            rows.append([" × ".join(names), kind, f"{len(items):,}", share, ", ".join(shown)])
        head = ["column", "type", "released", "cover", "values"]
        note = "Some released values of each column. All are listed below."
        if self.error is not None:
            note = (
                "The released values with the largest noisy numbers of users, each within "
                f"{self._reach:,.3g} of the number without noise with probability 0.95. "
                "Cover is the mean share of a user's rows in the "
                "column whose value is released, with 95 % confidence."
            )
        if alone:
            note = f"{note} {ONLY_NOISE}"
        return Grid("Columns", head, rows, note)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[tuple[tuple[str, ...], Any, int | None]]:
        """Yield the columns, the value and the noisy number of users, one column after another."""
        for number, names, items, users in self._each():
            values = self.keys.keys_of(number).values(items)
            for value, count in zip(values, users.tolist(), strict=True):
                yield names, value, None if self.error is None else count

    def __eq__(self, other: object) -> bool:
        """Compare all fields except the metadata."""
        if not isinstance(other, Profile):
            return NotImplemented
        mine, theirs = (
            (
                each.keys,
                each.table,
                dict(each.cover),
                each.guarantee,
                each.token_source,
                each.error,
                each.plan.to_dict(),
            )
            for each in (self, other)
        )
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Profile({len(self):,} values of {len(self.keys.columns):,} columns, {self.guarantee})"

    def _repr_html_(self) -> str:
        """Return the guarantee and a row for each column, for a notebook."""
        grid = self._grid()
        title = f"A profile of {len(self.keys.columns):,} columns: {len(self):,} values"
        lines = [str(self.guarantee), "profile.columns[name] is a release; profile.counts(name) has the counts."]
        rows = [tuple(row[:3]) for row in grid.rows[:SAMPLE_SIZE]]
        return card(title, lines, tuple(grid.head[:3]), rows, cautions(self.guarantee))


def contradictions(profile: Profile, plan: Any) -> list[str]:
    """Return descriptions of the contents of a profile that no release of its plan can have, or an empty list.

    Args:
        profile: The loaded profile.
        plan: The plan of the profile, computed again from its settings.
    """
    keys, table, wrong = profile.keys, profile.table, list[str]()
    schema = {"set": pa.int32(), "item": pa.large_string()}
    if keys.alone or plan.counting:
        schema["users"] = pa.int64()
    lists = None if keys.alone else plan.mechanism.known_columns
    if lists is not None:
        schema[KNOWN_MARKS] = pa.bool_()
    if keys != plan.mechanism.keys or {each.name: each.type for each in table.schema} != schema:
        return ["the set of columns"]
    sets = numbers_of(joined(table["set"]).cast(pa.int64()).fill_null(-1))
    if any(each.null_count for each in table.columns) or not np.isin(sets, np.arange(len(keys.sets))).all():
        return ["the set of a value"]
    if table.select(["set", "item"]).group_by(["set", "item"]).aggregate([]).num_rows != table.num_rows:
        wrong.append("a value that occurs twice")
    for number, names, items, _ in profile._each():
        kinds = keys.keys_of(number)
        listed = lists.sizes.get(names[0], 0) if lists is not None and len(names) == 1 else 0
        if profile._marks(number).sum() > listed:
            wrong.append("the mark of a value on a list")
        if (
            kinds.columns
            and kinds.spell([joined(each) for each in kinds.table(items).columns]).to_pylist() != items.to_pylist()
        ):
            wrong.append("the spelling of a value")
        singles = [] if keys.alone or len(names) == 1 else [profile._rows(keys.names[name])[0] for name in names]
        parts = split_texts(items, len(names)) if singles else []
        if not all(pc.all(pc.is_in(*pair)).as_py() is not False for pair in zip(parts, singles, strict=True)):
            wrong.append("a joint value without its single values")
    if lists is not None and sum(lists.sizes.values()) != lists.size:
        wrong.append("the size of a list")
    if keys.alone:
        items, users = joined(table["item"]), numbers_of(joined(table["users"])).astype(np.int64)
        consistent = load_object("voxpop.mechanisms.profile.releasing:consistent_counts")
        if users.min(initial=plan.least_count) < plan.least_count:
            wrong.append("the smallest count")
        if consistent(keys.sets, sets.astype(np.int32), items, users).tolist() != users.tolist():
            wrong.append("the count of a margin")
    return wrong + _wrong_cover(profile, plan)


def _wrong_cover(profile: Profile, plan: Any) -> list[str]:
    """Return descriptions of the contents of the cover that no release of its plan can have."""
    error = plan.cover_error
    sets = profile.keys.sets if profile.keys.alone else [(each.name,) for each in profile.keys.columns]
    if {*profile.cover} != (set() if error is None else {" x ".join(names) for names in sets}):
        return ["the cover"]
    sums = [(each.covered * SUMS_OF_ONE, each.other * SUMS_OF_ONE) for each in profile.cover.values()]
    if not all(number.is_integer() for pair in sums for number in pair):
        return ["a sum of the cover"]
    released = {names[0] for _, names, items, _ in profile._each() if len(items)}
    if not profile.keys.alone and any(each.covered and name not in released for name, each in profile.cover.items()):
        return ["the cover of a column without released values"]
    return [] if all(isclose(each.error, error) for each in profile.cover.values()) else ["the error of the cover"]


def profile_of(record: Mapping[str, Any], tables: Mapping[str, bytes]) -> Profile:
    """Restore the profile from a record and its tables."""
    columns = tuple(KeyColumn(str(each["name"]), str(each["type"])) for each in record["columns"])
    keys = TypedKeys(columns, tuple(record["text"]), tuple(map(tuple, record["joint"])), record["alone"])
    cover = {
        str(name): ColumnCover(*(float(each[field]) for field in ColumnCover._fields))
        for name, each in record["cover"].items()
    }
    table, token_source, error = read_parquet(tables[PROFILE.tables[0]]), str(record["token_source"]), record["error"]
    profile = Profile(keys, table, cover, token_source=token_source, error=error, **restored(record))
    profile.to_list()  # This checks the values.
    return profile
