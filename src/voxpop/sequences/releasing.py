"""From a plan and a corpus to a model."""

from typing import TYPE_CHECKING

from voxpop.corpus.engine import Engine, check_engine
from voxpop.errors import InputError
from voxpop.privacy.secret import Secret
from voxpop.sequences.exploring import explore_counts
from voxpop.sequences.model import SequenceModel
from voxpop.sequences.splitting import split_contexts

if TYPE_CHECKING:
    from voxpop.sequences.plan import SequencePlan


def release_sequences(plan: "SequencePlan", corpus: Engine, seed: int | None) -> SequenceModel:
    """Cut, explore and wrap; see `Sequences.release`."""
    check_order(corpus)
    secret = Secret.of(seed)
    guarantee = plan.guaranteed(private=secret.private)
    mechanism = plan.mechanism
    counting = corpus.tree_walk(plan.alphabet, mechanism.max_length, mechanism.combine, secret)
    grow = split_contexts if plan.contexts else explore_counts
    tree = grow(plan.limits, counting, secret)
    return SequenceModel(plan.alphabet, tree, mechanism.max_length, plan, guarantee)


def check_order(corpus: Engine) -> None:
    """Refuse what is no engine, and a corpus of items."""
    check_engine(corpus)
    if corpus.kind == "items":
        raise InputError(
            "sequences need an order, and this corpus was read with items=, which have none. "
            "Read the column with sequence= (lists) or text= (words)."
        )
