"""User-item pairs: voxpop against a count without privacy, and against private peers, in one run.

python -m benchmarks.speed_pairs            # add --peers after `make bench-peers`
"""

import subprocess
import sys
import tempfile

import polars as pl

import voxpop as vp
from benchmarks.common import BUDGET, OUT, ROOT, seconds, table
from voxpop.datasets.pairs import write_pairs

PAIRS = OUT / "pairs.parquet"
PEERS = {
    "OpenDP, Gaussian threshold": ["opendp_threshold.py", str(PAIRS), "gaussian"],
    "OpenDP, Laplace threshold": ["opendp_threshold.py", str(PAIRS), "laplace"],
    "PipelineDP, Gaussian thresholding": ["pipelinedp_selection.py", str(PAIRS)],
}


def ours() -> int:
    """Read and release."""
    corpus = vp.read(PAIRS, user="user", items="item")
    return len(vp.SetUnion(limit=100).release(corpus, BUDGET))


def count() -> int:
    """Count users per item, without privacy."""
    return pl.scan_parquet(PAIRS).unique().group_by("item").len().collect().height


def whole_process() -> None:
    """Run the command line from nothing to a saved release."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--user", "user", "--items", "item", "--epsilon", "3", "--delta", "4.54e-5", "-o", f"{folder}/r"]
        program = [sys.executable, "-m", "voxpop", "items", str(PAIRS), *options]
        subprocess.run(program, check=True, capture_output=True)


def peer(arguments: list[str]) -> str:
    """Run a peer in its own environment; return how many items it released."""
    program = [str(ROOT / "benchmarks" / ".venv" / "bin" / "python"), str(ROOT / "benchmarks" / "peers" / arguments[0])]
    done = subprocess.run([*program, *arguments[1:]], check=True, capture_output=True, text=True)
    return done.stdout.split()[0]


def main() -> None:
    """Measure, print, write."""
    if not PAIRS.exists():
        OUT.mkdir(exist_ok=True)
        write_pairs(PAIRS)
    released, _ = ours(), count()
    in_process, counting = seconds(ours, 5), seconds(count, 5)
    whole = seconds(whole_process, 3)
    rows = [
        ["", "seconds", "ratio", "released"],
        ["count without privacy, polars, in process", f"{counting:.2f}", "1.0", "-"],
        ["voxpop, in process", f"{in_process:.2f}", f"{in_process / counting:.2f}", f"{released:,}"],
        ["voxpop, whole process", f"{whole:.2f}", "1.0", ""],
    ]
    if "--peers" in sys.argv:
        for name, arguments in PEERS.items():
            found: list[str] = []
            taken = seconds(lambda a=arguments, f=found: f.append(peer(a)), 1)
            rows.append([f"{name}, whole process", f"{taken:.2f}", f"{taken / whole:.1f}", f"{int(found[0]):,}"])
    note = f"{pl.scan_parquet(PAIRS).select(pl.len()).collect().item():,} pairs; epsilon 3, delta e^-10, limit 100."
    note += " Ratios within processes are to polars, those of whole processes to voxpop."
    table("User-item pairs", rows, "speed_pairs", note)


if __name__ == "__main__":
    main()
