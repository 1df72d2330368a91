"""Run a test of tests/fuzz with inputs that are guided by coverage: python -m tools.fuzz TEST RUNS.

atheris changes the bytes that hypothesis draws from, to reach new lines of voxpop. atheris ends the process at the
first input for which the test fails.
"""

import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import atheris

ROOT = Path(__file__).resolve().parent.parent


def main(name: str, runs: str) -> None:
    """Fuzz one test with the given number of inputs."""
    sys.path.insert(0, str(ROOT / "tests"))
    for module in iter_modules([str(ROOT / "src" / "voxpop" / "kernels")]):
        import_module(f"voxpop.kernels.{module.name}")  # Coverage does not count lines of compiled code.
    with atheris.instrument_imports(include=["voxpop"]):  # Modules are also imported later.
        from fuzz import test_fuzz

        target = getattr(test_fuzz, name).hypothesis.fuzz_one_input
        atheris.Setup([sys.argv[0], f"-runs={runs}", "-max_len=4096", "-timeout=60"], target)
        atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:3])
