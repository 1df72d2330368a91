"""From a plan and a corpus to a model."""

from typing import TYPE_CHECKING

from voxpop.corpus.engine import Engine, check_engine
from voxpop.errors import InputError
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.secret import Secret
from voxpop.sequences.exploring import explore_counts
from voxpop.sequences.model import SequenceModel

if TYPE_CHECKING:
    from voxpop.sequences.plan import SequencePlan


def release_sequences(plan: "SequencePlan", corpus: Engine, seed: int | None) -> SequenceModel:
    """Cut, explore and wrap; see `Sequences.release`."""
    check_engine(corpus)
    if corpus.kind == "items":
        raise InputError(
            "sequences need an order, and this corpus was read with items=, which have none. "
            "Read the column with sequence= (lists) or text= (words)."
        )
    secret = Secret.of(seed)
    mechanism = plan.mechanism
    counting = corpus.counting(plan.alphabet, mechanism.max_length, mechanism.combine, secret)
    tree = explore_counts(plan.limits, counting, secret)
    guarantee = Guarantee(plan.budget.epsilon, 0.0, private=secret.private)
    return SequenceModel(plan.alphabet, tree, mechanism.max_length, plan, guarantee)
