"""`voxpop sequences`: from a table of who did what, in which order, to a model and synthetic sequences."""

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxpop.cli.bundles import Charge, Place, Result, SequenceColumns, SequenceSpend, Where, bundled
from voxpop.cli.releasing import released
from voxpop.errors import InputError

if TYPE_CHECKING:
    from voxpop.privacy.budget import Budget
    from voxpop.sequences.finding import FindingPlan
    from voxpop.sequences.model import SequenceModel
    from voxpop.sequences.plan import SequencePlan

Alphabet = Annotated[
    str | None,
    typer.Option(
        metavar="LIST|FILE|DIR|find",
        help="All symbols that may occur, which must be public: separated by commas, a file with one per line, or a "
        "folder that `voxpop items` saved. Or find: a quarter of epsilon and all of delta find them.",
        show_default=False,
    ),
]
MaxLength = Annotated[int, typer.Option(help="Most symbols of one user that count.")]
MaxGram = Annotated[int, typer.Option(help="Length of the longest gram that is counted.")]
Combine = Annotated[str, typer.Option(help="sample one of a user's sequences, or concatenate them.")]
Consistency = Annotated[str, typer.Option(help="balanced, or published (the paper's).")]
Tree = Annotated[str, typer.Option(help="What is counted: contexts (small alphabets), grams, or auto.")]
Synthesize = Annotated[int, typer.Option(min=0, help="Also save this many synthetic sequences.")]
Spend = SequenceSpend


@dataclass(frozen=True)
class Options:
    """The fields of sequences."""

    alphabet: Alphabet = None
    max_length: MaxLength = 20
    max_gram: MaxGram = 5
    combine: Combine = "sample"
    consistency: Consistency = "balanced"
    tree: Tree = "auto"

    @cached_property
    def symbols(self) -> tuple[Any, Any]:
        """The alphabet, and the release it comes from, if any."""
        return alphabet_of(self.alphabet)

    def planned(self, budget: "Budget") -> "SequencePlan | FindingPlan":
        """Return the plan.

        Raises:
            InputError: where delta is given without an alphabet to find, or missing for it.
        """
        from voxpop.sequences.sequences import FIND, Sequences

        finds = self.symbols[0] == FIND
        if finds and not budget.delta:
            raise InputError("--delta is missing: --alphabet find costs one, such as --delta 1e-7.")
        if budget.delta and not finds:
            raise InputError("--delta is for --alphabet find only: with a public alphabet sequences cost none.")
        fields: dict[str, Any] = {**asdict(self), "alphabet": self.symbols[0]}
        return Sequences(**fields).plan(budget)


@bundled
def sequences(
    where: Where,
    columns: SequenceColumns,
    options: Options,
    spend: SequenceSpend,
    charge: Charge,
    place: Place,
    result: Result,
    synthesize: Synthesize = 0,
) -> None:
    """Release a model of users' sequences, and synthetic ones from it.

    voxpop sequences visits.parquet --user user --sequence pages --epsilon 1 --alphabet home,news,sport --synthesize
    1000 -o model

    voxpop sequences visits.parquet --user user --sequence pages --epsilon 2 --delta 1e-7 --alphabet find -o model
    """
    from voxpop.cli.stages import stage
    from voxpop.sequences.saving import check_model_target, save_model

    budget = spend.budget
    result.check_said(charge.dataset)
    folder, model = released(
        lambda: check_model_target(result.output, overwrite=result.overwrite),
        lambda: options.planned(budget),
        where,
        columns,
        charge,
        place,
        reported=True,
    )
    extra = {}
    if synthesize and model.tree.counts.sum():
        with stage("Drawing"):
            extra["synthetic.parquet"] = _parquet_of(model, synthesize, charge.seed)
    model = model.saying(result.said(charge.dataset))
    save_model(model, folder, extra, overwrite=result.overwrite)
    _report(model, folder, options.symbols[1], as_json=result.json, synthetic=synthesize if extra else 0)


def alphabet_of(given: str | None) -> tuple[Any, Any]:
    """Return the symbols that a call names, and the release they come from, if any; "find" stays that word.

    Raises:
        InputError: where a file cannot be read.
    """
    from voxpop.sequences.sequences import FIND

    if given is None or given == FIND:
        return given, None
    path = Path(given)
    if path.is_dir():
        from voxpop.release.stored_release import load_release

        release = load_release(path)
        return release, release
    if path.is_file():
        try:
            return [line for line in path.read_text(encoding="utf-8").splitlines() if line], None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"--alphabet {given} is not a UTF-8 file with one symbol per line.") from error
    if "," not in given and ("/" in given or path.suffix in (".txt", ".csv", ".parquet", ".json")):
        raise InputError(
            f"--alphabet {given}: there is no such file or folder. Give one, or the symbols with commas between them."
        )
    return [symbol for symbol in given.split(",") if symbol], None


def _parquet_of(model: "SequenceModel", n: int, seed: int | None) -> bytes:
    import io

    sink = io.BytesIO()
    model.sample(n, seed).write_parquet(sink)
    return sink.getvalue()


def _report(model: "SequenceModel", folder: Path, spent: Any, *, as_json: bool, synthetic: int) -> None:
    from voxpop.cli.report import json_line, promise, promised, saved
    from voxpop.sequences.composition import spent_together

    together = None if spent is None else spent_together(spent, model)
    if as_json:
        content = {
            "released": len(model),
            **promised(model.guarantee),
            "with_alphabet": None if together is None else promised(together),
            "plan": model.plan.to_dict(),
            "synthetic": synthetic,
            "folder": str(folder.resolve()),
        }
        typer.echo(json_line(content))
        return
    typer.echo(f"Released {len(model):,} gram{'' if len(model) == 1 else 's'} with noisy counts.")
    if not len(model):
        typer.echo(
            f"No symbol occurred often enough: a noisy count had to exceed {model.plan.to_dict()['threshold']:.4g}, "
            "and the budget is\nspent all the same. It takes more users, more epsilon or a smaller --max-length; and "
            "look whether the alphabet\nis that of the column."
        )
    if synthetic:
        typer.echo(f"Drew {synthetic:,} synthetic sequence{'' if synthetic == 1 else 's'}: synthetic.parquet")
    typer.echo(promise(model.guarantee))
    if together is not None:
        typer.echo(f"\nWith the release that the alphabet came from, if from the same users: {together}")
    typer.echo(saved(folder, model.about))
