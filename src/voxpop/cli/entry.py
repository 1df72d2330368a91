"""What happens around every command: exit codes, and messages instead of tracebacks.

Exit code 0: done. 2: a wrong call, or data that cannot be used; one line on standard error says what to do. 1: a fault
of voxpop itself, with its traceback. 130: stopped by Ctrl-C. 141: whoever read our output went away.
"""

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

DONE, FAULT, WRONG_CALL, STOPPED, UNHEARD = 0, 1, 2, 130, 141
LEFT_OUT = "(left out: messages of libraries may quote what was read)"
EXHAUSTED = "memory ran out. Give --memory, such as --memory 2GiB, so that what does not fit goes to work files."
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
REPORT = (
    "this is a fault of voxpop itself. Please report it with the lines above, "
    "once you have seen that they quote nothing private."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: what follows `voxpop`; by default what the process was called with.

    Returns:
        The exit code.
    """
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return _complain("stopped.", STOPPED)
    except (BrokenPipeError, SystemExit):
        return _unheard()
    except Exception as error:
        return _explain(error)


def console() -> NoReturn:
    """Run the command line as a process of its own, and leave at once.

    Everything is written by then; taking a hundred modules apart would only cost half a second.
    """
    for name in BLAS_THREADS:  # before numpy is imported: threads that wait for small products cost a second
        os.environ.setdefault(name, "1")
    code = main()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    from typer.main import get_command

    from voxpop.cli.app import app

    _never_fail_to_encode()
    code = get_command(app).main(arguments, prog_name="voxpop", standalone_mode=False)
    if code == STOPPED:  # how typer reports Ctrl-C
        raise KeyboardInterrupt
    sys.stdout.flush()
    return code if isinstance(code, int) else DONE


def _explain(error: Exception) -> int:
    from voxpop.errors import InputError

    if isinstance(error, InputError):
        return _complain(str(error), WRONG_CALL)
    if hasattr(error, "format_message"):  # what typer says about a wrong call, in all its versions
        return _complain(_usage(error), WRONG_CALL)
    if _is_starved(error):
        return _complain(EXHAUSTED, WRONG_CALL)
    sys.stderr.writelines(_frames(error))
    return _complain(REPORT, FAULT)


def _is_starved(error: BaseException) -> bool:
    """Say whether an error is how Python reports that memory ran out: to itself, for a thread, or for a library."""
    said = str(error)
    threads = isinstance(error, RuntimeError) and "start new thread" in said
    libraries = isinstance(error, ImportError) and ("failed to map" in said or "allocate memory" in said)
    return isinstance(error, MemoryError) or threads or libraries


def _is_ours(error: BaseException) -> bool:
    """Say whether a message quotes nothing: ours never do, nor do those of a system call."""
    from voxpop.errors import VoxpopError

    return isinstance(error, VoxpopError) or (isinstance(error, OSError) and error.errno is not None)


def _frames(error: BaseException) -> list[str]:
    """Return a traceback without what libraries say in it: their messages quote values."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    lines = []
    for each in reversed(chain):
        lines += ["Traceback (most recent call last):\n", *traceback.format_tb(each.__traceback__)]
        lines.append(f"{type(each).__qualname__}: {each if _is_ours(each) else LEFT_OUT}\n")
    return lines


def _usage(error: Exception) -> str:
    message = str(error.format_message())  # type: ignore[attr-defined]
    if "\n" in message:  # a whole help page, for `voxpop` alone
        return message
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "voxpop"
    stop = "" if message.endswith((".", "?")) else "."
    return f"{message}{stop} See `{command} --help`."


def _complain(message: str, code: int) -> int:
    whole_page = message.lstrip().startswith("Usage:")
    sys.stderr.write(f"{message}\n" if whole_page else f"voxpop: {' '.join(message.split())}\n")
    return code


def _never_fail_to_encode() -> None:
    """Write escapes where a terminal lacks a letter, rather than stop after the budget was spent."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _unheard() -> int:
    """Let the interpreter flush into nowhere on its way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return UNHEARD
