"""`voxpop sequences`: from a table of who did what, in which order, to a model and synthetic sequences."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxpop.cli.engines import Engine, Master
from voxpop.cli.options import (
    Dataset,
    Epsilon,
    Json,
    LedgerFile,
    Memory,
    Output,
    Seed,
    Sequence,
    Sources,
    Text,
    Tokenizer,
    Tokens,
    User,
    WorkFolder,
)
from voxpop.errors import InputError

if TYPE_CHECKING:
    from voxpop.sequences.model import SequenceModel

Alphabet = Annotated[
    str | None,
    typer.Option(
        metavar="LIST|FILE|DIR",
        help="All symbols that may occur, which must be public: separated by commas, a file with one per line, or a "
        "folder that `voxpop items` saved.",
        show_default=False,
    ),
]
MaxLength = Annotated[int, typer.Option(help="Most symbols of one user that count.")]
MaxGram = Annotated[int, typer.Option(help="Length of the longest gram that is counted.")]
Combine = Annotated[str, typer.Option(help="sample one of a user's sequences, or concatenate them.")]
Consistency = Annotated[str, typer.Option(help="balanced, or published (the paper's).")]
Tree = Annotated[str, typer.Option(help="What is counted: contexts (small alphabets), grams, or auto.")]
Synthesize = Annotated[int, typer.Option(min=0, help="Also save this many synthetic sequences.")]


def sequences(
    source: Sources,
    output: Output,
    user: User = None,
    sequence: Sequence = None,
    text: Text = None,
    tokens: Tokens = None,
    epsilon: Epsilon = None,
    alphabet: Alphabet = None,
    max_length: MaxLength = 20,
    max_gram: MaxGram = 5,
    combine: Combine = "sample",
    consistency: Consistency = "balanced",
    tree: Tree = "auto",
    synthesize: Synthesize = 0,
    tokenizer: Tokenizer = "words",
    ledger: LedgerFile = None,
    dataset: Dataset = None,
    memory: Memory = None,
    work_folder: WorkFolder = None,
    engine: Engine = "local",
    master: Master = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Release a model of users' sequences, and synthetic ones from it.

    voxpop sequences visits.parquet --user user --sequence pages --epsilon 1 --alphabet home,news,sport --synthesize
    1000 -o model
    """
    from voxpop.cli.columns import chosen_columns, tokenizer_of
    from voxpop.cli.engines import check_engine, read_with
    from voxpop.cli.ledger import account_of, run
    from voxpop.cli.stages import stage
    from voxpop.sequences.saving import check_model_target, save_model
    from voxpop.sequences.sequences import Sequences

    # All that can be wrong with the call comes before the data, and the data before the budget is spent.
    check_engine(engine, master)
    budget = _budget(epsilon)
    folder = check_model_target(output)
    symbols, spent = alphabet_of(alphabet)
    fields: dict[str, Any] = {"combine": combine, "consistency": consistency, "alphabet": symbols, "tree": tree}
    plan = Sequences(max_length=max_length, max_gram=max_gram, **fields).plan(budget)
    account = account_of(ledger, dataset, seed)
    if account is not None:
        account.check(plan.guarantee)
    columns = chosen_columns(source, user, sequence=sequence, text=text, tokens=tokens)
    cut = tokenizer_of(tokenizer)
    corpus = read_with(engine, master, source, columns, tokenizer=cut, memory=memory, work_folder=work_folder)
    with stage("Releasing"):
        model = run(plan, corpus, seed, account)
    extra = {}
    if synthesize and model.tree.counts.sum():
        with stage("Drawing"):
            extra["synthetic.parquet"] = _parquet_of(model, synthesize, seed)
    save_model(model, folder, extra)
    _report(model, folder, spent, as_json=json, synthetic=synthesize if extra else 0)


def alphabet_of(given: str | None) -> tuple[Any, Any]:
    """Return the symbols that a call names, and the release they come from, if any.

    Raises:
        InputError: where a file cannot be read.
    """
    if given is None:
        return None, None
    path = Path(given)
    if path.is_dir():
        from voxpop.release.loading import load

        release = load(path)
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


def _budget(epsilon: float | None) -> Any:
    from voxpop.privacy.budget import Budget

    if epsilon is None:
        raise InputError(
            "--epsilon is missing: give the privacy budget, such as --epsilon 1 (1 is strong, 4 is common). "
            "Sequences need no delta."
        )
    return Budget(epsilon)


def _parquet_of(model: "SequenceModel", n: int, seed: int | None) -> bytes:
    import io

    sink = io.BytesIO()
    model.sample(n, seed).write_parquet(sink)
    return sink.getvalue()


def _report(model: "SequenceModel", folder: Path, spent: Any, *, as_json: bool, synthetic: int) -> None:
    from voxpop.cli.report import json_line, promise, promised
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
    typer.echo(f"\nSaved to {folder}; report.html there is for whoever signs it off.")
