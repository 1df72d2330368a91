"""The privacy boundary of set union: the only code that turns private weights into public sets.

`rounds/adaptive.py` is the boundary of adaptive rounds.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from voxpop.engine.contract import check_engine
from voxpop.engine.data import Corpus
from voxpop.errors import InputError
from voxpop.mechanisms.rounds.adaptive import released_in_rounds, run_round
from voxpop.privacy.planned import with_record
from voxpop.release.release import Release

if TYPE_CHECKING:
    from voxpop.mechanisms.set_union.plan import AdaptiveNumbers, ClassicPlan, SeveralPlan


def release_classic(plan: "ClassicPlan", data: Corpus, seed: int | None) -> Release:
    """Weigh, decide and name the items; see `SetUnion.release`."""
    corpus = check_engine(data)
    secret, guarantee = plan.begin(seed)
    words = run_round(plan.round, plan.budget, corpus, secret, "round 0/length 1")
    return Release.from_items(words, plan, guarantee, corpus.reading, corpus.keys)


def release_adaptive(plan: "AdaptiveNumbers[Any, Any]", data: Corpus, seed: int | None) -> Release:
    """Release items round after round; see `SetUnion.release`."""
    corpus = check_engine(data)
    secret, guarantee = plan.begin(seed)
    words, ran = released_in_rounds(plan.planned, plan.budget, corpus, secret)
    done = plan if ran is plan.planned else with_record(plan, ran=ran)
    return Release.from_items(words, done, guarantee, corpus.reading, corpus.keys)


def release_several(plan: "SeveralPlan", corpora: Mapping[str, Corpus], seed: int | None) -> dict[str, Release]:
    """Release from several data sets, each with independent noise; see `SetUnion.release_each`."""
    named = ", ".join(plan.data_sets)
    if not isinstance(corpora, Mapping):
        raise InputError(f"the plan is for data sets named {named}: give a dictionary with a corpus for each.")
    if set(corpora) != set(plan.data_sets):
        raise InputError(
            f"the plan is for data sets named {named}; got {', '.join(map(str, corpora)) or 'none'}. "
            "Give exactly the planned ones."
        )
    for each in corpora.values():
        check_engine(each)
    # No two data sets share a draw: only so do their noises add up as squares of mu (docs/privacy/adaptive.md, "Several
    # data sets").
    seeds = {name: None if seed is None else seed + number for number, name in enumerate(plan.data_sets)}
    return {name: release_adaptive(plan, corpora[name], seeds[name]) for name in corpora}
