"""Tests that a client of Spark Connect, which supports only DataFrames, returns the same release."""

import json
import subprocess
import sys

import pytest

import voxpop as vp
from support.look import read_engine

pytest.importorskip("grpc", reason="no grpcio: pip install 'pyspark[connect]'")
pytestmark = pytest.mark.slow

CLIENT = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.remote("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .getOrCreate()
)
import voxpop as vp
from voxpop.engine.contract import check_engine
frame = spark.read.parquet(sys.argv[1])
assert type(frame).__module__.startswith("pyspark.sql.connect"), type(frame)
corpus = vp.read(frame, user="who", text="what")
assert check_engine(corpus)._places == 2
phrases = vp.papers.DPNE(max_length=3, max_phrases_per_user=4).release(corpus, vp.Budget(4, 1e-8), seed=3)
model = vp.Sequences(max_length=6, max_gram=3, alphabet=["thank", "you", "very"]).release(corpus, vp.Budget(4), seed=3)
whole = vp.read(frame, user="who", text="what", options=vp.ReadOptions(partitions=1))
words = vp.Items(max_items_per_user=3).release(whole, vp.Budget(4, 1e-8), seed=3)
told = {"counts": model.tree.counts.tolist(), "words": [word for (word,) in words.each_gram()]}
print(json.dumps({"grams": [list(gram) for gram in phrases], **told}))
"""


def test_a_connect_client_releases_the_same_items(java, talk, tmp_path):
    """The releases are phrases, a model, and words from adaptive rounds."""
    path = tmp_path / "talk.parquet"
    talk.write_parquet(path)
    done = subprocess.run([sys.executable, "-c", CLIENT, str(path)], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout.splitlines()[-1])
    # On Spark, documents are ordered by content.
    corpus = read_engine(talk.sort("who", "what"), user="who", text="what")
    phrases = vp.papers.DPNE(max_length=3, max_phrases_per_user=4).release(corpus, vp.Budget(4, 1e-8), seed=3)
    sequences = vp.Sequences(max_length=6, max_gram=3, alphabet=["thank", "you", "very"])
    assert told["grams"] == [list(gram) for gram in phrases]
    assert told["counts"] == sequences.release(corpus, vp.Budget(4), seed=3).tree.counts.tolist()
    words = vp.Items(max_items_per_user=3).release(corpus, vp.Budget(4, 1e-8), seed=3)
    assert told["words"] == [word for (word,) in words.each_gram()]
    assert len(phrases) > 10
    assert len(words) > 5
