"""Read and extract an input ten times larger than the bound, and say what memory it took: python -m tools.memory.

The input is made once, in out/, and is what tests/support/memory_input.py writes: words of fifteen letters, such as
keys have, since time goes by words and the bound by bytes. N-grams run at epsilon 0.5: the distinct phrases
that may be released are numbered in memory, a million of them at this bound, and twelve are tried for each
released word.
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
    """Measure and compare."""
    times, peak = measured()
    print(f"input {times:.1f} times the bound; peak {peak} MiB of {BOUND >> 20}")
    return 0 if peak << 20 <= BOUND else 1


def measured() -> tuple[float, int]:
    """Make the input if need be and run in a process of its own.

    Returns:
        How many times larger than the bound the input is, and the peak in MiB.

    Raises:
        CalledProcessError: where making or running fails.
    """
    if not INPUT.exists():
        INPUT.parent.mkdir(exist_ok=True)
        size = 10 * BOUND + BOUND // 3  # in memory; the file is a little smaller
        part = INPUT.with_suffix(".part")  # one that was interrupted is not taken for all of it
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
    """Read and release, saying after each how long it took and the peak so far."""
    import voxpop as vp

    begun = time.perf_counter()
    corpus = vp.read(INPUT, user="who", text="text", options=vp.ReadOptions(memory=BOUND))
    _say("read", begun)
    for mechanism, epsilon in ((vp.SetUnion(), 4), (vp.NGrams(max_length=2), 0.5)):
        released = mechanism.release(corpus, vp.Budget(epsilon, 1e-7))
        _say(f"{type(mechanism).__name__}, {len(released):,} released", begun)


def _say(what: str, begun: float) -> None:
    print(f"{what}: {time.perf_counter() - begun:.0f} s, peak {megabytes_of('VmHWM')} MiB", flush=True)


def megabytes_of(field: str) -> int:
    """Return MiB of this process, by Linux: VmHWM is its peak so far, RssFile the mapped files now in memory."""
    said = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert said is not None
    return int(said[1]) >> 10


if __name__ == "__main__":
    run() if "--run" in sys.argv else sys.exit(main())
