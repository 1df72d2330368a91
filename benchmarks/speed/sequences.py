"""Seconds for a release, a million synthetic sequences, and a large alphabet.

python -m benchmarks.speed.sequences
"""

import resource

import voxpop as vp
from benchmarks.support.common import DATA, posts, seconds, table
from benchmarks.support.engines import read_engine

PAGES = [str(page) for page in range(1, 18)]


def main() -> None:
    """Measure, print, write."""
    visits = read_engine(DATA / "msnbc.parquet", user="user", sequence="sequence")
    pages = vp.Sequences(alphabet=PAGES)
    pages.release(visits, vp.Budget(1)).sample(10)  # compile
    model = pages.release(visits, vp.Budget(1))
    rows = [["what", "seconds"]]
    rows.append(["release, MSNBC (989,818 sequences)", f"{seconds(lambda: pages.release(visits, vp.Budget(1))):.2f}"])
    rows.append(["sample of 1,000,000 as a table", f"{seconds(lambda: model.sample(1_000_000)):.2f}"])
    rows.append(["the paper's synthetic data", f"{seconds(model.synthesize):.2f}"])
    words = posts()
    alphabet = vp.SetUnion().release(words, vp.Budget(1, 1e-7))
    known = vp.Sequences(alphabet=alphabet)
    every = vp.Sequences(alphabet=words.vocabulary.to_pylist())
    rows.append(
        [f"release, posts, {len(alphabet):,} words", f"{seconds(lambda: known.release(words, vp.Budget(2))):.2f}"]
    )
    size = len(words.vocabulary)
    rows.append([f"release, posts, {size:,} words", f"{seconds(lambda: every.release(words, vp.Budget(2))):.2f}"])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    table("Speed of sequences", rows, "speed_sequences", f"Two cores, compiled kernels; peak memory {peak:.1f} GiB.")


if __name__ == "__main__":
    main()
