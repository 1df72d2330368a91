"""Exit codes, and one-line messages instead of tracebacks.

Exit code 0: done. 1: a fault of voxpop, with its traceback. 2: a wrong call, or data that cannot be used; one line on
standard error names the next step. 130: stopped by Ctrl-C. 141: the reader of the output closed it.
"""

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from voxpop.errors import InputError, VoxpopError, shown

DONE, FAULT, WRONG_CALL, STOPPED, CLOSED = 0, 1, 2, 130, 141
OMITTED = "(omitted: messages of libraries may quote data)"
EXHAUSTED = "Not enough memory. Set a limit, such as --memory 2GiB: the rest goes to work files."
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
REPORT = "This is a fault of voxpop. Check that the lines above contain nothing private, then report them."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: the arguments after `voxpop`; by default those of the process.

    Returns:
        The exit code.
    """
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return _complain("stopped.", STOPPED)
    except (BrokenPipeError, SystemExit):
        return _closed()
    except Exception as error:
        return _explain(error)


def console() -> NoReturn:
    """Run the command line as a process and exit without tearing modules down, which would take half a second."""
    for name in BLAS_THREADS:  # before numpy is imported: idle threads cost a second
        os.environ.setdefault(name, "1")
    warnings.formatwarning = lambda message, *_, **__: f"voxpop: {shown(str(message))}\n"
    code = main()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    from voxpop.cli.app import app

    _never_fail_to_encode()
    # The parser takes a single hyphen for an option.
    given = ["/dev/stdin" if each == "-" else each for each in (sys.argv[1:] if arguments is None else arguments)]
    if not given:
        from rich.console import Console

        app.help_print([], console=Console(stderr=True))
        return WRONG_CALL
    code = app(given, exit_on_error=False, print_error=False)
    sys.stdout.flush()
    return code if isinstance(code, int) else DONE


def _explain(error: Exception) -> int:
    from cyclopts import CycloptsError, UnusedCliTokensError

    if isinstance(error, InputError):
        return _complain(str(error), WRONG_CALL)
    if isinstance(error, CycloptsError):
        command = " ".join(("voxpop", *(error.command_chain or ())))
        text = str(error).rstrip()
        if isinstance(error, UnusedCliTokensError):
            first = next(iter(error.unused_tokens or ()), "")
            text = f"{first!r} belongs to no option. Write --name VALUE, and commas in lists of names."
        return _complain(f"{text}{'' if text.endswith(('.', '?')) else '.'} See `{command} --help`.", WRONG_CALL)
    if _is_out_of_memory(error):
        return _complain(EXHAUSTED, WRONG_CALL)
    sys.stderr.writelines(_frames(error))
    return _complain(REPORT, FAULT)


def _is_out_of_memory(error: BaseException) -> bool:
    text = str(error)
    threads = isinstance(error, RuntimeError) and "start new thread" in text
    libraries = isinstance(error, ImportError) and ("failed to map" in text or "allocate memory" in text)
    return isinstance(error, MemoryError) or threads or libraries


def _quotes_nothing(error: BaseException) -> bool:
    return isinstance(error, VoxpopError) or (isinstance(error, OSError) and error.errno is not None)


def _frames(error: BaseException) -> list[str]:
    """Return a traceback without the messages of libraries, which may quote values."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    lines = []
    for each in reversed(chain):
        lines += ["Traceback (most recent call last):\n", *traceback.format_tb(each.__traceback__)]
        lines.append(f"{type(each).__qualname__}: {each if _quotes_nothing(each) else OMITTED}\n")
    return list(map(shown, lines))


def _complain(message: str, code: int) -> int:
    sys.stderr.write(f"voxpop: {shown(' '.join(message.split()))}\n")
    return code


def _never_fail_to_encode() -> None:
    """Write escapes where the terminal lacks a character, since the budget may be spent already."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _closed() -> int:
    """Redirect standard output, so that the interpreter can flush it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return CLOSED
