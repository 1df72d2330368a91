"""PRIVATE measures of how similar samples are to the data.

These measures are for people who may see the data, and are never part of a release.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from voxpop.engine.contract import check_engine, check_ordered
from voxpop.engine.local.corpus import LocalCorpus, one_sequence_each
from voxpop.kernels.arrays import Floats, Int64s
from voxpop.mechanisms.sequences.drawing import Sessions
from voxpop.mechanisms.sequences.queries import check_released, followers, last_symbols, runs_of
from voxpop.privacy.secret import Secret
from voxpop.release.questions import Evaluation

if TYPE_CHECKING:
    from voxpop.mechanisms.sequences.model import SequenceModel

LONGEST, TOP, SANITY = 4, 100, 0.001
"""The constants of the comparison. It uses runs of up to `LONGEST` symbols and the `TOP` most frequent runs. Errors are
relative to at least the share `SANITY` of all sequences.
"""


def evaluate_model(model: "SequenceModel", corpus: Any, _: Sequence[int] = ()) -> Evaluation:
    """Compare sequences that a model draws with one sequence per user; see `voxpop.evaluate`.

    Args:
        model: A model of the same data.
        corpus: The data, on this machine. Only the first `model.max_length` symbols of each user's sequence are used.

    Returns:
        The PRIVATE measures.

    Raises:
        InputError: The data have no order or are on a cluster, or nothing was released.
    """
    engine = check_engine(corpus)
    check_ordered(engine)
    check_released(model.tree)
    real = _sequences(engine.gathered(), model)
    drawn = model._queries.sessions
    rows = [
        ("relative error of the number of users", abs(model.n_users / max(real.size, 1) - 1)),
        ("distance of lengths", _distance(model, real, drawn, _lengths)),
        ("distance of first symbols", _distance(model, real, drawn, _first_symbols)),
        ("distance of last symbols", _distance(model, real, drawn, last_symbols)),
        ("distance of next symbols", _next(model, real, drawn)),
    ]
    tables = [_shares(model, real, drawn, length) for length in range(1, LONGEST + 1)]
    rows += [(f"relative error of runs of {length}", _error(each)) for length, each in enumerate(tables, 1)]
    rows.append((f"of the {TOP} most frequent runs, found", _share_found(tables)))
    return Evaluation({name: float(value) for name, value in rows})


def _sequences(corpus: LocalCorpus, model: "SequenceModel") -> Sessions:
    """Return one sequence per user, truncated as in the mechanism. The result is private."""
    other, secret = model.plan.to_dict().get("other"), Secret.from_seed(0)
    marked = one_sequence_each(corpus, model.alphabet, model.max_length, secret, other)
    ends = np.flatnonzero(marked == len(model.alphabet))
    starts = np.concatenate([[0], ends - np.arange(ends.size)]).astype(np.int64)
    return Sessions(marked[marked < len(model.alphabet)], starts)


def _lengths(sampler: Any, sessions: Sessions) -> Floats:
    return np.bincount(sessions.sizes, minlength=sampler.tree.max_length + 1) / sessions.size


def _first_symbols(sampler: Any, sessions: Sessions) -> Floats:
    return np.bincount(sessions.symbols[sessions.starts[:-1]], minlength=sampler.tree.width - 1) / sessions.size


def _distance(model: "SequenceModel", real: Sessions, drawn: Sessions, shares: Any) -> float:
    """Return the total variation distance between two distributions."""
    if not real.size:
        return 1.0
    one, other = (shares(model._sampler, each) for each in (real, drawn))
    return float(np.abs(one - other).sum() / 2)


def _next(model: "SequenceModel", real: Sessions, drawn: Sessions) -> float:
    """Return the distance between the distributions of the next symbol, averaged over the symbols of the data."""
    size = len(model.alphabet)
    if not real.size or size * (size + 1) > 1 << 24:
        return float("nan")
    number = np.arange(size + 1)
    one, other = (followers(model._sampler, each, number=number, rows=size) for each in (real, drawn))
    gaps = np.abs(one - other).reshape(size, size + 1).sum(axis=1) / 2
    return float(np.average(gaps, weights=np.bincount(real.symbols, minlength=size)))


def _shares(model: "SequenceModel", real: Sessions, drawn: Sessions, length: int) -> tuple[Int64s, Floats, Floats]:
    """Return all runs of this length, and the shares of real and of drawn sequences that contain each run."""
    size, counted = len(model.alphabet), []
    if (size + 1) ** length > 2**62:
        return np.empty(0, np.int64), np.empty(0), np.empty(0)
    for each in (real, drawn):
        runs, counts = np.unique(runs_of(each, length, size)["run"].to_numpy(), return_counts=True)
        counted.append((runs, counts / max(each.size, 1)))
    every = np.union1d(counted[0][0], counted[1][0])
    shares = []
    for runs, found in counted:
        share = np.zeros(every.size)
        share[np.searchsorted(every, runs)] = found
        shares.append(share)
    return every, shares[0], shares[1]


def _error(table: tuple[Int64s, Floats, Floats]) -> float:
    """Return the mean relative error of runs, weighted by the share of sequences in the data that contain them."""
    _, real, drawn = table
    if not real.sum():
        return float("nan")
    return float(np.average(np.abs(real - drawn) / np.maximum(real, SANITY), weights=real))


def _share_found(tables: list[tuple[Int64s, Floats, Floats]]) -> float:
    """Return the share of the data's most frequent runs (of all lengths) that are also among those of the model."""
    real, drawn = (np.concatenate([table[place] for table in tables]) for place in (1, 2))
    most = min(TOP, int((real > 0).sum()))
    if not most:
        return float("nan")
    top, found = (set(np.argsort(-each, kind="stable")[:most].tolist()) for each in (real, drawn))
    return len(top & found) / most
