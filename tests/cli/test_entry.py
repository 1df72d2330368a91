"""Tests of exit codes and messages that all commands share."""

import os
import subprocess
import sys

import pytest

from voxpop.errors import InternalError


def test_the_version_is_printed(voxpop):
    """`--version` prints the name and version, with code 0."""
    import voxpop as package

    assert voxpop("--version") == (0, f"voxpop {package.__version__}\n", "")


def test_a_call_without_arguments_lists_the_commands(voxpop):
    """`voxpop` without arguments exits with code 2 and lists the commands."""
    code, _, err = voxpop()
    assert code == 2
    assert all(command in err for command in ("items", "plan", "show", "demo"))


@pytest.mark.parametrize("command", ["items", "plan", "show", "demo"])
def test_every_command_has_help(voxpop, command):
    """Every command prints its help."""
    code, out, err = voxpop(command, "--help")
    assert (code, err) == (0, "")
    assert f"voxpop {command}" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["iems"], 'Did you mean "items"?'),
        (["plan", "items", "--epsilon", "four"], "--epsilon"),
        (["plan", "items", "--epsilonn", "4"], "--epsilonn"),
        (["plan", "items", "--delta", "1e-7"], "--epsilon is missing"),
        (["plan", "items", "--epsilon", "4"], "--delta is missing"),
        (["plan", "items", "--epsilon", "0", "--delta", "1e-7"], "`epsilon` must be finite and more than 0"),
        (["plan", "items", "--epsilon", "nan", "--delta", "1e-7"], "`epsilon` must be finite and more than 0"),
        (["plan", "items", "--epsilon", "4", "--delta", "1"], "`delta` must be at least 0 and less than 1"),
        (
            ["plan", "items", "--epsilon", "4", "--delta", "1e-7", "--max-items-per-user", "0"],
            "`max_items_per_user` must be",
        ),
        (
            ["plan", "items", "--epsilon", "4", "--delta", "1e-7", "--max-items-per-user", "many"],
            "--max-items-per-user",
        ),
        (["plan", "items", "--epsilon", "4", "--delta", "1e-7", "extra"], "extra"),
        (["show"], "DIR"),
        (["show", "nowhere"], "nowhere does not exist"),
        (["show", "nowhere", "--first", "-1"], "--first"),
        (
            ["sequences", "v.csv", "--user", "u", "--sequence", "s", "--epsilon", "1", "-o", "m", "--synthesize", "-1"],
            "--synthesize",
        ),
        (["plan", "items", "--noise", "laplace"], "Unknown option: --noise"),
        (["items"], "--help"),
    ],
)
def test_wrong_calls_print_one_line(voxpop, arguments, words):
    """A wrong call exits with code 2 and prints one line that names the problem."""
    assert words in voxpop(*arguments).complaint


def raise_in_show(monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr("voxpop.load", fail)


@pytest.mark.parametrize("error", [InternalError("broken"), KeyError("broken"), OSError("broken")])
def test_a_fault_of_voxpop_shows_a_traceback(voxpop, monkeypatch, error):
    """An internal error exits with code 1 and prints a traceback and a request to report the error."""
    raise_in_show(monkeypatch, error)
    code, out, err = voxpop("show", "words")
    assert (code, out) == (1, "")
    assert err.startswith("Traceback")
    assert ("broken" in err) == isinstance(error, InternalError)  # Messages of libraries can quote values.
    assert "This is a fault in voxpop" in err


def test_ctrl_c_is_reported(voxpop, monkeypatch):
    """Ctrl-C inside a command exits with code 130 and without a traceback."""
    raise_in_show(monkeypatch, KeyboardInterrupt())
    assert voxpop("show", "words") == (130, "", "voxpop: stopped.\n")


def test_ctrl_c_during_startup_is_reported(voxpop, monkeypatch):
    """Ctrl-C before a command begins also exits with code 130 and without a traceback."""

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("voxpop.cli.entry._never_fail_to_encode", fail)
    assert voxpop("--help") == (130, "", "voxpop: stopped.\n")


def test_a_real_ctrl_c_ends_the_command():
    """A process that receives SIGINT during a command exits with code 130."""
    program = (
        "import os, signal, sys, voxpop.release.result as result\n"
        "result.load = lambda folder: os.kill(os.getpid(), signal.SIGINT)\n"
        "from voxpop.cli import main\n"
        "sys.exit(main(['show', 'words']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "voxpop: stopped.\n")


def test_a_closed_output_pipe_is_not_an_error():
    """If the reader of the output has closed the pipe, the command exits without a message."""
    program = "import sys; from voxpop.cli import main; sys.exit(main(['--help']))"
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = subprocess.run([sys.executable, "-c", program], stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(("arguments", "code"), [(["--version"], 0), (["items"], 2), (["show", "nowhere"], 2)])
def test_the_process_ends_with_the_code_of_the_command(arguments, code, tmp_path):
    """`python -m voxpop.cli` writes all output and exits with the code of the command."""
    call = [sys.executable, "-m", "voxpop.cli", *arguments]
    done = subprocess.run(call, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == code
    assert (done.stdout if code == 0 else done.stderr).startswith("voxpop")
