"""What finite arithmetic costs an extraction."""

from typing import TYPE_CHECKING

from voxpop.privacy.slack import walk_slack
from voxpop.rounds.adaptive.planning import pool_for, rounds_slack
from voxpop.rounds.adaptive.schedule import schedule_for

if TYPE_CHECKING:
    from voxpop.ngrams.ngrams import NGrams


def ngrams_slack(ngrams: "NGrams", epsilon: float) -> float:
    """Return the part of delta that all votes and measurements cost, and the rounds of length 1."""
    slack = walk_slack(epsilon, ngrams.passes)
    if ngrams.words == "adaptive":
        limit = ngrams.limits[0]
        slack += rounds_slack(epsilon, len(schedule_for(limit).shares), limit, pool_for(limit))
    return slack
