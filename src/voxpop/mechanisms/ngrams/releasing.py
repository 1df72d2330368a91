"""The privacy boundary of n-grams: the loop that runs passes, and the table of the released grams.

Private weights stay in the engine and its `Runner`. The loop receives noisy numbers only, and everything after that is
a function of these numbers.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.engine.contract import check_engine, check_ordered
from voxpop.engine.data import Corpus
from voxpop.kernels.arrays import Int32s
from voxpop.mechanisms.ngrams.passes import Runner
from voxpop.mechanisms.ngrams.schedule import State
from voxpop.privacy.planned import with_record
from voxpop.privacy.secret import Secret
from voxpop.reading.arrow import array_of
from voxpop.reading.progress import track
from voxpop.release.cutting import table_of_tokens
from voxpop.release.release import Release

if TYPE_CHECKING:
    from voxpop.mechanisms.ngrams.plan import NGramsPlan


def release_ngrams(plan: "NGramsPlan", data: Corpus, seed: int | None) -> Release:
    """Run all passes and return the table of the released grams."""
    corpus = check_engine(data)
    check_ordered(corpus)
    secret = Secret.of(seed)
    guarantee = plan.guaranteed(private=secret.private)
    state = run_passes(State(plan), Runner(corpus, plan.budget, secret))
    done = with_record(plan, ran=state.ran, second_chance=state.second_chance)
    tokens = [grams.tokens for grams in state.grams]
    table = table_of_tokens(state.words, tokens if plan.steps.closed else downward_closed(tokens))
    return Release(table, done, guarantee, corpus.reading)


def run_passes(state: State, runner: Runner) -> State:
    """Run passes until the schedule ends, and return the last state."""

    def lengths() -> Iterator[int]:
        nonlocal state
        schedule, after, _ = state.plan.steps
        while (step := schedule(state)) is not None:
            state = after(state, step, runner.execute(step))
            if step.kind in ("words", "vote"):
                yield step.length

    for _ in track(lengths(), "releasing", lambda _: 1, None, "lengths", exact=True):
        pass
    return state


def downward_closed(lengths: Sequence[Int32s]) -> list[Int32s]:
    """Add the parts of grams that are missing, as suffixes may be under single-side pruning: a part is no new fact.

    Args:
        lengths: int32 (grams, length) for each length from 1 on; all prefixes are there.

    Returns:
        The same with all parts, in order of their tokens.
    """
    closed = list(lengths)
    for index in range(len(closed) - 1, 0, -1):
        longer, shorter = closed[index], closed[index - 1]
        if len(longer) and longer.shape[1] > 1:
            # From long to short: the parts of grams added at one length are added at the next.
            every = np.unique(np.concatenate([shorter, longer[:, 1:], longer[:, :-1]]), axis=0)
            closed[index - 1] = shorter if len(every) == len(shorter) else every.astype(np.int32)
    return closed


def table_of_rows(vocabulary: pa.LargeStringArray, rows: Sequence[Int32s]) -> pa.Table:
    """Return the table of distinct grams given by tokens of a vocabulary, in any order, one length each."""
    # Only tokens that occur get a rank, in the order of the vocabulary.
    used = np.unique(np.concatenate([np.empty(0, np.int32), *(each.ravel() for each in rows)]))
    ranked = [np.unique(np.searchsorted(used, each).astype(np.int32), axis=0) for each in rows]
    return table_of_tokens(vocabulary.take(array_of(used)), ranked)
