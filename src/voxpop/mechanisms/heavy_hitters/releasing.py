"""The privacy boundary of heavy hitters. Only this code turns votes into published words."""

from typing import TYPE_CHECKING

from voxpop.engine.contract import check_engine
from voxpop.engine.data import Corpus
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.mechanisms.heavy_hitters.protocol import Electorate, gram_of, grown_trie, spell
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.planned import with_record
from voxpop.reading.keys import NO_KEYS, Keys
from voxpop.release.release import Release
from voxpop.release.table import table_of_lists

if TYPE_CHECKING:
    from voxpop.mechanisms.heavy_hitters.plan import HittersPlan


def release_hitters(plan: "HittersPlan", data: Corpus, seed: int | None) -> Release:
    """Run every round, and return the words that grew to their end mark; see `HeavyHitters.release`."""
    corpus = check_engine(data)
    gate, guarantee = plan.begin(seed)
    held: LocalCorpus = corpus.gathered()
    wide = 8 * plan.rules.longest if plan.rules.alphabet == "tokens" else 0
    held.require("the votes of all users", per_token=8 + wide, per_user=96, per_word=48)
    spelling = spell(held, plan.rules, plan.exclude)
    trie = grown_trie(spelling, Electorate.of(spelling, held.user_key, plan.rules), plan.rules, gate)
    grams = [gram_of(word, plan.rules.alphabet) for word in trie.words]
    return release_of_trie(
        grams, with_record(plan, gate), guarantee, token_source=corpus.token_source, keys=corpus.keys
    )


def release_of_trie(
    grams: list[list[str]], plan: "HittersPlan", guarantee: Guarantee, *, token_source: str = "", keys: Keys = NO_KEYS
) -> Release:
    """Return the release of grams in canonical order, sorted by length and then by the bytes of their tokens.

    Args:
        grams: The words that were found, as lists of tokens.
        plan: The plan of the release. In a federation, it includes the aggregation of the nodes' sums.
        guarantee: The guarantee of this plan, which depends on whether the draws were secret.
        token_source: The source of the words, if known.
        keys: The columns that contained the words, if there are any. Documents with several tokens have no such
            columns.
    """
    distinct = {tuple(gram) for gram in grams}
    ordered = sorted(distinct, key=lambda gram: (len(gram), [token.encode() for token in gram]))
    single = None if plan.rules.alphabet == "tokens" else keys
    return Release(table_of_lists(ordered), plan, guarantee, token_source, single)
