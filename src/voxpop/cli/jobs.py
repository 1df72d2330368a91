"""The command `voxpop run` for job files.

A job file contains one command with its options, so that it can be reviewed and signed once. The keys of a job file are
derived from the options of the commands, so this module has no list of keys.
"""

import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from difflib import get_close_matches
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

import voxpop as vp
from voxpop.cli import options as given
from voxpop.cli import releasing
from voxpop.cli.saved import Identity, Signature, Signers, signed_by
from voxpop.cli.sources import check_reading, column_list, columns_of
from voxpop.errors import InputError, VoxpopError, on_one_line
from voxpop.files.folder import write_file
from voxpop.release.registry import MECHANISMS

COMMANDS = tuple(each.command for each in MECHANISMS if each.command != "keys")
"""The commands that a job may run. They read a table and spend a budget. `profile` also releases keys with counts."""
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_FIXED_SECTIONS = ("mechanism", "budget", "table")
"""Sections that must not use environment variables, because a signature must cover them. The address of a database is
an exception."""
TOP = ("Arguments", "Parameters")
"""Groups of the command line that are not sections. Their keys are at the top of the file."""


def schema_of(app: App, command: str) -> dict[str, dict[str, Any]]:
    """Return the arguments of a command by section and key. The section "" is the top level of the file.

    Args:
        app: The command line.
        command: One of `COMMANDS`.
    """
    found: dict[str, dict[str, Any]] = {"": {}}
    for each in app[command].assemble_argument_collection():
        if each.children or not each.show:
            continue
        groups: Any = each.parameter.group
        section = "" if groups[0].name in TOP else groups[0].name.lower()
        found.setdefault(section, {})[each.name.lstrip("-").replace("-", "_").lower()] = each
    return found


class Job:
    """A job file with overridden keys.

    Attributes:
        path: The file.
        content: The keys and values of the file, before environment variables are replaced.
        command: The command of the job.
        schema: The arguments of the command, as returned by `schema_of`.
    """

    def __init__(self, app: App, path: Path, overrides: list[str], content: dict[str, Any] | None = None) -> None:
        self.app, self.path = app, path
        self.content = _parsed(path) if content is None else content
        for each in overrides:
            _override(self.content, each)
        self.command = self.content.get("command", "")
        if self.command not in COMMANDS:
            raise InputError(f"{path}: `command` must be one of {', '.join(COMMANDS)}.")
        self.schema = schema_of(app, self.command)

    @property
    def digest(self) -> str:
        """The digest of the content, which does not depend on comments, environment variables or the order of keys."""
        text = json.dumps(self.content, sort_keys=True, default=str)
        return f"sha256:{sha256(text.encode()).hexdigest()}"

    def arguments(self, names: Mapping[str, Any] | None = None) -> list[str]:
        """Return the job as arguments of the command line, with environment variables substituted.

        Args:
            names: The arguments of another command, such as `plan`, if the returned list is for that command. Arguments
                that the other command does not have are omitted.

        Raises:
            InputError: A key is unknown, or an environment variable is missing or not permitted.
        """
        words, places = [], []
        for section, key, value in self._values():
            argument = self._argument(section, key)
            if names is not None and argument.name not in names:
                continue
            texts = self._texts(section, key, value, argument)
            if argument.name.startswith("-"):
                words += texts
            else:
                places.append((argument.index, texts))
        named = [text for _, texts in sorted(places) for text in texts]
        # Values after the two hyphens are never parsed as options, so no environment variable can add an option that
        # was not approved.
        return [*words, *(["--", *named] if named else [])]

    def _values(self) -> list[tuple[str, str, Any]]:
        named = self.schema.keys() - {""}
        top = [("", key, value) for key, value in self.content.items() if key != "command" and key not in named]
        sections = [(name, self.content.get(name, {})) for name in self.schema if name in named]
        for name, section in sections:
            if not isinstance(section, dict):
                raise InputError(f"{self.path}: `{name}` must be a section, written as [{name}].")
        return [*top, *((name, key, value) for name, section in sections for key, value in section.items())]

    def _argument(self, section: str, key: str) -> Any:
        known = self.schema[section]
        if key in known:
            return known[key]
        where = f"[{section}]" if section else "the top of the file"
        others = [name for name, keys in self.schema.items() if key in keys]
        near = get_close_matches(key, [*known, *(self.schema if not section else ())], 1)
        hint = f' Did you mean "{near[0]}"?' if near else ""
        if others:
            hint = f" It belongs to {f'[{others[0]}]' if others[0] else 'the top of the file'}."
        raise InputError(
            f'{self.path}: {where} of a job of {self.command} has no key "{key}".{hint} Choose from {", ".join(known)}.'
        )

    def _texts(self, section: str, key: str, value: Any, argument: Any) -> list[str]:
        name = argument.name
        if isinstance(value, bool):
            if argument.hint is not bool:
                raise InputError(
                    f"{self.path}: `{key}` must be a string or a number, got true or false. Write the value, or remove "
                    "the key."
                )
            negative = f"--no-{name[2:]}"
            if value:
                return [name]
            return [negative] if negative in argument.names and argument.field_info.default is True else []
        if isinstance(value, dict):
            value = [f"{each}={kind}" for each, kind in value.items()]
        texts = [self._filled(section, key, each) for each in (value if isinstance(value, list) else [value])]
        if name.startswith("-"):
            return [f"{name}={text}" for text in texts]
        return ["/dev/stdin" if text == "-" else text for text in texts]

    def _filled(self, section: str, key: str, value: Any) -> str:
        """Return a value as text, with environment variables substituted."""
        if not isinstance(value, str):
            return repr(value) if isinstance(value, int | float) else str(value)
        names = VARIABLE.findall(value)
        if names and section in _FIXED_SECTIONS and key != "database":
            raise InputError(
                f"{self.path}: `{key}` in [{section}] must not use environment variables, because the digest of the "
                "job would not cover their values. Write the value, or change it with --set."
            )
        for name in names:
            if not os.environ.get(name):  # A run with an empty name would be charged again each time.
                raise InputError(
                    f"{self.path}: `{key}` uses ${{{name}}}, which is not set or empty. Set this environment variable."
                )
        return VARIABLE.sub(lambda found: os.environ[found[1]], value)


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}. Check the path, or write a job with `voxpop run --new {path}`."
        ) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "it is not UTF-8"
        raise InputError(f"{path} must be a TOML file: {reason}. Correct it.") from None


def _override(content: dict[str, Any], text: str) -> None:
    """Set a key from a text such as table.user=author. The value is a TOML value or a string without quotes."""
    key, equals, value = text.partition("=")
    *sections, last = key.strip().split(".")
    if not equals or not last or len(sections) > 1:
        raise InputError(
            "--set must be KEY=VALUE or SECTION.KEY=VALUE, such as --set budget.epsilon=2. Repeat it for more."
        )
    for name in sections:
        content = content.setdefault(name, {})
        if not isinstance(content, dict):
            raise InputError(f"--set {key}: `{name}` must be a section. Give KEY=VALUE instead.")
    try:
        content[last] = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        content[last] = value


JobFile = Annotated[Path, Parameter(name="JOB", help="A job file, in TOML.")]


def command_for(app: App) -> Callable[..., Any]:
    """Return the command `run` for the given command line."""

    def run(
        job: JobFile,
        /,
        *,
        set: Annotated[
            list[str] | None, Parameter(help="Override a key, such as budget.epsilon=2. Repeat the option.")
        ] = None,
        digest: Annotated[
            str | None, Parameter(help="The digest of the approved job. A job with another digest does not run.")
        ] = None,
        signature: Signature = None,
        signers: Signers = None,
        identity: Identity = None,
        dry_run: Annotated[
            bool, Parameter(help="Show source, columns, disk, ledger and plan. Reads no rows and charges nothing.")
        ] = False,
        new: Annotated[bool, Parameter(help="Ask for the settings, and write a new job file.")] = False,
        json: given.Json = False,
    ) -> Any:
        """Run a job file. A job file contains one command with its options, and can be reviewed and signed once.

        Example: `voxpop run words.toml --dry-run`
        """
        if new:
            return write_new(app, job)
        if signed_by(job, signature, signers, identity) and set:
            raise InputError(f"{job}: a signature does not cover --set. Change the job, and have it signed again.")
        found = Job(app, job, set or [])
        if digest is not None and digest != found.digest:
            raise InputError(
                f"{job}: the digest of this job is {found.digest}, but another digest was approved. Nothing ran. Have "
                "this job approved, or restore the approved job."
            )
        if dry_run:
            return show_dry(found, as_json=json)
        more = ["--json"] if json and "json" in found.schema.get("result", found.schema[""]) else []
        return app(
            [found.command, f"--job={found.digest}", *more, *found.arguments()],
            exit_on_error=False,
            print_error=False,
        )

    return run


def sign(
    path: Annotated[Path, Parameter(name="PATH", help="Folder of a saved release, or a job file.")],
    /,
    *,
    key: Annotated[Path, Parameter(help="SSH key of the person who signs, such as ~/.ssh/id_ed25519.")],
    output: Annotated[
        Path | None, Parameter(name=["--output", "-o"], help="File of the signature; PATH.sig by default.")
    ] = None,
) -> None:
    """Sign a release or a job with an SSH key, using `ssh-keygen -Y sign`. The files of a folder are verified first.

    Example: `voxpop sign words --key ~/.ssh/id_ed25519`
    """
    from voxpop.release.verifying import sign as signed

    signature = output or path.with_name(f"{path.name}.sig")
    signed(path, key.expanduser(), signature)
    releasing.say(f"Signed {path}: {signature}")


def show_dry(job: Job, *, as_json: bool) -> None:
    """Run all checks of a job that do not need rows, and print the results."""
    from voxpop.ledger.runs import check_output, free_space
    from voxpop.reading.remote import is_remote

    _, bound, _ = job.app.parse_args([job.command, *job.arguments()], exit_on_error=False, print_error=False)
    bound.apply_defaults()
    names = bound.arguments
    call, source, is_new = names["call"], names["source"], "output" in names
    overwrite = names["result"].overwrite if is_new else names["overwrite"]
    output = (names["output"] if is_new else names["folder"]).resolve()
    call.run.check()
    if is_new:
        names["result"].metadata(call.charge.dataset)
    columns = _columns(source, call, job.command)
    away = any(map(is_remote, source or ()))
    plan, text = _planned_job(job)
    account = releasing.account_of(call.charge, reported=is_new)
    mechanism, label = str(plan.to_dict()["mechanism"]), call.charge.run_id or ""
    entry = None if account is None else account.entry(label)
    state = "finished" if entry is not None and entry.state == "finished" else "new" if entry is None else "interrupted"
    same = True
    if entry is not None and state == "finished" and is_new:
        made = _result_of(entry, output)
        if made is None and not (entry.kept and Path(entry.kept).parent.exists()):
            state = "lost"  # The check below rejects this case, as the run would.
        same = made is None or made.metadata.job == job.digest
    if account is not None and state != "finished":
        account.check(plan.guarantee, mechanism, label)
    if state != "finished":
        check_output(output, mechanism, overwrite=overwrite)
    found = {
        "job": str(job.path),
        "command": job.command,
        "digest": job.digest,
        "columns": columns,
        "source_opened": not away,
        "output": str(output),
        "free_bytes": free_space(output),
        "ledger": None if account is None else {"dataset": account.name, "run": state, "used": _used(account)},
        **releasing.guarantee_record(plan.guarantee),
    }
    if as_json:
        releasing.print_json({**found, "plan": plan.to_dict(), "charged": False})
        return
    shown = ", ".join(map(on_one_line, columns)) or "known only when the rows are read"
    if away:
        shown = "unknown, because a dry run opens no address; only the run checks whether it exists and has the columns"
    lines = [
        f"Job {job.path}: voxpop {job.command}",
        f"  columns of the source: {shown}",
        f"  output: {output}, {found['free_bytes'] >> 20:,} MiB free",
        f"  ledger: {'none is charged' if account is None else _room(account, state)}",
        f"  digest of the job: {job.digest}",
        *([] if same else [releasing.OTHER_JOB]),
        "",
        text.rstrip(),
        "",
        "No row was read, and nothing was charged.",
    ]
    releasing.say(*lines)


def _columns(source: list[str] | None, call: given.Call, command: str) -> list[str]:
    """Return the columns of a source, after checking that it has the columns of the job.

    The list is empty if only the rows of the source determine its columns.
    """
    from voxpop.engine.read import schema_before_reading, source_called
    from voxpop.reading.limited.memory import MemoryLimit
    from voxpop.reading.types import declared_types

    found = releasing.opened_source(call.table.source(source), call.run)
    reading = {} if command == "profile" else call.table.columns(source)
    named = [name for each in reading.values() for name in column_list(each)]
    how = call.table.reading
    csv, types = how.pop("csv", None), how.pop("types", {})
    named += [how["order"]] if "order" in how else []
    if command != "profile":
        declared_types(types, named)
    schema = schema_before_reading(found, csv, types, named)
    if command != "profile":
        where = source_called(found, csv)
        check_reading(schema, {**reading, **how}, releasing.read_options(call.run), where)
    elif call.run.memory is not None:
        MemoryLimit.of(call.run.memory, call.run.work_folder)
    return list(schema or ())


def _planned_job(job: Job) -> tuple[Any, str]:
    """Return the plan of a job and its text, as `voxpop plan` computes them."""
    names = {each.name for each in job.app["plan"][job.command].assemble_argument_collection()} - {"--json"}
    arguments = ["plan", job.command, *job.arguments(dict.fromkeys(names))]
    with redirect_stdout(StringIO()) as text:
        plan = job.app(arguments, exit_on_error=False, print_error=False)
    return plan, text.getvalue()


def _result_of(entry: Any, output: Path) -> Any:
    """Return the result in a folder, or None if it does not belong to this entry of the ledger."""
    try:
        found = vp.load(output)
    except VoxpopError:
        return None
    return found if found.metadata.ledger == entry.admission else None


def _used(account: Any) -> dict[str, float]:
    """Return the used fraction of the budget for each method of composition."""
    return {way: max(caps.values()) for way, caps in account.used().items()} if account.entries else {}


def _room(account: Any, state: str) -> str:
    """Return a description of the state of an account and of a run."""
    used = _used(account)
    spent = f"{min(used.values()):.1%} used" if used else "unused"
    runs = {
        "new": "this release fits",
        "interrupted": "this run was charged and interrupted, so it runs again without a charge",
        "finished": "this run has already finished, so it would read nothing and show the saved result",
    }
    budget = account.budget
    return f'"{account.name}" with ({budget.epsilon:g}, {budget.delta:g}), {spent}; {runs[state]}'


QUESTIONS = (
    ("", "command", f"Command ({', '.join(COMMANDS[:5])})", "items"),
    ("", "source", "Files with the private table", None),
    ("table", "user", "Column that identifies the user", None),
    ("table", "", "Kind of contents (text, tokens, items or sequence)", "text"),
    ("budget", "epsilon", "Epsilon (values up to 1 are strict, and values up to 10 are reasonable)", "1"),
    (
        "budget",
        "delta",
        "Delta, far below one over the number of users (0 for sequences with a known alphabet)",
        "1e-7",
    ),
    ("", "output", "Folder to save to", "released"),
    ("ledger", "ledger", "Ledger to charge (empty for none)", ""),
)
"""The section, key, text and default of each prompt of `voxpop run --new`."""


def write_new(app: App, path: Path) -> None:
    """Prompt for the settings of a job, and write the job file."""
    if path.exists():
        raise InputError(f"{path} already exists. Choose another name, or remove the file first.")
    content: dict[str, Any] = {}
    for section, key, text, default in QUESTIONS:
        answer = _asked(text, default)
        if not key:
            section, key, answer = "table", answer, _asked(f"Column of {answer}{_hint(content)}", None)
        if answer:
            place = content.setdefault(section, {}) if section else content
            place[key] = float(answer) if section == "budget" and _is_number(answer) else answer
    if "ledger" in content:
        content["ledger"]["dataset"] = _asked("Data set in the ledger", None)
        content["ledger"]["run_id"] = _asked("Name of the run; ${DAY} is an environment variable", "${DAY}")
    if content.get("budget", {}).get("delta") == 0:
        del content["budget"]["delta"]
    job = Job(app, path, [], content)
    for section, key, _ in job._values():
        job._argument(section, key)
    for key, answer in content.get("budget", {}).items():
        if isinstance(answer, str):
            raise InputError(f"`{key}` must be a number. Nothing was written. Start `voxpop run --new` again.")
    write_file(path, lambda: _toml(content).encode())
    releasing.say(f"Wrote {path}. Digest of the job: {job.digest}", f"Check it with `voxpop run {path} --dry-run`.")


def _asked(text: str, default: str | None) -> str:
    """Prompt for a value, and return the answer or the default."""
    sys.stderr.write(f"{text}{f' [{default}]' if default else ''}: ")
    sys.stderr.flush()
    line = sys.stdin.readline()
    answer = line.strip() or (default if default is not None else "")
    if not line or (not answer and default is None):
        raise InputError(f'"{text}" must have an answer. Nothing was written. Start `voxpop run --new` again.')
    return answer


def _hint(content: dict[str, Any]) -> str:
    """Return a note that lists the columns of the source, or an empty string if they cannot be listed."""
    found = columns_of([content["source"]])
    return f" ({found})" if found else ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _toml(content: dict[str, Any]) -> str:
    """Return a dictionary of strings, numbers and sections as TOML. Strings have the same syntax in JSON and TOML."""
    top = [f"{key} = {json.dumps(value)}" for key, value in content.items() if not isinstance(value, dict)]
    lines = ["# Run with `voxpop run FILE`; every option of the command can be a key of its section.", *top]
    for name, section in content.items():
        if isinstance(section, dict):
            lines += ["", f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in section.items())]
    return "\n".join(lines) + "\n"
