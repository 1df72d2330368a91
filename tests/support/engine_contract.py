"""Contract tests for all engines. Every engine runs each mechanism, and all engines return the same release."""

import random

import polars as pl

import voxpop as vp
from naive.engine import NaiveEngine
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.privacy.weightings.builtin import WEIGHTINGS
from voxpop.release.result import StoredPlan
from voxpop.release.table import table_of_lists

BUDGET = vp.Budget(4, 1e-6)
PURE = vp.Budget(4)
WORDS = ["thank", "you", "very", "much", "see", "soon", "good", "night", "naïve", "wordofmorethanfifteenbytes"]

UNIONS = {
    **{name: vp.papers.SetUnion(3, name, accounting="joint") for name in WEIGHTINGS},
    "adaptive": vp.Items(max_items_per_user=3),
    "adaptive, one of a pool": vp.Items(max_items_per_user=1),
    "adaptive, limit chosen": vp.Items(),
    "adaptive, with a list": vp.Items(max_items_per_user=3, known=[*WORDS[:6], "own7", "nobody"]),
    "adaptive, with a list, one of a pool": vp.Items(max_items_per_user=1, known=[*WORDS[2:], "own7", "nobody"]),
    "adaptive, limit chosen, with a list": vp.Items(known=[*WORDS, "nobody"]),
    "one item each": vp.papers.OptimalSelection(),
}
PHRASES = {
    "default": vp.NGrams(max_length=4, max_phrases_per_user=4),
    "limit chosen": vp.NGrams(max_length=4),
    "beside a list": vp.NGrams(max_length=4, max_phrases_per_user=4, known=[*WORDS[:6], "own7", "nobody"]),
    "limit chosen, beside a list": vp.NGrams(max_length=4, known=[*WORDS, "nobody"]),
    "DPNE": vp.papers.DPNE(max_length=4, max_phrases_per_user=4, max_spurious_share=0.3),
    "DPNE, policy-gaussian": vp.papers.DPNE(max_length=3, max_phrases_per_user=4, weighting="policy-gaussian"),
    "DPNE, single-side": vp.papers.DPNE(max_length=4, max_phrases_per_user=3, pruning="single"),
}
SEQUENCES = {
    "short contexts": vp.Sequences(max_length=6, max_gram=3, alphabet=WORDS[:5]),
    "other symbols": vp.Sequences(max_length=6, max_gram=3, alphabet=WORDS[:3], other="all others"),
    "long contexts": vp.Sequences(max_length=3, max_gram=4, alphabet=WORDS[2:5]),
    "decided length": vp.Sequences(max_gram=3, alphabet=WORDS[:5]),
}
HITTERS = {"characters": vp.HeavyHitters(max_length=9), "tokens": vp.HeavyHitters(max_length=4, alphabet="tokens")}


def crowd(users: int = 240) -> pl.DataFrame:
    """Return unordered rows of users with similar texts in several documents per user. Some documents are empty."""
    rng = random.Random(7)
    rows = []
    for _ in range(3):
        for user in rng.sample(range(users), users):
            start = rng.randrange(7)
            text = " ".join([*WORDS[start : start + 4], f"own{user}"] if user % 11 else [])
            rows.append((user * 1_000_003, text))
    # The documents of each user are sorted by content, as Spark sorts them. The users remain unordered.
    table = pl.DataFrame(rows, schema=["who", "what"], orient="row")
    return table.with_columns(pl.col("what").sort().over("who"))


def items_of(table: pl.DataFrame) -> pl.DataFrame:
    """Return the words of a table, one word per row."""
    return table.with_columns(pl.col("what").str.split(" ")).explode("what").filter(pl.col("what") != "")


def naive_of(corpus: LocalCorpus) -> NaiveEngine:
    """Return the contents of a corpus as dictionaries, for the reference implementation."""
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
    return NaiveEngine(users, corpus.kind, corpus.token_source, corpus.keys)


def shown(released) -> object:
    """Return the contents that must be equal in two releases."""
    if isinstance(released, vp.SequenceModel):
        tree = released.tree
        read = tree.before
        return tree.steps, [each.tolist() for each in (tree.parents, read, tree.counts)]
    return released.to_arrow(), released.plan.to_dict(), released.guarantee


def release_of(grams) -> vp.Release:
    """Return a release of grams that no mechanism produced."""
    ordered = sorted(sorted(map(list, grams)), key=len)
    return vp.Release(table_of_lists(ordered), StoredPlan({}), vp.Guarantee(1, 1e-8))


LISTED = release_of([("good",), ("nobody",), ("thank", "you"), ("you", "soon"), ("see", "soon", "good"), ("very",)])
"""Grams with many users, grams without users, and grams without their parts."""
