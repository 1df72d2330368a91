"""The double line: the only place where votes become a public set."""

from typing import TYPE_CHECKING

from voxpop.corpus.engine import Engine, check_engine
from voxpop.hitters.alphabet import grams_of, spell
from voxpop.hitters.electorate import Electorate
from voxpop.hitters.simulation import simulate
from voxpop.keys import WORDS, Keys
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.secret import Secret
from voxpop.release import Release
from voxpop.release.grams import table_of_lists

if TYPE_CHECKING:
    from voxpop.hitters.plan import HittersPlan


def release_hitters(plan: "HittersPlan", corpus: Engine, seed: int | None) -> Release:
    """Run every round, and name the words that grew up to their end; see `HeavyHitters.release`."""
    check_engine(corpus)
    secret = Secret.of(seed)
    guarantee = plan.guaranteed(private=secret.private)
    held = corpus.gathered()
    wide = 8 * plan.rules.longest if plan.mechanism.alphabet == "tokens" else 0
    held.require("the votes of all users", per_token=8 + wide, per_user=96, per_word=48)
    spelling = spell(held, plan.mechanism.alphabet, plan.rules)
    electorate = Electorate.of(spelling, held.user_key, plan.rules)
    found = simulate(spelling, electorate, plan.rules, secret)
    grams = grams_of(found, spelling, held.vocabulary)
    return release_of(grams, plan, guarantee, reading=corpus.reading, keys=corpus.keys)


def release_of(
    grams: list[list[str]], plan: "HittersPlan", guarantee: Guarantee, *, reading: str = "", keys: Keys = WORDS
) -> Release:
    """Return the release of grams in canonical order.

    Args:
        grams: what was found: lists of tokens.
        plan: the plan that ran; of a federation it notes how nodes' sums were added up.
        guarantee: of this plan, once it is known whether the secret was one that nobody knows.
        reading: how the words were made, where that is known.
        keys: the columns that the words came from, if they did; documents of several tokens have none.
    """
    single = None if plan.mechanism.alphabet == "tokens" else keys
    return Release(table_of_lists(grams), plan, guarantee, reading, single)
