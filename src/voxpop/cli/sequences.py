"""`voxpop sequences`: a model of sequences, and synthetic sequences."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxpop.cli import releasing
from voxpop.errors import InputError

if TYPE_CHECKING:
    from voxpop.mechanisms.sequences.model import SequenceModel

FIND = "find"


def alphabet_of(given: str | None) -> Any:
    """Return the alphabet of an option: a list of symbols, a saved release, "find" or None.

    Raises:
        InputError: if a file cannot be read.
    """
    if given is None or given == FIND:
        return given
    path = Path(given)
    if path.is_dir():
        from voxpop.release.release import load_release

        return load_release(path)
    if path.is_file():
        try:
            return [line for line in path.read_text(encoding="utf-8").splitlines() if line]
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"--alphabet {given} must be a UTF-8 file with one symbol per line.") from error
    if "," not in given and ("/" in given or path.suffix in (".txt", ".csv", ".parquet", ".json")):
        raise InputError(
            f"--alphabet {given}: no such file or folder. Give an existing one, or symbols separated by commas."
        )
    return [symbol for symbol in given.split(",") if symbol]


def check_delta(alphabet: Any, delta: float) -> None:
    """Refuse a delta without a search for the alphabet, and a search without a delta.

    Raises:
        InputError: in both cases.
    """
    if alphabet == FIND and not delta:
        raise InputError("--delta is missing: --alphabet find requires it. Add one, such as --delta 1e-7.")
    if delta and alphabet != FIND:
        raise InputError("--delta applies only to --alphabet find. With a public alphabet leave it out.")


def sampled(model: "SequenceModel", number: int, seed: int | None) -> dict[str, bytes]:
    """Return the file of synthetic sequences by its name; none if no sequences are wanted or the model is empty."""
    if not number or not len(model):
        return {}
    sink = io.BytesIO()
    with releasing.stage("Sampling"):
        model.sample(number, seed).write_parquet(sink)
    return {"synthetic.parquet": sink.getvalue()}


def print_model(model: "SequenceModel", folder: Path, alphabet: Any, *, as_json: bool, synthetic: int) -> None:
    """Print a summary of a saved model, with its guarantee together with the release that the alphabet came from."""
    from voxpop.privacy.composition import compose
    from voxpop.release.release import Release

    both = compose([alphabet.guarantee, model.guarantee]) if isinstance(alphabet, Release) else None
    if as_json:
        releasing.print_json(
            {
                "released": len(model),
                **releasing.stated(model.guarantee),
                "with_alphabet": None if both is None else releasing.stated(both),
                "plan": model.plan.to_dict(),
                "synthetic": synthetic,
                "folder": str(folder.resolve()),
            }
        )
        return
    print(f"Released {releasing.plural(len(model), 'noisy count')}.")
    if synthetic:
        print(f"Drew {releasing.plural(synthetic, 'synthetic sequence')}: synthetic.parquet")
    print(releasing.guarantee_text(model.guarantee))
    if both is not None:
        print(f"\nWith the release that the alphabet came from, if from the same users: {both}")
    print(releasing.saved(folder, model.about))
