"""The tests of tests/fuzz driven by coverage: python -m tools.fuzz TEST RUNS.

atheris changes the bytes that hypothesis draws from so that lines of voxpop are reached that were not before. It ends
the process at the first input that a test does not accept.
"""

import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import atheris

ROOT = Path(__file__).resolve().parent.parent


def main(name: str, runs: str) -> None:
    """Fuzz one test, for so many inputs."""
    sys.path.insert(0, str(ROOT / "tests"))
    for module in iter_modules([str(ROOT / "src" / "voxpop" / "kernels")]):
        import_module(f"voxpop.kernels.{module.name}")  # compiled: what counts lines has no place in it
    with atheris.instrument_imports(include=["voxpop"]):  # to the end, since modules are imported on first use
        from fuzz import test_fuzz

        target = getattr(test_fuzz, name).hypothesis.fuzz_one_input
        atheris.Setup([sys.argv[0], f"-runs={runs}", "-max_len=4096", "-timeout=60"], target)
        atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:3])
