"""The options that commands share, and what they are turned into."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxpop.errors import InputError

if TYPE_CHECKING:
    from voxpop.privacy.budget import Budget

Epsilon = Annotated[
    float | None, typer.Option(help="Privacy budget, above 0: 1 is strong, 4 is common.", show_default=False)
]
Delta = Annotated[
    float | None,
    typer.Option(help="Probability with which the promise of epsilon may fail, such as 1e-7.", show_default=False),
]
Limit = Annotated[
    int | None, typer.Option(help="Most items of one user in a round; 100 if left out.", show_default=False)
]
WeightingName = Annotated[str, typer.Option("--weighting", help="count, weighted, l1-descent or l2-descent.")]
UnionWeighting = Annotated[
    str, typer.Option("--weighting", help="adaptive (releases most), count, weighted, l1-descent or l2-descent.")
]
Noise = Annotated[str, typer.Option(help="gaussian or laplace. l1-descent needs laplace, l2-descent gaussian.")]
Alpha = Annotated[
    float | None,
    typer.Option(help="Weight stops rising at threshold + alpha * scale (descent weightings).", show_default=False),
]
PhraseAlpha = Annotated[float, typer.Option("--alpha", help="Weight stops rising at threshold + alpha * scale.")]
Rounds = Annotated[int, typer.Option(help="Rounds; what one releases is left out of the next.")]
Accounting = Annotated[str, typer.Option(help="joint (exact), published (delta/2 + delta/2) or set-only (items).")]
Cap = Annotated[
    float | None, typer.Option(help="Most weight of a user on one item (set-only accounting).", show_default=False)
]
Pool = Annotated[
    int | None,
    typer.Option(
        help="Items of a user that adaptive rounds draw from; the limit, but at least 60.", show_default=False
    ),
]
AtLeast = Annotated[
    int | None,
    typer.Option("--at-least", help="Users below which an item stays away, but for --beta.", show_default=False),
]
Beta = Annotated[
    float | None,
    typer.Option(help="How likely an item of fewer users is released; 1e-6 if left out.", show_default=False),
]
MaxLength = Annotated[int, typer.Option(help="Most tokens in a phrase.")]
Limits = Annotated[str, typer.Option("--limit", help="Most phrases of one user at each length: a number, or a list.")]
Eta = Annotated[float, typer.Option(help="Share of released phrases that may be spurious.")]
Guide = Annotated[bool, typer.Option("--guide/--no-guide", help="Vote for likely phrases only, by a cheap forecast.")]
Pruning = Annotated[str, typer.Option(help="both or single: which parts of a phrase must be released before it.")]
Values = Annotated[
    str | None,
    typer.Option(help="What a phrase of each length is worth, as 1,1,4: the budget follows. All the same by default."),
]
Budgets = Annotated[str, typer.Option(help="How lengths share the budget: auto, equal, a ratio, or a list of shares.")]
Thresholds = Annotated[str, typer.Option(help="votes (lower for likely phrases, by how votes came out) or published.")]
Measurement = Annotated[float, typer.Option(help="Share of a length's budget that its forecast costs.")]
Words = Annotated[
    str | None,
    typer.Option(
        help="adaptive: words come in adaptive rounds, as items do (the default, where it can be); or once.",
        show_default=False,
    ),
]
Spending = Annotated[
    str | None,
    typer.Option(
        help="individual: users pay only where they hold a candidate (the default, where it can be); or shared.",
        show_default=False,
    ),
]
Prevote = Annotated[
    bool,
    typer.Option("--prevote/--no-prevote", help="Ask about unlikely phrases, too, at lengths 2 to 5: takes memory."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
Seed = Annotated[
    int | None, typer.Option(help="Make the release reproducible and NOT PRIVATE, for tests only.", show_default=False)
]
Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...", help="Parquet, CSV, TSV or JSONL files, folders or patterns.", show_default=False
    ),
]
User = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column that says whose a row is.", show_default=False)
]
Text = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of text, to be cut into words.", show_default=False)
]
Tokens = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of lists of words, already cut.", show_default=False)
]
Items = Annotated[
    str | None,
    typer.Option("--items", metavar="COLUMN", help="Column of items, or of lists of them.", show_default=False),
]
Sequence = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of lists in which order matters.", show_default=False)
]
Order = Annotated[
    str | None,
    typer.Option(
        "--order",
        metavar="COLUMN",
        help="Column of times: rows are events, --sequence one of them.",
        show_default=False,
    ),
]
Session = Annotated[
    str | None, typer.Option(metavar="PAUSE", help="Longest pause in a sequence, such as 30min.", show_default=False)
]
Tokenizer = Annotated[
    str, typer.Option(help="How to cut text: words, unicode, whitespace, characters or regex:PATTERN.")
]
Html = Annotated[bool, typer.Option("--html", help="Texts are HTML: read what is seen of them.")]
Delimiter = Annotated[
    str | None,
    typer.Option(metavar="CHARACTER", help="What separates the columns of CSV, or tab; found.", show_default=False),
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="How letters of CSV are written, such as cp1252; UTF-8.", show_default=False),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Most memory to use, such as 2GiB; the rest goes to work files.", show_default=False
    ),
]
WorkFolder = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder for work files; by default TMPDIR.", show_default=False)
]
Output = Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder to save to.", show_default=False)]
LedgerFile = Annotated[
    Path | None,
    typer.Option(
        "--ledger", metavar="FILE", help="Ledger to charge first; see voxpop ledger init.", show_default=False
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Name of the data set: in the report, and in the ledger if one is given.",
        show_default=False,
    ),
]
Title = Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the report.", show_default=False)]
Purpose = Annotated[
    str | None, typer.Option(metavar="TEXT", help="What the release is for, for the report.", show_default=False)
]
Operator = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Who makes the release, for the report.", show_default=False)
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there already.")]
Saved = Annotated[Path, typer.Argument(metavar="DIR", help="A folder that a release was saved to.")]


def budget_of(epsilon: float | None, delta: float | None) -> "Budget":
    """Return the budget of a call, which must state both of its numbers.

    Raises:
        InputError: if one is missing or out of range.
    """
    from voxpop.privacy.budget import Budget

    if epsilon is None:
        raise InputError(
            "--epsilon is missing: give the privacy budget, such as --epsilon 4 (1 is strong, 4 is common)."
        )
    if delta is None:
        raise InputError(
            "--delta is missing: give the probability with which the promise of epsilon may fail, such as --delta "
            "1e-7. It must be public and far below one over the number of users, never computed from the data; "
            "1e-7 to 1e-10 are usual."
        )
    return Budget(epsilon, delta)


def numbers_of(option: str, text: str, kind: type) -> list[Any]:
    """Return numbers with commas between them.

    Raises:
        InputError: if one cannot be read.
    """
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        also = "auto, equal, " if kind is float else ""
        raise InputError(f"{option} must be {also}a number, or numbers with commas between them; got {text}.") from None


def separated(delimiter: str | None) -> str | None:
    """Return a delimiter as it stands in files: a tab is hard to type."""
    return "\t" if delimiter in ("tab", "\\t") else delimiter


def paused(session: str | None) -> str | float | None:
    """Return the longest pause of a session: a length of time as it is, or a number in the unit of the order."""
    try:
        return None if session is None else float(session)
    except ValueError:
        return session
