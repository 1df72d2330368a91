"""Three ways to weigh users, in memory, within a memory limit, and in Spark tasks that run in this process."""

from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from support.corpora import corpus_of
from voxpop.engine.contract import ALL_LENGTHS
from voxpop.engine.local.weigh import in_weighing_order, weighing_order
from voxpop.engine.spark import tasks
from voxpop.engine.spark.frames import LOW_BITS, laid_together, packed, pieces, word_arrays
from voxpop.privacy.weightings.builtin import PolicyGaussian
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting
from voxpop.reading.limited import memory
from voxpop.reading.limited.memory import MemoryLimit

BITS = 40


class FewBits:
    """Draws with hashes that agree in all except a few bits, which real hashes do once in many millions of users."""

    def __init__(self, hashes):
        self.hashes = hashes

    def draws(self, purpose, first, second):
        assert purpose.startswith("order/")
        chosen = np.array(self.hashes, np.uint64)[first.astype(np.int64)]
        return np.stack([chosen, chosen], axis=1)


def tiny(room):
    """Return a memory limit lower than any limit that a caller can request."""
    return MemoryLimit(room + memory.FIXED_MEMORY, room, Path("/tmp"))


def users_of(keys, sizes):
    """Return a corpus in which the user at position p has only word p, repeated as often as the user's size."""
    words = [f"w{place:03}" for place in range(len(keys))]
    return corpus_of([[[word] * size] for word, size in zip(words, sizes, strict=True)], keys)


def in_memory(corpus, secret):
    return weighing_order(corpus.user_key, secret, ALL_LENGTHS).tolist()


def within_limit(corpus, secret):
    """Return the order of users, sorted on disk with memory for few records."""
    users = corpus.tokens, corpus.user_start, corpus.user_key
    return places_of(*in_weighing_order(*users, tiny(1 << 12), secret, ALL_LENGTHS), corpus)


def on_spark(corpus, secret):
    """Return the order of users in the Spark task."""
    state = pieces(tasks._arrays_of(corpus))
    rows = [laid_together([batch])[0] for batch in tasks.keep_words(state, order=secret, public=sent(corpus))]
    kept = dict(chain.from_iterable(row.items() for row in rows))
    return places_of(kept["ids"], kept["user_start"], kept["user_key"], corpus)


def sent(corpus):
    return packed(word_arrays(corpus.vocabulary))


def places_of(tokens, user_start, user_key, corpus):
    """Return the original positions of the ordered users, after checking that each user is complete and separate."""
    order = tokens[user_start[:-1]].tolist()
    assert user_key.tolist() == corpus.user_key[order].tolist()
    assert [np.asarray(part).tolist() for part in np.split(tokens, user_start[1:-1])] == [
        corpus.tokens[corpus.user_start[place] : corpus.user_start[place + 1]].tolist() for place in order
    ]
    return order


def l2_shares(limit, cutoff):
    return CalibratedRule(PolicyGaussian(), RuleSetting(limit, 2, BITS, round(cutoff * 2**BITS)))


def weights_of(histogram):
    return dict(zip(histogram._words.to_pylist(), histogram._weights.tolist(), strict=True))


def distance(one, other):
    """Return the l2 distance between two histograms, in units of weight."""
    return sum(((one.get(word, 0) - other.get(word, 0)) / 2**BITS) ** 2 for word in {*one, *other}) ** 0.5


def weigh_in_memory(corpus, shares, secret, pass_name):
    return weights_of(corpus.weigh(shares, shares.setting.limit, secret, pass_name))


def weigh_within_limit(corpus, shares, secret, pass_name, room=1 << 16):
    return weights_of(corpus.within(tiny(room)).weigh(shares, shares.setting.limit, secret, pass_name))


def weigh_on_spark(corpus, shares, secret, pass_name):
    weighing = tasks.Weighing(shares, shares.setting.limit, secret, pass_name)
    batches = list(tasks.weigh_items(pieces(tasks._arrays_of(corpus)), weighing=weighing, order=pass_name))
    if not batches:
        return {}
    table = pa.Table.from_batches(batches).to_pydict()
    sums = (np.array(table["high"], np.int64) << LOW_BITS) + np.array(table["low"], np.int64)
    return dict(zip((name.decode() for name in table["name"]), sums.tolist(), strict=True))
