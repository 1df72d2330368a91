"""From a plan and a corpus to a model."""

from typing import TYPE_CHECKING

from voxpop.errors import InputError
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.secret import Secret
from voxpop.sequences.cutting import one_sequence_each
from voxpop.sequences.exploring import explore
from voxpop.sequences.model import SequenceModel

if TYPE_CHECKING:
    from voxpop.corpus import Corpus
    from voxpop.sequences.plan import SequencePlan


def release_sequences(plan: "SequencePlan", corpus: "Corpus", seed: int | None) -> SequenceModel:
    """Cut, explore and wrap; see `Sequences.release`."""
    if corpus.kind == "items":
        raise InputError(
            "sequences need an order, and this corpus was read with items=, which have none. "
            "Read the column with sequence= (lists) or text= (words)."
        )
    secret = Secret.fresh() if seed is None else Secret.from_seed(seed)
    mechanism = plan.mechanism
    kept = 12 * (mechanism.max_length + 1)
    corpus.require("the sequences of all users", per_token=4, per_user=64 + kept, per_word=64)
    sequences = one_sequence_each(corpus, plan.alphabet, mechanism.max_length, mechanism.combine, secret)
    tree = explore(plan.limits, sequences, secret)
    guarantee = Guarantee(plan.budget.epsilon, 0.0, private=secret.private)
    return SequenceModel(plan.alphabet, tree, mechanism.max_length, plan, guarantee)
