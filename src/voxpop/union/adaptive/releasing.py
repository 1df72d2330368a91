"""From adaptive rounds to a release, of one data set or of several; the double line is `rounds/adaptive/running.py`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from voxpop.corpus.engine import Engine, check_engine
from voxpop.errors import InputError
from voxpop.privacy.secret import Secret
from voxpop.release import Release
from voxpop.rounds.adaptive.running import released_in_rounds

if TYPE_CHECKING:
    from voxpop.union.adaptive.plan import AdaptivePlan


def release_adaptive(plan: "AdaptivePlan", corpus: Engine, seed: int | None) -> Release:
    """Release what the rounds are sure of, one after the other; see `SetUnion.release`."""
    check_engine(corpus)
    if plan.data_sets:
        raise InputError(
            f"the plan is for data sets named {', '.join(plan.data_sets)}: give a dictionary with a corpus for each."
        )
    return _released(plan, corpus, seed)


def _released(plan: "AdaptivePlan", corpus: Engine, seed: int | None) -> Release:
    secret = Secret.of(seed)
    guarantee = plan.guaranteed(private=secret.private)
    words = released_in_rounds(plan, plan.budget, corpus, secret)
    return Release.from_items(words, plan, guarantee, corpus.reading, corpus.keys)


def release_several(plan: "AdaptivePlan", corpora: Mapping[str, Engine], seed: int | None) -> dict[str, Release]:
    """Release from several data sets, each with noise of its own; see `SetUnion.release`."""
    if set(corpora) != set(plan.data_sets):
        raise InputError(
            f"the plan is for data sets named {', '.join(plan.data_sets) or 'nothing: plan with `data_sets`'}; got "
            f"{', '.join(map(str, corpora)) or 'none'}."
        )
    for each in corpora.values():
        check_engine(each)
    # No two data sets share a draw: only so do their noises add up as squares of mu (docs/privacy/adaptive.md, "Several
    # data sets").
    seeds = {name: None if seed is None else seed + number for number, name in enumerate(plan.data_sets)}
    return {name: _released(plan, corpora[name], seeds[name]) for name in corpora}
