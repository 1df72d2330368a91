"""Options that commands share: a dataclass of them is one parameter of a command, and its fields are the options."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from voxpop.cli.engines import Engine, Master, Partitions
from voxpop.cli.options import (
    Dataset,
    Delimiter,
    Delta,
    Encoding,
    Epsilon,
    Html,
    Items,
    Json,
    LedgerFile,
    Memory,
    Operator,
    Order,
    Output,
    Overwrite,
    Purpose,
    Seed,
    Sequence,
    Session,
    Sources,
    Text,
    Title,
    Tokenizer,
    Tokens,
    User,
    WorkFolder,
    budget_of,
    paused,
    separated,
)
from voxpop.errors import InputError

if TYPE_CHECKING:
    from voxpop.privacy.budget import Budget


def bundled(command: Callable[..., None]) -> Callable[..., None]:
    """Spell out a command's dataclasses, field by field, and put them together when it is called."""
    spelled: dict[str, inspect.Parameter] = {}
    bundles: dict[str, Any] = {}
    for name, each in inspect.signature(command).parameters.items():
        if is_dataclass(each.annotation):
            bundles[name] = each.annotation
            spelled |= _spelled(each.annotation)
        else:
            spelled[name] = each.replace(kind=inspect.Parameter.KEYWORD_ONLY)

    def run(**given: Any) -> None:
        built = {name: _built(kind, given) for name, kind in bundles.items()}
        command(**given, **built)

    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__annotations__ = {name: each.annotation for name, each in spelled.items()}
    run.__signature__ = inspect.Signature(list(spelled.values()))  # type: ignore[attr-defined]
    return run


def _spelled(bundle: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters that a bundle stands for, those of bundles in it included."""
    spelled: dict[str, inspect.Parameter] = {}
    for each in fields(bundle):
        inner = is_dataclass(each.type)
        spelled |= _spelled(each.type) if inner else {each.name: _parameter(each.name, each.type, each.default)}
    return spelled


def _built(bundle: Any, given: dict[str, Any]) -> Any:
    """Return a bundle of what was given, which is taken out of it."""
    return bundle(
        **{
            each.name: _built(each.type, given) if is_dataclass(each.type) else given.pop(each.name)
            for each in fields(bundle)
        }
    )


def _parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:
    given = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=given, annotation=kind)


@dataclass(frozen=True)
class Where:
    """What is read, what makes events sequences, and within which memory."""

    source: Sources
    user: User = None
    order: Order = None
    session: Session = None
    tokenizer: Tokenizer = "words"
    html: Html = False
    delimiter: Delimiter = None
    encoding: Encoding = None
    memory: Memory = None
    work_folder: WorkFolder = None

    @property
    def reading(self) -> dict[str, Any]:
        """Further arguments of `voxpop.read`."""
        return {
            "order": self.order,
            "session": paused(self.session),
            "html": self.html,
            "delimiter": separated(self.delimiter),
            "encoding": self.encoding,
            "memory": self.memory,
            "work_folder": self.work_folder,
        }


@dataclass(frozen=True)
class Columns:
    """The column of what users hold."""

    text: Text = None
    tokens: Tokens = None
    items: Items = None
    sequence: Sequence = None


@dataclass(frozen=True)
class OrderedColumns:
    """The same, where order matters."""

    text: Text = None
    tokens: Tokens = None
    sequence: Sequence = None


@dataclass(frozen=True)
class SequenceColumns:
    """The same, where it is a sequence first of all."""

    sequence: Sequence = None
    text: Text = None
    tokens: Tokens = None


@dataclass(frozen=True)
class Spend:
    """What may be spent."""

    epsilon: Epsilon = None
    delta: Delta = None

    @property
    def budget(self) -> "Budget":
        """The budget, which must have both numbers."""
        return budget_of(self.epsilon, self.delta)


@dataclass(frozen=True)
class SequenceSpend:
    """What may be spent where only an alphabet that is to be found costs delta."""

    epsilon: Epsilon = None
    delta: Delta = None

    @property
    def budget(self) -> "Budget":
        """The budget.

        Raises:
            InputError: if epsilon is missing or out of range.
        """
        from voxpop.privacy.budget import Budget

        if self.epsilon is None:
            raise InputError(
                "--epsilon is missing: give the privacy budget, such as --epsilon 1 (1 is strong, 4 is common). "
                "Sequences need no delta, but for --alphabet find."
            )
        return Budget(self.epsilon, 0.0 if self.delta is None else self.delta)


@dataclass(frozen=True)
class Charge:
    """Who pays."""

    ledger: LedgerFile = None
    dataset: Dataset = None
    seed: Seed = None


@dataclass(frozen=True)
class Place:
    """Where it runs."""

    engine: Engine = "local"
    master: Master = None
    partitions: Partitions = None


@dataclass(frozen=True)
class Question:
    """What a question about a saved release takes: who is asked, who pays how much, and where it runs."""

    where: Where
    columns: Columns
    spend: Spend
    charge: Charge
    place: Place


@dataclass(frozen=True)
class Result:
    """What becomes of it."""

    output: Output
    overwrite: Overwrite = False
    json: Json = False
    title: Title = None
    purpose: Purpose = None
    operator: Operator = None

    def said(self, dataset: str | None) -> dict[str, str]:
        """Return what the report says of the release, as `save` takes it: what is given, and the day."""
        from datetime import date

        given = {"title": self.title, "dataset": dataset, "purpose": self.purpose, "operator": self.operator}
        return {name: text for name, text in given.items() if text is not None} | {"date": date.today().isoformat()}

    def check_said(self, dataset: str | None) -> None:
        """Refuse what cannot stand in a report, before any work is put into it."""
        from voxpop.release.about import NOTHING_SAID

        NOTHING_SAID.stated(self.said(dataset))


ONE_MACHINE = Place()
