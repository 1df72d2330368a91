"""The privacy boundary of set union: the only code that turns private weights into public sets.

`rounds/adaptive.py` is the boundary of adaptive rounds.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from voxpop.engine.contract import Engine, check_engine
from voxpop.engine.data import Corpus
from voxpop.errors import InputError
from voxpop.mechanisms.rounds.adaptive import released_in_rounds
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.planned import with_record
from voxpop.privacy.secret import Secret
from voxpop.release.release import Release

if TYPE_CHECKING:
    from voxpop.mechanisms.set_union.plan import AdaptiveNumbers, ClassicPlan, SeveralPlan
    from voxpop.privacy.gate.rounds import AdaptiveGate


def release_classic(plan: "ClassicPlan", data: Corpus, seed: int | None) -> Release:
    """Weigh, decide and name the items; see `SetUnion.release`."""
    corpus = check_engine(data)
    gate, guarantee = plan.begin(seed)
    words = gate.released(corpus) if plan.round.noise == "optimal" else gate.released(corpus, plan.round.shares)
    return Release.from_items(words, with_record(plan, gate), guarantee, corpus.reading, corpus.keys)


def release_adaptive(plan: "AdaptiveNumbers[Any, Any]", data: Corpus, seed: int | None) -> Release:
    """Release items round after round; see `SetUnion.release`."""
    gate, guarantee = plan.begin(seed)
    return _released(plan, check_engine(data), gate, guarantee)


def _released(plan: "AdaptiveNumbers[Any, Any]", corpus: Engine, gate: "AdaptiveGate", guarantee: Guarantee) -> Release:
    words, ran = released_in_rounds(plan.planned, gate, corpus)
    done = with_record(plan, gate, **({} if ran is plan.planned else {"ran": ran}))
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
    engines = {name: check_engine(each) for name, each in corpora.items()}
    gate, guarantee = plan.begin(seed)
    # No two data sets share a draw: only so do their noises add up as squares of mu (docs/privacy/adaptive.md, "Several
    # data sets").
    secrets = {name: Secret.of(None if seed is None else seed + place) for place, name in enumerate(plan.data_sets)}
    return {name: _released(plan, each, gate.of(name, secrets[name]), guarantee) for name, each in engines.items()}
