"""Exit codes, and one-line messages instead of tracebacks; `--errors json` prints them as JSON.

docs/guides/jobs.md lists the codes with their causes and next steps.
"""

import json
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from io import StringIO
from pathlib import Path
from typing import NoReturn

from voxpop.errors import (
    ColumnError,
    ExhaustedError,
    InputError,
    MemoryLimitError,
    SourceError,
    VoxpopError,
    no_thread_started,
    shown,
)
from voxpop.files.progress import EVENT_LOG, EventLog, note, noted

# 141 (128 + SIGPIPE): the reader closed the output.
DONE, FAULT, WRONG_CALL, EXHAUSTED, UNSAVED, UNREADABLE, NO_MEMORY, STOPPED, CLOSED = 0, 1, 2, 3, 4, 5, 6, 130, 141
CAUSES = {
    FAULT: "fault",
    WRONG_CALL: "call",
    EXHAUSTED: "budget",
    UNSAVED: "not saved",
    UNREADABLE: "source",
    NO_MEMORY: "memory",
    STOPPED: "stopped",
}
"""The causes of exit codes, for errors that are printed as JSON."""
ONCE = "A series is charged once, when it begins. Call `voxpop series init DIR"
HINTS = {
    ("", "option: --dry-run"): "Write the options to a job file, and check it with `voxpop run JOB --dry-run`.",
    ("", "option: --config"): "Write the options to a job file, and start it with `voxpop run JOB`.",
    ("plan", 'command "series"'): "Call `voxpop series plan`.",
    ("ledger", 'command "open"'): "Call `voxpop ledger init`.",
    **{("series", f"option: --{name}"): f"{ONCE} --ledger FILE --dataset NAME`." for name in ("ledger", "dataset")},
    **{("series", f"option: --{name}"): f"{ONCE} --epsilon E --delta D`." for name in ("epsilon", "delta")},
    ("series", "option: --nights"): f"{ONCE} --nights N`.",
    ("series", "option: --run-id"): "A repeated night returns its earlier result. Number nights with --night.",
}
"""The next steps for options and commands that are missing on purpose. A key consists of the command ("" for all
commands) and the text after "Unknown" in the parser's message."""
GLOBAL = {"--errors": ("text", "json"), "--log": None}
"""The options of every command, with their permitted values. None permits any value."""
EARLIER_TEXTS = "messages"
"""The key of the texts that the command wrote before it failed."""
OMITTED = "(omitted, because messages of libraries may quote data)"
OUT_OF_MEMORY = "Not enough memory. Set a limit, such as --memory 2GiB, to store the rest in work files."
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_REPORT_FAULT = "This is a fault in voxpop. Check that the lines above contain nothing private, then report them."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: The arguments after `voxpop`. By default, the arguments of the process are used.

    Returns:
        The exit code.
    """
    # The parser would treat a single hyphen as an option.
    given = ["/dev/stdin" if each == "-" else each for each in (sys.argv[1:] if arguments is None else arguments)]
    options: dict[str, str] = {}
    EVENT_LOG.set(EventLog())
    try:
        given = _without_globals(given, options)
        EVENT_LOG.set(EventLog(Path(options["--log"]) if "--log" in options else None))
        _never_fail_to_encode()
        with _collected(options):
            return _run(given)
    except KeyboardInterrupt:
        return _complain("stopped.", STOPPED, options)
    except (BrokenPipeError, SystemExit):
        return _closed()
    except Exception as error:
        return _explain(error, options)


def console() -> NoReturn:
    """Run the command line as a process, and exit without the cleanup of modules, which would take half a second."""
    for name in BLAS_THREADS:  # Set these before numpy is imported, because idle threads cost a second.
        os.environ.setdefault(name, "1")
    warnings.formatwarning = lambda message, *_, **__: f"voxpop: {shown(str(message))}\n"
    code = main()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _without_globals(given: list[str], options: dict[str, str]) -> list[str]:
    """Move the options that all commands share from the arguments to `options`, and return the remaining arguments.

    Raises:
        InputError: An option has no value or an invalid value.
    """
    rest, words = [], iter(given)
    for word in words:
        name, equals, value = word.partition("=")
        if name not in GLOBAL:
            rest.append(word)
            continue
        value = value if equals else next(words, "")
        choices = GLOBAL[name]
        if not value or (choices and value not in choices):
            raise InputError(f"{name} must be {' or '.join(choices) if choices else 'the name of a file'}.")
        options[name] = value
    return rest


@contextmanager
def _collected(options: dict[str, str]) -> Iterator[None]:
    """With `--errors json`, collect the text of standard error.

    The text becomes part of the JSON object if the command fails.
    """
    if options.get("--errors") != "json":
        yield
        return
    texts = StringIO()
    try:
        with redirect_stderr(texts):
            yield
    except BaseException:
        options[EARLIER_TEXTS] = texts.getvalue()
        raise
    sys.stderr.write(texts.getvalue())


def _run(given: list[str]) -> int:
    from voxpop.cli.app import app

    if not given:
        from rich.console import Console

        app.help_print([], console=Console(stderr=True))
        return WRONG_CALL
    code = app(given, exit_on_error=False, print_error=False)
    sys.stdout.flush()
    return code if isinstance(code, int) else DONE


def _code_of(error: InputError) -> int:
    """Return the exit code for the cause of an error."""
    events = noted()
    if "charged" in events or "kept" in events:
        return UNSAVED
    if isinstance(error, ExhaustedError):
        return EXHAUSTED
    if isinstance(error, MemoryLimitError):
        return NO_MEMORY
    return UNREADABLE if isinstance(error, SourceError) and not isinstance(error, ColumnError) else WRONG_CALL


def _explain(error: Exception, options: dict[str, str]) -> int:
    from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError

    if isinstance(error, InputError):
        return _complain(str(error), _code_of(error), options)
    if isinstance(error, CycloptsError):
        command = " ".join(("voxpop", *(error.command_chain or ())))
        text = str(error).rstrip()
        for (group, each), hint in HINTS.items():
            if group in ("", *(error.command_chain or ())) and text.startswith(
                (f"Unknown {each}.", f"Unknown {each}?")
            ):
                text = f"Unknown {each}. {hint}"
        if isinstance(error, MissingArgumentError) and error.argument is not None:
            word = error.keyword or next((each.keyword for each in error.argument.tokens), None)
            text = f"{error.argument.name} is missing." if word is None else f"{word} has no value."
            text += f" {error.argument.parameter.help}" if error.argument.parameter.help else ""
        if isinstance(error, UnusedCliTokensError):
            first = next(iter(error.unused_tokens or ()), "")
            text = f"{first!r} belongs to no option. Write --name VALUE, and commas in lists of names."
        return _complain(
            f"{text}{'' if text.endswith(('.', '?')) else '.'} See `{command} --help`.", WRONG_CALL, options
        )
    if _is_out_of_memory(error):
        return _complain(OUT_OF_MEMORY, NO_MEMORY, options)
    if options.get("--errors") == "json":
        options[EARLIER_TEXTS] = options.get(EARLIER_TEXTS, "") + "".join(_frames(error))
    else:
        sys.stderr.writelines(_frames(error))
    return _complain(_REPORT_FAULT, FAULT, options)


def _is_out_of_memory(error: BaseException) -> bool:
    text = str(error)
    libraries = isinstance(error, ImportError) and ("failed to map" in text or "allocate memory" in text)
    return isinstance(error, MemoryError) or no_thread_started(error) or libraries


def _quotes_nothing(error: BaseException) -> bool:
    return isinstance(error, VoxpopError) or (isinstance(error, OSError) and error.errno is not None)


def _frames(error: BaseException) -> list[str]:
    """Return a traceback without library messages, which may quote values."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    lines = []
    for each in reversed(chain):
        lines += ["Traceback (most recent call last):\n", *traceback.format_tb(each.__traceback__)]
        lines.append(f"{type(each).__qualname__}: {each if _quotes_nothing(each) else OMITTED}\n")
    return list(map(shown, lines))


def _complain(message: str, code: int, options: Mapping[str, str]) -> int:
    text, events = shown(" ".join(message.split())), noted()
    facts = {
        "charged": "charged" in events,
        "kept": events.get("kept", {}).get("folder"),
        "repeated": "repeated" in events,
    }
    with suppress(OSError):  # The log may be on a full disk.
        note("error", code=code, cause=CAUSES[code], message=text, **facts)
    if options.get("--errors") == "json":
        messages = options.get(EARLIER_TEXTS, "").splitlines()
        text = json.dumps({"error": text, "code": code, "cause": CAUSES[code], **facts, "messages": messages})
        sys.stderr.write(f"{text}\n")
    else:
        sys.stderr.write(f"voxpop: {text}\n")
    return code


def _never_fail_to_encode() -> None:
    """Write escapes for characters that the terminal cannot show.

    An encoding error would be too late, because the budget may already be spent.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _closed() -> int:
    """Redirect standard output to the null device, so that the interpreter can flush it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return CLOSED
