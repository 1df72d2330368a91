"""Run the passes of a set union through its gate, and make releases from the results."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from voxpop.engine.contract import Engine, check_engine
from voxpop.engine.data import Corpus
from voxpop.errors import InputError
from voxpop.mechanisms.rounds.menu import on_list, released_in_rounds
from voxpop.mechanisms.rounds.plan import RoundPlan
from voxpop.privacy.gate.rounds import PublicParts
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.planned import one_pass, run_passes, with_record
from voxpop.privacy.secret import Secret
from voxpop.reading.arrow import text_buffers
from voxpop.release.release import Release

if TYPE_CHECKING:
    from voxpop.mechanisms.set_union.plan import UnionPlan


def release_items(plan: "UnionPlan[Any, Any]", data: Corpus, seed: int | None) -> Release:
    """Run the passes on one data set; see `Items.release`."""
    corpus = check_engine(data)
    return _released(plan, corpus, *plan.begin(seed))


def _released(plan: "UnionPlan[Any, Any]", corpus: Engine, gate: Any, guarantee: Guarantee) -> Release:
    first, passes, listed = plan.passes[0], plan.passes, None
    if not isinstance(first, RoundPlan):
        known = plan.known_items
        if known is not None:
            listed = PublicParts(known.parts(corpus.kind, corpus.token_source, corpus.keys), text_buffers)
        words, rounds = released_in_rounds(first, gate, corpus, listed)
        passes = (first,) if rounds is first else (first, rounds)
    else:
        given = (corpus,) if first.noise == "optimal" else (corpus, first.shares)
        words = run_passes(None, one_pass(lambda gate: gate.released(*given)), gate, "rounds")
    done = with_record(plan, gate, passes=passes)
    marks = None if listed is None else on_list(words, listed)
    return Release.from_items(words, done, guarantee, corpus.token_source, corpus.keys, marks)


def release_each(plan: "UnionPlan[Any, Any]", corpora: Mapping[str, Corpus], seed: int | None) -> dict[str, Release]:
    """Release items from several data sets, each with independent noise; see `Items.release_each`."""
    named = ", ".join(plan.data_sets)
    if not isinstance(corpora, Mapping):
        raise InputError(f"the plan is for data sets named {named}. Give a dictionary with a corpus for each.")
    if set(corpora) != set(plan.data_sets):
        raise InputError(
            f"the plan is for data sets named {named}; got {', '.join(map(str, corpora)) or 'none'}. "
            "Give exactly the planned data sets."
        )
    engines = {name: check_engine(each) for name, each in corpora.items()}
    gate, guarantee = plan.begin(seed)
    # No two data sets share a draw, because otherwise their costs would not add up as squares of mu
    # (docs/privacy/adaptive.md, "Several data sets").
    secrets = {name: Secret.of(None if seed is None else seed + place) for place, name in enumerate(plan.data_sets)}
    return {name: _released(plan, each, gate.of(name, secrets[name]), guarantee) for name, each in engines.items()}
