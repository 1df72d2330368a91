"""The privacy boundary: the only code that turns votes into published words."""

from collections import deque
from typing import TYPE_CHECKING

from voxpop.engine.contract import check_engine
from voxpop.engine.data import Corpus
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.files.progress import track
from voxpop.mechanisms.heavy_hitters.protocol import Electorate, gram_of, grown_tries, spell
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.planned import with_record
from voxpop.reading.keys import NO_KEYS, Keys
from voxpop.release.release import Release
from voxpop.release.table import table_of_lists

if TYPE_CHECKING:
    from voxpop.mechanisms.heavy_hitters.plan import HittersPlan


def release_hitters(plan: "HittersPlan", data: Corpus, seed: int | None) -> Release:
    """Run every round, and name the words that grew up to their end; see `HeavyHitters.release`."""
    corpus = check_engine(data)
    gate, guarantee = plan.begin(seed)
    held: LocalCorpus = corpus.gathered()
    wide = 8 * plan.rules.longest if plan.rules.alphabet == "tokens" else 0
    held.require("the votes of all users", per_token=8 + wide, per_user=96, per_word=48)
    spelling = spell(held, plan.rules, plan.exclude)
    tries = grown_tries(spelling, Electorate.of(spelling, held.user_key, plan.rules), plan.rules, gate)
    trie = deque(track(tries, "releasing", lambda _: 1, None, "rounds", exact=True), maxlen=1).pop()
    grams = [gram_of(word, plan.rules.alphabet) for word in trie.words]
    return release_of_trie(
        grams, with_record(plan, gate), guarantee, token_source=corpus.token_source, keys=corpus.keys
    )


def release_of_trie(
    grams: list[list[str]], plan: "HittersPlan", guarantee: Guarantee, *, token_source: str = "", keys: Keys = NO_KEYS
) -> Release:
    """Return the release of grams, in canonical order: by length, then by the bytes of their tokens.

    Args:
        grams: the words found: lists of tokens.
        plan: the plan that ran; for a federation it states the aggregation of the nodes' sums.
        guarantee: of this plan, once it is known whether the draws were secret.
        token_source: the source of the words, if known.
        keys: the columns that the words came from, if they did; documents of several tokens have none.
    """
    distinct = {tuple(gram) for gram in grams}
    ordered = sorted(distinct, key=lambda gram: (len(gram), [token.encode() for token in gram]))
    single = None if plan.rules.alphabet == "tokens" else keys
    return Release(table_of_lists(ordered), plan, guarantee, token_source, single)
