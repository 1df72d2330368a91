"""The public configurations of profiles and of keys with counts, and the function that releases a profile."""

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, cast, final

from voxpop.errors import InputError
from voxpop.files.progress import tell
from voxpop.mechanisms.profile.constants import IDENTIFIERS, PROFILED
from voxpop.privacy.budget import LARGEST_LIMIT, Budget, check_budget, check_whole
from voxpop.privacy.planned import Mechanism
from voxpop.reading.keys import KeyColumn, family, is_list, plain_type
from voxpop.reading.text_files import CSV
from voxpop.reading.typed_keys import TypedKeys
from voxpop.reading.types import declared_types
from voxpop.reading.wanted import ReadOptions, Request, Tokenizer

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus
    from voxpop.mechanisms.profile.plan import KeysPlan, ProfilePlan
    from voxpop.privacy.planned import Account
    from voxpop.reading.choices import TextTokenizer
    from voxpop.release.known import Known, KnownColumns
    from voxpop.release.profile import Profile

Joint = Literal["pairs"] | Sequence[Sequence[str]] | None


class TypedMechanism(Mechanism["Corpus", "Profile"]):
    """The base class of mechanisms that read typed columns of a table."""

    @property
    @abstractmethod
    def keys(self) -> TypedKeys:
        """The columns and their combinations."""

    def read(
        self,
        source: Any,
        *,
        user: str | list[str],
        types: Mapping[str, Any] | None = None,
        tokenizer: "TextTokenizer" = "words",
        csv: CSV | None = None,
        options: ReadOptions | None = None,
    ) -> "Corpus":
        """Read the columns of a table for `release`; see `voxpop.profile` for the arguments."""
        from voxpop.engine.read import checked, read_wanted

        users, names = ([user] if isinstance(user, str) else list(user)), list(self.keys.names)
        used = {name: kind for name, kind in (types or {}).items() if name in {*users, *names}}
        declared = declared_types(used, [*users, *names])
        how, dialect = checked("options", options, ReadOptions), checked("csv", csv, CSV)
        cut = Tokenizer(tokenizer)
        request = Request(users, "tokens", names, cut, types=declared, typed=self.keys, options=how, csv=dialect)
        return read_wanted(source, request)


@final
@dataclass(frozen=True)
class ProfileMechanism(TypedMechanism):
    """Release the values that many users share, for all columns of a table.

    This is the configuration of `voxpop.profile`.

    One set union runs over the values of all columns and the words of texts together. Each user divides one unit of
    weight among them. Columns with few values are released first, so they cost the other columns nothing. Joint values
    are found among the combinations of released values. These combinations are public and therefore need fewer users.

    Attributes:
        columns: The type of each column by name, as Arrow prints it. The types must be declared, not inferred from the
            values.
        text: The names of the text columns. The words in these columns are released.
        joint: The combinations of columns. The joint values of these columns are released in addition to the single
            values. The expected number of released joint values without users is at most 0.1.
        counts: Whether noisy counts of users and the cover of each column are released.
        left_out: The names of the excluded columns and the reasons for their exclusion, which are only recorded.
        known: Public lists of values or words by column, each in a form that `voxpop.Items` accepts, or None.

    Raises:
        InputError: A combination is empty, a type has no exact values, or a list does not fit its column.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> table = pl.DataFrame({"who": range(3000), "city": ["Delft", "Lund"] * 1500, "price": [1.5] * 3000})
        >>> profiling = vp.ProfileMechanism.of(table, user="who")
        >>> profiling.columns, profiling.left_out
        ({'city': 'string'}, {'price': 'double'})
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    text: Sequence[str] = ()
    joint: Sequence[Sequence[str]] = ()
    counts: bool = True
    left_out: Mapping[str, str] = field(default_factory=dict)
    known: "Mapping[str, Known] | None" = None

    def __post_init__(self) -> None:
        """Check the columns, the combinations and the public lists."""
        keys = self.keys
        if self.known is not None:
            from voxpop.release.known import KnownColumns

            object.__setattr__(self, "known", KnownColumns.of(self.known, keys))

    @property
    def known_columns(self) -> "KnownColumns | None":
        """The public lists, if there are any."""
        return cast("KnownColumns | None", self.known)

    @cached_property
    def keys(self) -> TypedKeys:
        """The columns and their combinations."""
        return TypedKeys(_exact_columns(self.columns), tuple(self.text), tuple(map(tuple, self.joint)))

    @classmethod
    def of(
        cls,
        source: Any,
        *,
        user: str | list[str],
        text: Sequence[str] = (),
        columns: Sequence[str] | None = None,
        joint: Joint = None,
        counts: bool = True,
        known: "Mapping[str, Known] | None" = None,
        types: Mapping[str, Any] | None = None,
        csv: CSV | None = None,
    ) -> "ProfileMechanism":
        """Choose the columns of a table by their names and declared types. Values are not read.

        `voxpop.profile` describes all arguments.

        Args:
            source: The table.
            user: The user column.
            text: The text columns.
            columns: The columns of the profile.
            joint: The combinations of columns.
            counts: Whether counts and cover are released.
            known: The public lists by column.
            types: The types of the columns that the source does not declare.
            csv: The format of CSV files.
        """
        from voxpop.engine.read import declared_schema

        users, texts = ([user] if isinstance(user, str) else list(user)), list(_only_texts("text", text))
        columns = None if columns is None else _only_texts("columns", columns)
        sets = () if joint == "pairs" else _sets_of(joint)
        combined = [name for names in sets for name in names]
        declared = declared_schema(source, csv, dict(types or {}), [*users, *texts, *(columns or ()), *combined])
        wanted = None if columns is None else [*columns, *texts]
        _check_columns([*texts, *(wanted or ()), *combined], declared)
        chosen, left_out = dict[str, str](), dict[str, str]()
        for name, kind in declared.items():
            if name in users:
                continue
            reason = None if name in texts else _reason(name, kind)
            if name in wanted if wanted is not None else reason is None:
                chosen[name] = "string" if name in texts else str(plain_type(kind))
            else:
                left_out[name] = "not chosen" if wanted is not None else str(reason)
        if not chosen:
            reason = "`columns` is an empty list" if wanted == [] else "names or types exclude all"
            raise InputError(f'no column is left for the profile: {reason}. Name columns, such as columns=["city"].')
        if other := next((name for name in combined if name in left_out), None):
            raise InputError(
                f'`joint` contains the column "{other}", which is not part of the profile ({left_out[other]}). Name it '
                "in `columns` too, or remove it from `joint`."
            )
        if joint == "pairs":
            sets = tuple(combinations([name for name in chosen if name not in texts], 2))
        return cls(chosen, tuple(texts), sets, counts, left_out, known)

    def plan(self, budget: Budget) -> "ProfilePlan":
        """Compute the noise for a budget, without data.

        Args:
            budget: The budget of the whole profile.

        Raises:
            BudgetError: No threshold can satisfy the budget.
        """
        from voxpop.mechanisms.profile.plan import plan_profile

        check_budget(budget)
        return plan_profile(self, budget)

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        return {
            "mechanism": "profile",
            "columns": dict(self.columns),
            "text": list(self.text),
            "joint": [list(names) for names in self.joint],
            "counts": self.counts,
            "left_out": dict(self.left_out),
            **({} if self.known_columns is None else {"known": self.known_columns.to_dict()}),
        }


@final
@dataclass(frozen=True)
class KeyCounts(TypedMechanism):
    """Release the keys that many users share in a table, with counts, as a private GROUP BY.

    This is the configuration of `voxpop.profile` with combinations and without columns. The keys and their counts are a
    single release. If users have few keys each, one noisy number per key decides whether the key is released, and this
    number is also its count. Otherwise adaptive rounds find the keys, and counts are released afterwards. The release
    chooses between these two methods privately.

    Attributes:
        columns: The type of each column by name, as Arrow prints it. The types must be declared, not inferred from the
            values.
        joint: The columns of each set of keys. A set with some columns of another set contains margins of that set.
        max_keys_per_user: A public bound on the number of keys per user in all sets together, such as 1 if each account
            has one plan. With a bound, the release makes no private choice. If a user has more keys, this number of
            them is drawn at random.
        other_rows: Whether the rows of keys that are not released are also measured.
        repeated: Whether the release is one of many, such as one every week. If so, rounds run for all users, because
            the costs of rounds in many releases add up as squares (mu^2). From about 12 releases on, rounds find more
            keys per release.

    Raises:
        InputError: A combination is empty, a type has no exact values, or the limit is out of range.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> table = pl.DataFrame({"account": range(3000), "plan": ["free", "team", "free"] * 1000})
        >>> keyed = vp.KeyCounts.of(table, user="account", joint=[("plan",)], max_keys_per_user=1)
        >>> found = keyed.release(keyed.read(table, user="account"), vp.Budget(1, 1e-8), seed=1)
        >>> found.counts("plan").to_pydict()["plan"]
        ['free', 'team']
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    joint: Sequence[Sequence[str]] = ()
    max_keys_per_user: int | None = None
    other_rows: bool = True
    repeated: bool = False

    def __post_init__(self) -> None:
        """Check the combinations and the limit."""
        _ = self.keys
        if self.max_keys_per_user is not None:
            check_whole(
                "max_keys_per_user", self.max_keys_per_user, LARGEST_LIMIT, "the maximum number of keys per user"
            )

    @cached_property
    def keys(self) -> TypedKeys:
        """The combinations of columns."""
        return TypedKeys(_exact_columns(self.columns), (), tuple(map(tuple, self.joint)), alone=True)

    @classmethod
    def of(
        cls,
        source: Any,
        *,
        user: str | list[str],
        joint: Sequence[Sequence[str]],
        max_keys_per_user: int | None = None,
        other_rows: bool = True,
        repeated: bool = False,
        types: Mapping[str, Any] | None = None,
        csv: CSV | None = None,
    ) -> "KeyCounts":
        """Read the types of the columns from the schema of a table. Values are not read.

        `voxpop.profile` describes all arguments.

        Args:
            source: The table.
            user: The user column.
            joint: The columns of each set of keys.
            max_keys_per_user: A public bound on the number of keys per user.
            other_rows: Whether the rows of keys that are not released are also measured.
            repeated: Whether the release is one of many.
            types: The types of the columns that the source does not declare.
            csv: The format of CSV files.
        """
        from voxpop.engine.read import declared_schema

        users, sets = ([user] if isinstance(user, str) else list(user)), _sets_of(joint)
        names = list(dict.fromkeys(name for names in sets for name in names))
        declared = declared_schema(source, csv, dict(types or {}), [*users, *names])
        _check_columns(names, declared)
        return cls(
            {name: str(plain_type(declared[name])) for name in names}, sets, max_keys_per_user, other_rows, repeated
        )

    def plan(self, budget: Budget) -> "KeysPlan":
        """Compute the noise for a budget, without data.

        Args:
            budget: The budget of the keys, the counts and the rows of other keys together.

        Raises:
            BudgetError: No threshold can satisfy the budget.
        """
        from voxpop.mechanisms.profile.plan import plan_keys

        if not self.keys.joint:
            raise InputError('`joint` must name the columns of a key. Write joint=[("country", "product")].')
        check_budget(budget)
        return plan_keys(self, budget)

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        return {
            "mechanism": "keys",
            "columns": dict(self.columns),
            "joint": [list(names) for names in self.joint],
            "max_keys_per_user": self.max_keys_per_user,
            "other_rows": self.other_rows,
            "repeated": self.repeated,
        }


def _sets_of(joint: Any) -> tuple[tuple[str, ...], ...]:
    """Return the columns of each set. Strings are rejected, because they would be split into letters."""
    sets = () if joint is None else joint
    listed = isinstance(sets, Iterable) and not isinstance(sets, str)
    found = tuple(sets) if listed else ("",)
    if not all(isinstance(names, Iterable) and not isinstance(names, str) for names in found):
        raise InputError(
            "each entry of `joint` must list columns, but one of them does not. Write a list of lists, such as "
            'joint=[("country",)].'
        )
    return tuple(_only_texts("joint", names) for names in found)


def _only_texts(what: str, names: Iterable[Any]) -> tuple[str, ...]:
    """Return the names of columns as a tuple. Other values, such as numbers, are rejected before the schema is read."""
    found = tuple(names)
    if not all(isinstance(name, str) for name in found):
        raise InputError(f"`{what}` must contain names of columns, which are strings. Write the names in quotes.")
    return found


def _check_columns(names: Sequence[str], declared: Mapping[str, Any]) -> None:
    for name in names:
        if name not in declared:
            raise InputError(f'the source has no column "{name}". Choose from {", ".join([*declared][:20]) or "none"}.')


def _exact_columns(columns: Mapping[str, str]) -> tuple[KeyColumn, ...]:
    """Return the columns. Raise an error if the values of a column are not exact."""
    found = tuple(KeyColumn(name, kind) for name, kind in columns.items())
    for each in found:
        try:
            known = family(each.type) is not None
        except (ValueError, TypeError):
            known = False
        if not known:
            raise InputError(
                f'the column "{each.name}" has the type {each.kind}, whose values are not exact. Remove it, or '
                "cast it to whole numbers, decimals or strings first."
            )
    return found


def _reason(name: str, kind: Any) -> str | None:
    """Return the reason why a column is excluded by default, or None if it is included."""
    # Words end at punctuation, at digits, and before a capital letter, as in order_id, orderId, customerID or id2.
    words = [word.lower() for word in re.split(r"[\W\d_]+|(?<=[^\W\d_A-Z])(?=[A-Z])", name) if word]
    if words and words[-1] in IDENTIFIERS:
        return "an identifier by its name"
    if is_list(kind) or family(plain_type(kind)) not in PROFILED:
        return str(kind)
    return None


def profile(
    source: Any,
    *,
    user: str | list[str],
    budget: Budget,
    text: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    joint: Joint = None,
    counts: bool = True,
    known: "Mapping[str, Known] | None" = None,
    max_keys_per_user: int | None = None,
    other_rows: bool = True,
    repeated: bool = False,
    types: Mapping[str, Any] | None = None,
    tokenizer: "TextTokenizer" = "words",
    csv: CSV | None = None,
    options: ReadOptions | None = None,
    ledger: "Account | None" = None,
    seed: int | None = None,
) -> "Profile":
    """Release the values that many users share, for all columns of a table, with counts, under one guarantee.

    If `joint` is a list and neither columns nor texts are named, the result contains only the keys of these
    combinations with their counts, as for GROUP BY and GROUPING SETS. The whole budget is spent on them.

    The plan is printed before anything runs. The plan lists the columns of the profile and the excluded columns. To see
    the plan without a release, use `vp.ProfileMechanism.of(...).plan(budget)` or `vp.KeyCounts.of(...).plan(budget)`.

    Args:
        source: A table in any form that `voxpop.read` accepts.
        user: The column or columns that identify the user of a row.
        budget: The budget of the whole profile.
        text: The text columns. The words in these columns are released.
        columns: The columns of the profile. By default, these are all columns with a declared type of strings,
            integers, booleans or dates, except columns with a name that ends like an identifier, such as `order_id`.
            The default does not depend on the values.
        joint: "pairs" for all pairs of columns that are not texts, or a list such as [("country", "city")].
        counts: Whether noisy counts and cover are released. Without them, more values are released.
        known: Public lists of values or words by column, such as {"country": vp.known.countries()}. Listed values need
            fewer users; see `voxpop.Items`. A release of keys accepts no list.
        max_keys_per_user: A public bound on the number of keys per user, such as 1 if each account has one plan. This
            argument applies only to a release of keys.
        other_rows: Whether the rows of keys that are not released are also measured, only for a release of keys.
        repeated: Whether the release is one of many, such as one every week. This argument applies only to a release of
            keys.
        types: The types of columns that the source does not declare; see `voxpop.read`.
        tokenizer: The tokenizer that splits texts into words; see `voxpop.read`.
        csv: The format of CSV files.
        options: Options for reading, such as `vp.ReadOptions(memory="2GiB")`.
        ledger: The account to charge first; see `voxpop.Ledger`.
        seed: A seed, which makes the profile reproducible and NOT private. The profile is marked as not private.

    Returns:
        The released values by column, with the guarantee of the whole profile.

    Raises:
        InputError: A column is missing, or no column remains.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> table = pl.DataFrame({"who": range(3000), "city": ["Delft", "Lund"] * 1500, "year": [2026] * 3000})
        >>> profile = vp.profile(table, user="who", budget=vp.Budget(1, 1e-8), joint="pairs")
        >>> profile.columns["city"].to_list(), profile.columns["year"].to_list()
        (['Delft', 'Lund'], [2026])
        >>> profile.joint["city", "year"].to_list()
        [('Delft', 2026), ('Lund', 2026)]
    """
    profiling = profiling_of(
        source,
        user=user,
        text=text,
        columns=columns,
        joint=joint,
        counts=counts,
        known=known,
        max_keys_per_user=max_keys_per_user,
        other_rows=other_rows,
        repeated=repeated,
        types=types,
        csv=csv,
    )
    plan: Any = profiling.plan(budget)
    tell(f"Plan of the profile:\n{plan}", None if options is None else options.progress)
    data = profiling.read(source, user=user, types=types, tokenizer=tokenizer, csv=csv, options=options)
    made: Profile = plan.release(data, ledger=ledger, seed=seed)
    return made


def profiling_of(
    source: Any,
    *,
    joint: Joint = None,
    text: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    counts: bool = True,
    known: "Mapping[str, Known] | None" = None,
    max_keys_per_user: int | None = None,
    other_rows: bool = True,
    repeated: bool = False,
    **how: Any,
) -> ProfileMechanism | KeyCounts:
    """Return the configuration that `profile` runs, either for keys only or for columns."""
    alone = bool(joint) and not isinstance(joint, str) and columns is None and not text and counts
    if alone:
        if known is not None:
            raise InputError(
                "keys with counts do not accept `known`, because nothing bounds the number of released keys that no "
                "user has (docs/privacy/known.md). Release the keys with vp.Items(known=...) and count them, or name "
                "`columns` with lists (docs/guides/dashboard.md)."
            )
        sets: Any = joint
        return KeyCounts.of(
            source, joint=sets, max_keys_per_user=max_keys_per_user, other_rows=other_rows, repeated=repeated, **how
        )
    if max_keys_per_user is not None or not other_rows or repeated:
        raise InputError(
            "`max_keys_per_user`, `other_rows` and `repeated` apply only to keys. Give joint=[...] without columns, "
            "texts and counts=False, or remove them."
        )
    return ProfileMechanism.of(source, text=text, columns=columns, joint=joint, counts=counts, known=known, **how)
