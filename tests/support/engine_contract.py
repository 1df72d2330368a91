"""What every engine must show: each mechanism, and the same release from each engine."""

import random

import polars as pl

import voxpop as vp
from naive.engine import NaiveEngine
from voxpop.release.grams import table_of_lists
from voxpop.release.stored_plan import StoredPlan
from voxpop.sequences.context_tree import ContextTree

BUDGET = vp.Budget(4, 1e-6)
PURE = vp.Budget(4)
WORDS = ["thank", "you", "very", "much", "see", "soon", "good", "night", "naïve", "wordofmorethanfifteenbytes"]

UNIONS = {
    "count, laplace": vp.SetUnion(limit=3, weighting="count", noise="laplace"),
    "weighted, two rounds": vp.SetUnion(limit=3, weighting="weighted", rounds=2),
    "l1-descent": vp.SetUnion(limit=3, weighting="l1-descent", noise="laplace"),
    "adaptive": vp.SetUnion(limit=3),
    "adaptive, one of a pool": vp.SetUnion(limit=1, pool=4),
    "l2-descent": vp.SetUnion(limit=3, weighting="l2-descent", rounds=2),
    "set-only": vp.SetUnion(limit=3, weighting="weighted", accounting="set-only"),
    "one item each": vp.SetUnion(limit=1, weighting="count"),
}
PHRASES = {
    "guided": vp.NGrams(max_length=4, limit=4),
    "guided, weighted": vp.NGrams(max_length=4, limit=4, eta=0.3, weighting="weighted"),
    "published": vp.NGrams(max_length=3, limit=4, guide=False, budgets="equal", thresholds="published"),
    "shared, words once": vp.NGrams(max_length=4, limit=4, spending="shared", words="once"),
    "individual, weighted": vp.NGrams(max_length=4, limit=3, eta=0.3, weighting="weighted", spending="individual"),
    "single-side": vp.NGrams(max_length=4, limit=3, pruning="single"),
}
SEQUENCES = {
    "contexts, sampled": vp.Sequences(max_length=6, max_gram=3, alphabet=WORDS[:5]),
    "contexts, joined": vp.Sequences(max_length=3, max_gram=4, alphabet=WORDS[2:5], combine="concatenate"),
    "grams, sampled": vp.Sequences(max_length=6, max_gram=3, alphabet=WORDS, tree="grams"),
    "grams, joined": vp.Sequences(max_length=6, max_gram=3, alphabet=WORDS[:5], combine="concatenate", tree="grams"),
}
HITTERS = {"characters": vp.HeavyHitters(max_length=9), "tokens": vp.HeavyHitters(max_length=4, alphabet="tokens")}


def crowd(users: int = 240) -> pl.DataFrame:
    """Return rows of users who say much the same, in several documents each, out of order, some of them empty."""
    rng = random.Random(7)
    rows = []
    for _ in range(3):
        for user in rng.sample(range(users), users):
            start = rng.randrange(7)
            text = " ".join([*WORDS[start : start + 4], f"own{user}"] if user % 11 else [])
            rows.append((user * 1_000_003, text))
    # A user's documents in the order of their contents, as Spark has them; users out of order all the same.
    table = pl.DataFrame(rows, schema=["who", "what"], orient="row")
    return table.with_columns(pl.col("what").sort().over("who"))


def items_of(table: pl.DataFrame) -> pl.DataFrame:
    """Return the words of a table, one row each."""
    return table.with_columns(pl.col("what").str.split(" ")).explode("what").filter(pl.col("what") != "")


def naive_of(corpus: vp.Corpus) -> NaiveEngine:
    """Return what a corpus holds, in dicts."""
    words = corpus.vocabulary.to_pylist()
    users = {}
    for place, key in enumerate(corpus.user_key.tolist()):
        documents = [[]]
        for token in corpus.tokens[corpus.user_start[place] : corpus.user_start[place + 1]].tolist():
            if token < 0:
                documents.append([])
            else:
                documents[-1].append(words[token])
        users[key] = documents if corpus.kind == "items" else documents[:-1]
    return NaiveEngine(users, corpus.kind, corpus.reading, corpus.keys)


def shown(released) -> object:
    """Return all that two releases must agree in."""
    if isinstance(released, vp.SequenceModel):
        tree = released.tree
        read = tree.before if isinstance(tree, ContextTree) else tree.symbols
        return [each.tolist() for each in (tree.parents, read, tree.counts)]
    return released.to_arrow(), released.plan.to_dict(), released.guarantee


def release_of(grams) -> vp.Release:
    """Return a release of grams that no mechanism made."""
    ordered = sorted(sorted(map(list, grams)), key=len)
    return vp.Release(table_of_lists(ordered), StoredPlan({}), vp.Guarantee(1, 1e-8))


LISTED = release_of([("good",), ("nobody",), ("thank", "you"), ("you", "soon"), ("see", "soon", "good"), ("very",)])
"""Grams that many hold, that nobody holds, and some without their parts."""
