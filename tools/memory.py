"""Read and extract an input that is ten times as large as the bound, and print the memory used: python -m tools.memory.

tests/support/memory_input.py writes the input once, in out/. The words have fifteen letters, as keys do, because time
depends on the number of words but memory on their bytes. N-grams run at epsilon 0.025. A vote numbers the distinct
pairs of released words in memory, up to 8 million at this bound. This is enough for any data with 2,800 released words.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOUND = 1 << 30
INPUT = ROOT / "out" / "memory.parquet"


def main() -> int:
    """Measure the peak memory, and return 0 if it is within the bound and 1 otherwise."""
    times, peak = measured()
    print(f"input {times:.1f} times the bound; peak {peak} MiB of {BOUND >> 20}")
    return 0 if peak << 20 <= BOUND else 1


def measured() -> tuple[float, int]:
    """Write the input if it does not exist, and run in a separate process.

    Returns:
        The size of the input divided by the bound, and the peak in MiB.

    Raises:
        CalledProcessError: If writing the input or running fails.
    """
    if not INPUT.exists():
        INPUT.parent.mkdir(exist_ok=True)
        size = 10 * BOUND + BOUND // 3  # The size in memory. The file is slightly smaller.
        part = INPUT.with_suffix(".part")  # An incomplete file is not used as the input.
        call = [sys.executable, str(ROOT / "tests" / "support" / "memory_input.py"), str(part), str(size), "15"]
        subprocess.run(call, check=True)
        part.rename(INPUT)
    said = ""
    with subprocess.Popen([sys.executable, __file__, "--run"], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        for said in run.stdout:
            print(said, end="", flush=True)
    if run.returncode:
        raise subprocess.CalledProcessError(run.returncode, run.args)
    return INPUT.stat().st_size / BOUND, int(said.split()[-2])


def run() -> None:
    """Read the input, release items and phrases, and print the elapsed seconds and the peak memory after each step."""
    import voxpop as vp

    begun = time.perf_counter()
    corpus = vp.read(INPUT, user="who", text="text", options=vp.ReadOptions(memory=BOUND))
    _say("read", begun)
    for mechanism, epsilon in ((vp.Items(), 4), (vp.NGrams(max_length=2), 0.025)):
        released = mechanism.release(corpus, vp.Budget(epsilon, 1e-7))
        _say(f"{type(mechanism).__name__}, {len(released):,} released", begun)


def _say(what: str, begun: float) -> None:
    print(f"{what}: {time.perf_counter() - begun:.0f} s, peak {megabytes_of('VmHWM')} MiB", flush=True)


def megabytes_of(field: str) -> int:
    """Return a memory field of Linux in MiB. VmHWM is the peak of the process so far, and RssFile is mapped files."""
    said = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert said is not None
    return int(said[1]) >> 10


if __name__ == "__main__":
    run() if "--run" in sys.argv else sys.exit(main())
