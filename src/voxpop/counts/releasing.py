"""The double line: the only place where counts of holders become public."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from voxpop.counts.holders import weights_of_holders
from voxpop.counts.shares import UNIT
from voxpop.privacy.measured import noisy_cells
from voxpop.privacy.secret import Secret
from voxpop.release.tally import Tally

if TYPE_CHECKING:
    from voxpop.corpus import Corpus
    from voxpop.counts.plan import CountsPlan


def release_counts(plan: "CountsPlan", corpus: "Corpus", seed: int | None) -> Tally:
    """Weigh every released gram, add noise to every one, and round to whole users; see `Counts.release`."""
    secret = Secret.fresh() if seed is None else Secret.from_seed(seed)
    users = [np.empty(0, np.int64)]
    if plan.limits:
        for length, weights in enumerate(weights_of_holders(corpus, plan.grams, plan.limits, secret), start=1):
            # Every gram of the list gets a draw of its own, whether anybody holds it or not.
            draws = secret.draws(f"noise/count {length}", np.arange(weights.size, dtype=np.uint64), 0)
            users.append(noisy_cells(weights, plan.sigma, UNIT, UNIT, draws))
    guarantee = replace(plan.guarantee, private=secret.private)
    return Tally.of(plan.grams, np.concatenate(users), plan.error, plan, guarantee)
