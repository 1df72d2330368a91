"""From Parquet to a saved corpus, compared with scikit-learn and plain polars on the same texts and tokens, in one run.

python -m benchmarks.speed.text
"""

import subprocess
import sys
import unicodedata

import polars as pl

import voxpop as vp
from benchmarks.support.benchmark import SET_UNION, Benchmark
from benchmarks.support.common import BUDGET, DATA, OUT, seconds
from benchmarks.support.engines import load_engine, read_engine

BENCHMARK = Benchmark(__file__, ("speed_text",), (*SET_UNION, "reading"), minutes=1.5)

SOURCE = DATA / "reddit_posts.parquet"
TOKEN = r"[\p{L}\p{M}\p{N}']+"
URL = r"(?:https?://|www\.)\S+"


def encode() -> None:
    """Read, tokenise, encode and save."""
    read_engine(SOURCE, user="user", text="text").save(OUT / "speed.corpus")


def plain_polars() -> int:
    """Compute the same tokens and ids with polars expressions, without saving them."""
    texts = pl.read_parquet(SOURCE)["text"].str.normalize("NFC").str.to_lowercase().str.replace_all(URL, " ")
    words = texts.str.extract_all(TOKEN).list.explode(keep_nulls=False, empty_as_null=False)
    return len(words.cast(pl.Categorical).to_physical())


def vectorizer(texts: list[str]) -> int:
    """Run scikit-learn's CountVectorizer.fit with the same tokens."""
    import re

    from sklearn.feature_extraction.text import CountVectorizer

    url = re.compile(URL)

    def prepare(text: str) -> str:
        return url.sub(" ", unicodedata.normalize("NFC", text).lower())

    counter = CountVectorizer(preprocessor=prepare, token_pattern=r"(?:[^\W_]|')+")
    return len(counter.fit(texts).vocabulary_)


def peak_gib(code: str) -> float:
    """Return the peak memory of a process that runs the code."""
    line = f"import resource; {code}; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1]) / 2**20


def main() -> None:
    """Measure, print and write the results."""
    encode()
    ours = seconds(encode, 5)
    corpus = load_engine(OUT / "speed.corpus")
    plan = vp.Items(max_items_per_user=100).plan(BUDGET)
    plan.release(corpus)
    release = seconds(lambda: plan.release(corpus), 5)
    polars = seconds(plain_polars, 3)
    texts = pl.read_parquet(SOURCE)["text"].to_list()
    sklearn = seconds(lambda: vectorizer(texts), 1)
    peak = peak_gib("from benchmarks.speed.text import encode; encode()")
    rows = [
        ["", "seconds", "ratio to voxpop"],
        ["voxpop: Parquet to saved corpus (median of 5, kernels warm)", f"{ours:.2f}", "1.0"],
        ["polars expressions: tokens to ids, nothing saved (median of 3)", f"{polars:.2f}", f"{polars / ours:.1f}"],
        ["scikit-learn CountVectorizer.fit, texts in memory", f"{sklearn:.2f}", f"{sklearn / ours:.1f}"],
        ["voxpop: release of the words, limit 100 (median of 5)", f"{release:.2f}", f"{release / ours:.2f}"],
    ]
    note = f"Peak memory of a process that reads, encodes and saves: {peak:.2f} GiB."
    BENCHMARK.table("Half a million posts, 25.3 million words", rows, "speed_text", note)


if __name__ == "__main__":
    main()
