"""Check the files, the certificates and the plans of a saved folder.

Plans are computed again with the same settings.
"""

import subprocess
from collections.abc import Mapping
from dataclasses import fields, replace
from math import isclose
from pathlib import Path
from typing import Any

from voxpop.errors import InternalError, ReleaseError
from voxpop.files.folder import folder_to_read, write_file
from voxpop.privacy.budget import Budget
from voxpop.privacy.certificate import check, counts_square
from voxpop.privacy.composition import covers_guarantees, total_of
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.numerics import with_rounding
from voxpop.privacy.passes import Certificate, CountsProof
from voxpop.privacy.planned import with_record
from voxpop.privacy.precise import number
from voxpop.release.counts import page_of_all
from voxpop.release.profile import Profile, contradictions
from voxpop.release.registry import configuration, load_object, mechanism_called
from voxpop.release.release import Release
from voxpop.release.report.numbers import rows_of_type
from voxpop.release.report.page import unpacked
from voxpop.release.result import charged_of, load
from voxpop.release.saving import BESIDE, DAMAGED_FOLDER, RELEASE, REPORT, SUMS, checksum, kind_in

NAMESPACE = "voxpop-release"
"""The namespace of signatures. ssh-keygen uses it to distinguish them from signatures of other software."""
_LONGEST_REASON = 200
_PRECISION = 1e-9
"""The maximum relative difference that is attributed to rounding on another machine."""
_LARGE = 2**32
"""Integers of at least this size are treated as rounded numbers in fine units."""
_CHOSEN = frozenset({"max_items_per_user", "max_phrases_per_user", "counted_in_full"})
"""The settings that a release chooses privately if they are not given."""
_PAPERS = {
    "set union": "voxpop.papers.dpsu:SetUnion",
    "optimal selection": "voxpop.papers.optimal_selection:OptimalSelection",
}
"""The published algorithms that can be planned again."""
_RAN = frozenset({"ran", "trust"})
"""The entries of a plan or a pass that are not compared: numbers that follow from released phrases, and the text about
trust in the parties of a federation. Epsilon and delta do not depend on them."""


def verify(folder: Path) -> dict[str, Any]:
    """Check the files of a folder, compute delta from its certificates, and compute the plan of every result again.

    Args:
        folder: A folder that `save` wrote.

    Returns:
        The digest of the list of checksums, the names of the files, and for each result its mechanism and guarantee.

    Raises:
        ReleaseError: If a file is missing, differs or was added, a plan or guarantee does not follow from its settings,
            or the report does not follow from the result.
    """
    result = load(folder)
    source = folder_to_read(folder)
    files = {each.name: each.read_bytes() if each.is_file() else b"" for each in sorted(source.iterdir())}
    if SUMS not in files:
        raise ReleaseError(f"{folder / SUMS} is missing, so no file can be checked. {DAMAGED_FOLDER}")
    listed = files.pop(SUMS)
    lines = [line.partition("  ") for line in listed.decode(errors="replace").splitlines()]
    sums = {name: digest for digest, _, name in lines}
    if not all(sums or [""]):
        raise ReleaseError(f"{folder / SUMS} must list a checksum and a name in each line. {DAMAGED_FOLDER}")
    for name in sorted({*files, *sums}):
        if name not in files or checksum(files[name]) != f"sha256:{sums.get(name)}":
            state = "is missing" if name not in files else "differs" if name in sums else "was added"
            raise ReleaseError(f"{folder / name} {state} since the folder was saved. {DAMAGED_FOLDER}")
    kind = kind_in(folder) or RELEASE
    kinds = [kind, *(each for each in BESIDE if each.is_in(folder))]
    checked = []
    for each in kinds:
        record, _ = each.read(folder)
        checked.append(_replanned(record, result, folder / each.record))
    record, _ = kind.read(folder)
    checksums = {**record["checksums"], kind.record: checksum(files[kind.record])}
    page = page_of_all(files, folder) if len(kinds) > 1 else result._page(checksums)
    if unpacked(page) != unpacked(files.get(REPORT, b"")):
        raise _differs(folder / REPORT, "the report", "the result gives", record)
    return {"digest": checksum(listed), "files": sorted(files), "results": checked}


def signed_file(path: Path) -> Path:
    """Return the file that a signature covers, which is the list of checksums of a folder, or the job file itself."""
    return folder_to_read(path) / SUMS if path.is_dir() else path


def sign(path: Path, key: Path, signature: Path) -> None:
    """Sign a verified folder or a job file with an SSH key, using `ssh-keygen -Y sign`.

    Args:
        path: The folder or the job file.
        key: The private key, or the public key if an SSH agent has the private key.
        signature: The file for the signature, which must not exist.

    Raises:
        ReleaseError: If the folder fails the verification, the file of the signature exists, or signing fails.
    """
    if signature.exists():
        raise ReleaseError(f"{signature} already exists. Give --output another name, or remove the file first.")
    if path.is_dir():
        verify(path)
    made = _ssh_keygen(["sign", "-f", str(key), "-n", NAMESPACE], signed_file(path), f"{path} was not signed")
    write_file(signature, lambda: made, overwrite=False)


def check_signature(path: Path, signature: Path, signers: Path, identity: str) -> None:
    """Check the signature of a folder or a job file, using `ssh-keygen -Y verify`.

    Args:
        path: The folder or the job file.
        signature: The file that `sign` wrote.
        signers: A file of permitted signers in the ssh-keygen format, with an identity and a public key per line.
        identity: The identity that must have signed.

    Raises:
        ReleaseError: If the signature is not from this identity or not for these contents.
    """
    arguments = ["verify", "-f", str(signers), "-I", identity, "-n", NAMESPACE, "-s", str(signature)]
    _ssh_keygen(arguments, signed_file(path), f"{signature} is not a signature of {identity} for {path}")


def _ssh_keygen(arguments: list[str], content: Path, problem: str) -> bytes:
    """Run ssh-keygen on the content of a file, and return its output."""
    try:
        with content.open("rb") as file:
            ran = subprocess.run(["ssh-keygen", "-Y", *arguments], stdin=file, capture_output=True, check=False)
    except FileNotFoundError as error:
        tool = error.filename == "ssh-keygen"
        what = "ssh-keygen is not installed. Install OpenSSH" if tool else f"{content} does not exist. Check the path"
        raise ReleaseError(f"{problem}: {what}.") from None
    if ran.returncode != 0:
        said = " ".join((ran.stderr or ran.stdout).decode(errors="replace").split())[:_LONGEST_REASON]
        raise ReleaseError(f"{problem}. Check the key, the identity and the signature. ssh-keygen: {said}")
    return ran.stdout


def _differs(where: Path, what: str, source: str, record: Mapping[str, Any]) -> ReleaseError:
    """Build the error for content that does not follow from the other contents."""
    return ReleaseError(
        f"{where}: {what} is not the one that {source} in this version of voxpop. Use voxpop "
        f"{record.get('voxpop_version')}, which made it. If it differs there too, do not rely on the guarantee."
    )


def _replanned(record: Mapping[str, Any], result: Any, where: Path) -> dict[str, Any]:
    """Compute the plan again, and return the mechanism and the guarantee.

    Args:
        record: The record of the result, or of counts or a ranking in the same folder.
        result: The result of the folder.
        where: The file of the record, for messages.

    Raises:
        ReleaseError: If a number differs.
    """
    numbers, stated = record["plan"], Guarantee.from_dict(record["guarantee"])
    release = result if isinstance(result, Release) else None
    unknown = ReleaseError(
        f"{where}: this version of voxpop cannot plan {numbers.get('mechanism')!r} with such numbers again; of "
        "`vp.papers`, it can plan SetUnion and OptimalSelection. The files are as they were saved. Use voxpop "
        f"{record.get('voxpop_version')}, or check the plan by hand."
    )
    if mechanism_called(str(numbers.get("mechanism"))) is None:
        raise unknown
    try:
        plan = plan_again(numbers, release)
        wrong = _differing(plan, numbers)
        guarantee = plan.guarantee if stated.private else replace(plan.guarantee, private=False)
    # Numbers in a folder can be arbitrary. Numbers that this version has written never raise an error here.
    except Exception as error:
        raise ReleaseError(f"{where}: the settings of the plan cannot be planned again. {DAMAGED_FOLDER}") from error
    if {*numbers} - {*plan.to_dict()} - _RAN:
        raise unknown
    try:
        wrong = _unproved(record, stated, plan) + wrong + _of_another_entry(record, plan)
        if isinstance(result, Profile):
            wrong += contradictions(result, plan) + _of_other_counts(record, plan) + _of_other_passes(record, plan)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ReleaseError(f"{where}: a part of the record is missing or malformed. {DAMAGED_FOLDER}") from error
    if not record.get("transcript"):
        wrong.append("the transcript")
    seen = replace(stated, server_view="")  # only federations have a server view
    if not _same(replace(guarantee, server_view="").to_dict(), seen.to_dict()):
        wrong.append("the guarantee")
    texts = {"statement": str(stated)}
    if release is not None:
        texts["total"] = str(total_of([release._stated, charged_of(record)]))
    wrong += [name for name, text in texts.items() if record.get(name, text) != text]
    entry = charged_of(record)[1]
    if entry is not None and not covers_guarantees(entry.budget, [stated]):
        wrong.append("the entry of the ledger")
    if wrong:
        raise _differs(where, wrong[0], "the settings give", record)
    return {"mechanism": str(numbers["mechanism"]), "statement": str(stated), "guarantee": stated.to_dict()}


def _unproved(record: Mapping[str, Any], stated: Guarantee, plan: Any) -> list[str]:
    """Return the parts that do not follow from the certificate of a record.

    The list is empty if the certificate proves the guarantee.
    """
    if "certificate" not in record:
        return ["the certificate"]
    certificate = Certificate.from_dict(record["certificate"])
    claim = certificate.claim
    try:
        proved = check(certificate) <= claim.delta
    except InternalError:
        proved = False
    if not proved or (claim.epsilon, claim.delta, claim.neighbours) != (
        stated.epsilon,
        stated.delta,
        stated.neighbours,
    ):
        return ["the certificate"]
    again, numbers = plan.certificate.to_dict(), certificate.to_dict()
    for each in (again, numbers):
        for proof in (each["numbers"], each["numbers"].get("rounds", {})):
            if isinstance(proof, dict) and "choice" in proof:  # without a choice, `rounds` is a setting
                proof.pop("rounds", None)
        each["numbers"].pop("chosen", None)
    return [] if _same(_in_doubles(again), _in_doubles(numbers)) else ["the certificate"]


def _of_another_entry(record: Mapping[str, Any], plan: Any) -> list[str]:
    """Return the parts of a record of keys with counts that contradict the chosen entry of the plan's menu."""
    if record["plan"]["mechanism"] != "keys" or "certificate" not in record:
        return []
    numbers, private = record["certificate"]["numbers"], not plan.mechanism.repeated
    wrong = []
    if private and (type(plan.chosen) is not int or numbers.get("chosen") != plan.chosen):
        wrong.append("the chosen entry")
    # Only parts have a limit of more than one key, and only rounds choose a limit themselves.
    in_parts = plan.parts is not None and plan.chosen == plan.place_of_parts
    if (plan.limit_of_more is not None) != in_parts or (len(plan.passes) > 1 and plan.chosen != plan.place_of_rounds):
        wrong.append("the limit of the chosen entry")
    ran = [{name: each[name] for name in ("pass", "limit") if name in each} for each in record.get("transcript", [])]
    if ran != _passes_of_keys(plan, numbers if plan.mechanism.repeated else numbers.get("rounds")):
        wrong.append("the transcript")
    if plan.error is not None and not _same(plan.error, record["error"]):
        wrong.append("the error")
    return wrong


def _of_other_counts(record: Mapping[str, Any], plan: Any) -> list[str]:
    """Return the parts of a profile that contradict the certificate of its counts.

    The transcript contains the certificate of the counts.
    """
    wrong, passes = [], [each for each in record.get("transcript", []) if each["pass"] == "counts"]
    for each in passes:
        proof = Certificate.from_dict(each["certificate"]).proof
        if not isinstance(proof, CountsProof) or counts_square(proof) > number(plan.counting):
            wrong.append("the certificate of counts")
        elif not any(_same(with_rounding(every.sigma), record["error"]) for every in proof.menu):
            wrong.append("the error")
    return wrong


def _of_other_passes(record: Mapping[str, Any], plan: Any) -> list[str]:
    """Return "the transcript" if the passes of a profile of columns contradict its plan and its certificate."""
    if record["plan"]["mechanism"] != "profile" or "certificate" not in record:
        return []
    numbers, names = record["certificate"]["numbers"], [each["pass"] for each in record.get("transcript", [])]
    before = ["classes", "first round"] + ["round"] * len(numbers["rounds"]["later"]) + ["list"] * ("known" in numbers)
    after = ["counts", "cover"] if plan.counting else []
    # The number of rounds over joint values follows from the released values.
    joint = max(0, len(names) - len(before) - len(after)) if plan.joining else 0
    return [] if names == [*before, *["round"] * joint, *after] else ["the transcript"]


def _passes_of_keys(plan: Any, rounds: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the passes of a complete release of keys with counts, from its plan and the certificate of its rounds."""
    if plan.noise is not None:
        entry: list[dict[str, Any]] = [{"pass": "numbers", "limit": plan.noise.limit}]
    elif plan.limit_of_more is not None:
        entry = [{"pass": "few"}, {"pass": "sizes"}, {"pass": "more", "limit": plan.limit_of_more}]
    else:
        ran = rounds or {}
        number = len(ran.get("rounds", {}).get("later", ()))
        names = ["classes"] * ("choice" in ran) + ["first round"] + ["round"] * number + ["counts"]
        entry = [{"pass": name} for name in names]
    head, last = ["classes"] * bool(plan.choosing), ["rest"] * bool(plan.rest) + ["cover"] * bool(plan.cover_sigma)
    return [*({"pass": name} for name in head), *entry, *({"pass": name} for name in last)]


def _in_doubles(value: Any) -> Any:
    """Convert the large integers in a JSON value, such as thresholds in fine units, to doubles."""
    if isinstance(value, Mapping):
        return {name: _in_doubles(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_in_doubles(each) for each in value]
    return float(value) if isinstance(value, int) and value >= _LARGE else value


def _kind(numbers: Mapping[str, Any]) -> Any:
    """Return the configuration class of the mechanism with these numbers."""
    paper = _PAPERS.get(str(numbers.get("paper")))
    return load_object(paper) if paper else configuration(str(numbers["mechanism"]))


def _settings(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the mechanism that produced these numbers."""
    kind = _kind(numbers)
    found = {each.name: numbers[each.name] for each in fields(kind) if each.name in numbers}
    if numbers["mechanism"] != "keys" and _is_chosen(numbers):
        found |= dict.fromkeys(_CHOSEN & {each.name for each in fields(kind)})
    if "night" in _passes_in(numbers):
        return {name: numbers.get(name) for name in ("max_items_per_user", "known")}
    if found.get("weighting") in ("count", "weighted") and numbers["noise"] == "laplace":
        found["weighting"] += "-laplace"
    if "alphabet_size" in numbers:
        # The numbers do not depend on the symbols.
        symbols = [str(symbol) for symbol in range(numbers["alphabet_size"] or 0)]
        found["alphabet"] = "find" if "finding" in _passes_in(numbers) else symbols
    return found


def _is_chosen(numbers: Mapping[str, Any]) -> bool:
    """Return whether the release chose a limit privately."""
    return "choice" in _passes_in(numbers)


def _passes_in(numbers: Mapping[str, Any]) -> set[str]:
    """Return the types of the passes of a plan."""
    return {row["pass"] for row in numbers.get("passes", ())}


def plan_again(numbers: Mapping[str, Any], release: Release | None) -> Any:
    """Return the plan of a saved result, computed again from the settings in its numbers.

    Args:
        numbers: The numbers of a plan of a registered mechanism.
        release: The release to which counts or a ranking belong.
    """
    return _with_level(_plan(numbers, release, _settings(numbers)), numbers)


def _with_level(plan: Any, numbers: Mapping[str, Any]) -> Any:
    """Return a plan with the recorded level from which items of a public list are released, if there is one."""
    known = numbers.get("known")
    if isinstance(known, Mapping) and "level" in known:
        return with_record(plan, passed=[{"pass": "list", "level": known["level"]}])
    return plan


def _plan(numbers: Mapping[str, Any], release: Release | None, settings: Mapping[str, Any]) -> Any:
    """Return the plan for the settings, with the choices that the release made."""
    mechanism = _kind(numbers)(**settings)
    budget = Budget(numbers["epsilon"], numbers["delta"])
    if "data_sets" in numbers:
        plan = mechanism.plan_each(tuple(numbers["data_sets"]), budget)
    elif "nights" in numbers:
        plan = mechanism.plan_series(budget, numbers["nights"], spending=numbers["spending"])
    elif numbers["mechanism"] in ("counts", "top"):
        plan = mechanism.plan(budget, release)
    else:
        plan = mechanism.plan(budget)
    if numbers["mechanism"] == "keys":
        (more,) = [row["limit"] for row in rows_of_type(numbers, "more")] or [None]
        return plan.ran(numbers["chosen"], numbers["round_limit"], more)
    if "finding" in _passes_in(numbers):
        return with_record(plan, found=tuple(str(symbol) for symbol in range(numbers["alphabet_size"])))
    if not _is_chosen(numbers):
        return plan
    if numbers["mechanism"] == "counts":
        limits = tuple(row["limit"] for row in rows_of_type(numbers, "count"))
        return with_record(plan, ran=[each.limits for each in plan.proof.menu].index(limits))
    if numbers["mechanism"] == "n-grams":
        return with_record(plan, words=plan.first.entry(numbers["max_words_per_user"], numbers["share_of_words"]))
    (menu,) = plan.passes
    return with_record(plan, passes=(menu, menu.entry(numbers["max_items_per_user"])))


def _differing(plan: Any, numbers: Mapping[str, Any]) -> list[str]:
    """Return the names of numbers that differ from the numbers of a plan."""
    one, other = _compared(plan.to_dict()), _compared(numbers)
    return [name for name in sorted({*one, *other}) if not _same(one.get(name), other.get(name))]


def _compared(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the compared entries of a plan and of its passes."""
    found = {name: value for name, value in numbers.items() if name not in _RAN}
    return found | {"passes": [{**row, **dict.fromkeys(_RAN & row.keys())} for row in numbers.get("passes", ())]}


def _same(one: Any, other: Any) -> bool:
    """Return whether two JSON values agree up to rounding."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, int | float):
        return isclose(one, other, rel_tol=_PRECISION)
    return bool(one == other)
