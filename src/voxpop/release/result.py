"""`Result`, the base class of all results, with the methods that they share, and `load`."""

import datetime
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sized
from contextlib import suppress
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields, replace
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar, cast, final, overload

import pyarrow as pa

from voxpop.errors import InputError, ReleaseError, on_one_line, required
from voxpop.files.folder import folder_to_read, write_file
from voxpop.kernels.threads import require_polars
from voxpop.privacy.budget import Printed
from voxpop.privacy.composition import Admission, Charged, Total, total_of
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.passes import Certificate
from voxpop.release import registry
from voxpop.release.saving import BESIDE, METADATA_KEY, RELEASE, SUMS, ResultKind, checksum, kind_in

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


LONGEST_LINE = 500
REPORT_HEIGHT, TABLE_HEIGHT = 720, 440
"""The heights in pixels of a report in a notebook, and of the charts of a result that has only a table."""


class Plan(Protocol):
    """The plan of a result. A plan has public numbers and a text."""

    def to_dict(self) -> dict[str, Any]:
        """Return the public numbers for JSON."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Metadata:
    """The operator's statements about a result, for the report. No field is computed from data.

    Attributes:
        title: title of the report.
        dataset: the source of the data.
        purpose: the purpose of the result.
        operator: the person or team who made the result.
        date: the day of the release, such as 2026-11-22.
        ledger: the ledger entry of this result, which the ledger sets.
        job: the digest of the job file that made the result. `voxpop run` sets it.

    Raises:
        InputError: If a text is not one line of at most 500 characters, or the date is not a day.
    """

    title: str = ""
    dataset: str = ""
    purpose: str = ""
    operator: str = ""
    date: str = ""
    ledger: Admission | None = None
    job: str = ""

    def __post_init__(self) -> None:
        for each in self.texts():
            value = getattr(self, each)
            if not isinstance(value, str) or len(value) > LONGEST_LINE or not (value.isprintable() or not value):
                raise InputError(f"`{each}` must be one line of at most {LONGEST_LINE} characters, for the report.")
        if self.date:
            try:
                datetime.date.fromisoformat(self.date)
            except ValueError:
                raise InputError(f"`date` must be a day such as 2026-11-22, got {self.date!r}.") from None

    def stated(self, given: Mapping[str, str | None]) -> "Metadata":
        """Return a copy with the given fields.

        A field remains unchanged if its argument is None, and the date defaults to today.
        """
        known: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        about = replace(self, **known)
        return replace(about, date=datetime.date.today().isoformat()) if known and not about.date else about

    @staticmethod
    def texts() -> list[str]:
        """Return the names of the text fields, which are all fields except the ledger entry."""
        return [each.name for each in fields(Metadata) if each.name != "ledger"]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are set, for JSON."""
        return {name: value for name, value in asdict(self).items() if value}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Metadata":
        """Return the metadata from the fields that `to_dict` returned."""
        texts = {name: values.get(name, "") for name in Metadata.texts()}
        ledger = values.get("ledger")
        return Metadata(**texts, ledger=None if ledger is None else Admission.from_dict(ledger))


NO_METADATA = Metadata()


@final
@dataclass(frozen=True, slots=True)
class Report:
    """The report or the charts of a result, as one HTML page for browsers and notebooks.

    The page makes no network requests.

    Attributes:
        html: The page.
        height: The height of the frame in notebooks, in pixels. Readers can drag the frame to another height.
    """

    html: str
    height: int = REPORT_HEIGHT

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the page to a file.

        Args:
            path: The file.
            overwrite: Whether to replace an existing file.

        Raises:
            ReleaseError: If the file exists or cannot be written.
        """
        write_file(path, self.html.encode, overwrite=overwrite)

    def __repr__(self) -> str:
        return f"Report({len(self.html):,} characters of HTML; `save(path)` writes them)"

    def _repr_html_(self) -> str:
        """Return a frame with the page, isolated from the notebook."""
        return (
            f'<iframe title="Release report" srcdoc="{escape(self.html)}" sandbox="allow-scripts allow-downloads" '
            f'style="width:100%;height:{self.height}px;border:0;resize:vertical"></iframe>'
        )


@final
@dataclass(frozen=True, slots=True)
class Saved:
    """The state of the folder of a result when it was loaded.

    Attributes:
        digest: the digest of the list of checksums, which `voxpop verify` prints, or "" if the folder has no list.
        stated: the guarantee of each result in the folder, and the ledger entry that admitted it.
    """

    digest: str
    stated: tuple[Charged, ...]


class Result(Sized, Iterable[Any], ABC):
    """The base class of `Release`, `Counts`, `Top`, `SequenceModel` and `Profile`. All parts of a result are public.

    A subclass defines `to_arrow`, the number of rows, iteration over the rows, `_write` and `_page`. All other methods
    depend on these members.

    Attributes:
        plan: the plan of the result, which contains its public numbers.
        guarantee: the privacy guarantee of this result.
        metadata: the operator's statements about the result.
    """

    plan: Plan
    guarantee: Guarantee
    metadata: Metadata
    _saved_as: ClassVar[ResultKind | None] = None
    """The kind of a result that is saved in the folder of a release."""
    _saved: Saved | None = None
    """The folder that the result was loaded from. A changed copy has no folder."""

    @property
    def total(self) -> Total:
        """The total guarantee of this result, the release that it describes, and all results in its loaded folder.

        All these results concern the same users.
        """
        return total_of(self._together if self._saved is None else self._saved.stated)

    @property
    def _stated(self) -> Charged:
        return self.guarantee, self.metadata.ledger

    @property
    def _together(self) -> tuple[Charged, ...]:
        return (self._stated,)

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """Return the result as a pyarrow table."""

    @abstractmethod
    def _repr_html_(self) -> str:
        """Return a summary for notebooks."""

    @abstractmethod
    def _page(self, checksums: Mapping[str, str]) -> bytes:
        """Return the report, which contains the checksums of the other files in the folder."""

    @abstractmethod
    def _write(self, folder: str | PathLike[str], *, overwrite: bool) -> None:
        """Write the folder of the result."""

    def save(self, folder: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Save to a folder, completely or not at all. `voxpop.load` reads the folder.

        A release writes `release.parquet` (the grams), `release.json` (plan and guarantee) and `report.html`. A model
        writes its grams, its alphabet, a record and a report. Counts and a ranking are saved in the folder of their
        release, as `counts.parquet` and `counts.json`, or `top.parquet` and `top.json`. The bytes of the files depend
        only on the result and its metadata.

        Args:
            folder: A new or empty folder, a folder that contains the same result or, for counts and a ranking, the
                folder of the release.
            overwrite: Whether to replace another result in the folder, in one step. A release also replaces the counts
                and the ranking in its folder.

        Raises:
            ReleaseError: If the folder contains anything else or cannot be written.
        """
        self._write(folder, overwrite=overwrite)

    def report(self) -> Report:
        """Return the report, one HTML page with the guarantee, the numbers of the plan and the released rows."""
        return Report(self._page({}).decode())

    def charts(self) -> Report:
        """Return the charts and tables of the report about users needed, lengths, sessions and budget.

        A notebook shows them inline.
        """
        page = self.report().html.replace("<body", "<body data-charts", 1)
        return Report(page, REPORT_HEIGHT if 'class="chart"' in page else TABLE_HEIGHT)

    def to_list(self) -> list[Any]:
        """Return the rows as Python values, in the order of iteration."""
        return list(self)

    def to_polars(self) -> "pl.DataFrame":
        """Return the table of `to_arrow` as a polars table.

        Times in zones that polars does not support are converted to UTC.
        """
        import polars as pl

        require_polars()
        table = self.to_arrow()
        try:
            return cast(pl.DataFrame, pl.from_arrow(table))
        except pl.exceptions.ComputeError:  # The zone is an offset from UTC without a name, such as +05:30.
            zoned = [pa.types.is_timestamp(each.type) and each.type.tz is not None for each in table.schema]
            fields = [
                each.with_type(pa.timestamp(each.type.unit, "UTC")) if zone else each
                for each, zone in zip(table.schema, zoned, strict=True)
            ]
            return cast(pl.DataFrame, pl.from_arrow(table.cast(pa.schema(fields))))

    def to_pandas(self) -> "pd.DataFrame":
        """Return the table of `to_arrow` as a pandas table with lists instead of arrays.

        Raises:
            InputError: If pandas is not installed.
        """
        pd = required("pandas", "to_pandas", "pandas")
        table = self.to_arrow()
        columns = zip(table.column_names, table.columns, strict=True)
        return pd.DataFrame(
            {name: each.to_pylist() if pa.types.is_nested(each.type) else each.to_pandas() for name, each in columns}
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table of `to_arrow` for any library that reads Arrow, such as polars, DuckDB and pandas."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def with_metadata(
        self,
        *,
        title: str | None = None,
        dataset: str | None = None,
        purpose: str | None = None,
        operator: str | None = None,
        date: str | None = None,
    ) -> Self:
        """Return a copy with statements about the result for the report. Omitted fields are unchanged.

        Args:
            title: Title of the report.
            dataset: The source of the data.
            purpose: The purpose of the result.
            operator: The person or team who made the result.
            date: The day, such as 2026-11-22. The default is today.

        Raises:
            InputError: If a field is not one line of at most 500 characters, or the date is not a day.
        """
        given = {"title": title, "dataset": dataset, "purpose": purpose, "operator": operator, "date": date}
        return replace(self, metadata=self.metadata.stated(given))  # type: ignore[type-var]

    def with_ledger_entry(self, entry: Admission) -> Self:
        """Return a copy that names the ledger entry that was charged for it."""
        return replace(self, metadata=replace(self.metadata, ledger=entry))  # type: ignore[type-var]

    def with_job(self, digest: str) -> Self:
        """Return a copy that names the digest of the job file that made it."""
        return replace(self, metadata=replace(self.metadata, job=digest))  # type: ignore[type-var]


Loaded = TypeVar("Loaded", bound=Result)


@overload
def load(folder: str | PathLike[str]) -> Result: ...
@overload
def load(folder: str | PathLike[str], kind: type[Loaded]) -> Loaded: ...
def load(folder: str | PathLike[str], kind: type[Result] = Result) -> Result:
    """Load a saved release, a model of sequences, a profile, or the counts or ranking of a release.

    Args:
        folder: The folder that `save` wrote.
        kind: The class of the result, such as `vp.Counts` or `vp.Top` for the counts or the ranking of a release. By
            default the main result in the folder is loaded, regardless of its class. `vp.Release`, `vp.SequenceModel`
            and `vp.Profile` raise an error for a result of another class.

    Returns:
        The result. The plan of the result contains the original numbers, but cannot run again.

    Raises:
        ReleaseError: If the folder contains no result of this class, is damaged, or has a format that this version
            cannot read.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import voxpop as vp
        >>> from voxpop.release.result import StoredPlan
        >>> words = vp.Release.from_items(pa.array(["tea"]), StoredPlan({"sigma": 1.2}), vp.Guarantee(4, 1e-7))
        >>> with tempfile.TemporaryDirectory() as here:
        ...     words.save(f"{here}/words")
        ...     again = vp.load(f"{here}/words", vp.Release)
        >>> again == words, again.plan.sigma
        (True, 1.2)
    """
    found: Result = (kind._saved_as or kind_in(folder) or RELEASE).load(folder)
    if not isinstance(found, kind):
        raise ReleaseError(
            f"{folder} contains a {type(found).__name__}, not a {kind.__name__}. Load it without a kind, "
            "or give another folder."
        )
    object.__setattr__(found, "_saved", _saved_in(folder))
    return found


def _saved_in(folder: str | PathLike[str]) -> Saved:
    source = folder_to_read(Path(folder))
    kinds = [kind_in(folder) or RELEASE, *(each for each in BESIDE if each.is_in(folder))]
    stated = tuple(charged_of(each.read(folder)[0]) for each in kinds)
    listed = source / SUMS
    return Saved(checksum(listed.read_bytes()) if listed.is_file() else "", stated)


def charged_of(record: Mapping[str, Any]) -> Charged:
    """Return the guarantee in a record, and the ledger entry that admitted the result."""
    return Guarantee.from_dict(record["guarantee"]), Metadata.from_dict(record.get(METADATA_KEY, {})).ledger


@final
@dataclass(frozen=True, slots=True, repr=False)
class StoredPlan(Printed):
    """The public numbers of the plan of a saved result. A stored plan cannot run.

    Every number is also an attribute, such as `release.plan.sigma`.

    Attributes:
        numbers: the dictionary that the plan's `to_dict` returned when the result was saved.
        certificate: all facts that the guarantee depends on, unless the result was made manually.
        transcript: all passes that ran.

    Example:
        >>> plan = StoredPlan({"mechanism": "items", "sigma": 1.2})
        >>> plan.sigma
        1.2
        >>> print(plan)
        mechanism: items
        sigma: 1.2
    """

    numbers: Mapping[str, Any]
    certificate: Certificate | None = field(default=None, compare=False)
    transcript: list[dict[str, Any]] = field(default_factory=list, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return a copy of the numbers for JSON."""
        return deepcopy(dict(self.numbers))

    def __getattr__(self, name: str) -> Any:
        """Return one of the numbers by its name."""
        # `copy` looks up names such as `__setstate__` on an instance without `numbers`.
        if name == "numbers" or name.startswith("__") or name not in self.numbers:
            raise AttributeError(f"this stored plan has no {name!r}; `to_dict()` shows what it has")
        return deepcopy(self.numbers[name])

    def __str__(self) -> str:
        """Return the text of the plan, or one line per number if the mechanism is unknown."""
        numbers = _on_lines_of_its_own(self.numbers)
        found = registry.mechanism_called(str(numbers.get("mechanism")))
        if found is not None:
            # The numbers are from another version or forged.
            with suppress(KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError):
                return str(registry.load_object(found.describe)(numbers))
        return "\n".join(f"{name.replace('_', ' ')}: {value}" for name, value in numbers.items())


def _on_lines_of_its_own(value: Any) -> Any:
    """Return the values of a plan, with strings that cannot add lines to the text of the plan."""
    if isinstance(value, Mapping):
        return {on_one_line(str(name)): _on_lines_of_its_own(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_on_lines_of_its_own, value))
    return on_one_line(value) if isinstance(value, str) else value


def _proved(record: Mapping[str, Any]) -> tuple[Certificate | None, list[dict[str, Any]]]:
    """Return the certificate and the transcript in a record."""
    certificate, transcript = record.get("certificate"), record.get("transcript", [])
    if not isinstance(transcript, list) or not all(isinstance(each, dict) and "pass" in each for each in transcript):
        raise ValueError("not a transcript")
    return None if certificate is None else Certificate.from_dict(certificate), deepcopy(transcript)


def restored(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plan, the guarantee and the metadata in a saved record, by field name."""
    return {
        "plan": StoredPlan(dict(record["plan"]), *_proved(record)),
        "guarantee": Guarantee.from_dict(dict(record["guarantee"])),
        "metadata": Metadata.from_dict(dict(record.get(METADATA_KEY, {}))),
    }
