"""Functions for the delta of adaptive rounds without the cost of finite arithmetic, for plans with changed numbers."""

from voxpop.privacy.certificate import exact_delta
from voxpop.privacy.passes import AdaptiveProof, Choice, Claim, Later, Slack


def total_delta(planned, budget, data_sets=1, rest=0.0):
    """Return the delta of rounds or a menu in several data sets, followed by Gaussian releases with mu^2 `rest`."""
    stated = planned.stated()
    choice, rounds = (stated, None) if isinstance(stated, Choice) else (None, stated)
    later = Later(rest, "each user", 0) if rest else None
    names = tuple(map(str, range(data_sets)))
    return exact_delta(AdaptiveProof(names, choice, rounds, later, Slack(0)), Claim(budget.epsilon, budget.delta))


def pair(rounds):
    """Return the probability that rounds release a novel item, and the mu of the rounds."""
    from voxpop.privacy.certificate import pair_of

    return pair_of(AdaptiveProof((), None, rounds.stated(), None, Slack(0)))


def first_pair(only):
    """Return the probability that a round releases a novel item, and the sensitivity divided by sigma."""
    from voxpop.privacy.gaussian import release_probability

    shares = only.shares
    novel = release_probability(shares.novelty, "gaussian", only.scale, only.threshold, shares.sensitivity)
    return novel, shares.sensitivity / only.scale


def round_delta(only, epsilon, later=0.0):
    """Return the delta of a round with its executed numbers, followed by Gaussian releases with mu^2 `later`."""
    from voxpop.privacy.certificate import check
    from voxpop.privacy.passes import Certificate, ThresholdProof

    proof = ThresholdProof(only.stated(), Later(later, "everybody", 0) if later else None)
    return check(Certificate(Claim(epsilon, 0.5), proof))
