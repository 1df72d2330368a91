"""The text of a plan of n-grams and the content of its report, computed from the facts about each type of pass."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from voxpop.mechanisms.ngrams import constants as tuned
from voxpop.mechanisms.rounds.listed import known_grids
from voxpop.mechanisms.rounds.menu import about_limit, about_menu, choice_in
from voxpop.privacy.guarantee import at_most
from voxpop.privacy.planned import USUAL_ITEMS
from voxpop.privacy.weightings.builtin import share_of
from voxpop.release.report.numbers import (
    Chance,
    curve,
    percent,
    plain,
    rows_of_type,
    threshold_chance,
    users_for,
    whole,
)
from voxpop.release.report.page import Grid, Story

PHRASES_OF_EACH = 10
_DESCRIBED_PROBABILITIES = (0.5, 0.9)
_INDIVIDUAL_BUDGETS = (
    "Each user pays from its own budget, only at lengths at which it has a candidate. Sigma and shares of the budget "
    "are for the usual charge.\n"
    "After the votes, thresholds of likely phrases may be lower. A second-chance pass spends what each user has left."
)
Rows = Sequence[Mapping[str, Any]]


class _Facts(NamedTuple):
    """The facts that follow from the type of the passes that decide which words are released.

    Attributes:
        choices: The text about the settings of the mechanism, or an empty string.
        pruning: The rule that selects the candidates, or an empty string for the usual rule.
        alone: A function that returns the probabilities that a phrase of one user is released in the given votes.
        later: A function that returns the parts of the budget after length 1, given the parts that ran and their total.
        limit: The end of the sentence about spurious phrases.
        about: The sentences about the passes of longer lengths, one per line.
    """

    choices: str
    pruning: str
    alone: Callable[[Mapping[str, Any], Rows], list[float]]
    later: Callable[[list[dict[str, Any]], float], list[dict[str, Any]]]
    limit: str
    about: str


def _about_threshold(plan: Mapping[str, Any]) -> _Facts:
    """Return the facts about DPNE, which charges all users for every pass."""
    choices = f"DPNE as published, sigma of each length {plan['ratio']:g} times the sigma of the length before it"
    return _Facts(choices, f", {plan['pruning']}-side pruning", _alone_in_paper, _with_rest, "", "")


def _about_rounds(plan: Mapping[str, Any]) -> _Facts:
    values = plan.get("length_weights")
    choices = f"a phrase is worth {', '.join(f'{value:g}' for value in values)} by length" if values else ""
    limit = f"; over all lengths at most {100 * plan['max_spurious_share']:.3g} % of all. "
    limit += "The share at one length may be greater"
    about = "" if plan["max_length"] == 1 else _INDIVIDUAL_BUDGETS
    return _Facts(choices, "", _alone, _in_proportion, limit, about)


_FACTS = {"threshold": _about_threshold, "round": _about_rounds}
"""The facts by type of the passes that decide about words."""
_PARTS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "words": lambda row: {"length": 1, "part": "vote"},
    "measurement": lambda row: {"length": row["length"] + 1, "part": "forecast"},
    "screening": lambda row: {"length": row["length"], "part": "forecast"},
    "vote": lambda row: {"length": row["length"], "part": "vote"},
    "second chance": lambda row: {"length": None, "part": "vote"},
}
"""The part of the budget that a pass spends, by type of the pass. The second-chance pass is about several lengths."""


def _runs(plan: Mapping[str, Any], *types: str) -> Rows:
    """Return the completed passes of the given types, with the numbers that they used."""
    return [{**row, **row["ran"]} for row in rows_of_type(plan, *types) if row["ran"]]


def _facts(plan: Mapping[str, Any]) -> _Facts:
    return _FACTS[rows_of_type(plan, *_FACTS)[-1]["pass"]](plan)


def story(plan: Mapping[str, Any], sizes: Mapping[int, int]) -> Story:
    """Return the content of the report of a release of n-grams.

    Args:
        plan: The numbers of the plan.
        sizes: The number of released grams of each length.
    """
    limits, spurious, single = _limits(plan), sum(_spurious(plan).values()), single_user(plan, sizes)
    # If length 1 has several rounds, its probabilities of release do not follow from a single noise scale and
    # threshold.
    first = 2 if len(rows_of_type(plan, *_FACTS)) > 1 else 1
    chances = {run["length"]: _chance(plan, run) for run in _runs(plan, "words", "vote") if run["length"] >= first}
    # Use the planned numbers for length 1, and the thresholds of the release for longer lengths.
    (words,) = rows_of_type(plan, "words")
    users = {1: [words[f"users_{round(100 * wanted)}"] for wanted in _DESCRIBED_PROBABILITIES]}
    later = {length: chance for length, chance in chances.items() if length > 1}
    users |= {length: [users_for(chance, p) for p in _DESCRIBED_PROBABILITIES] for length, chance in later.items()}
    known = [needed[-1] for length, needed in users.items() if sizes.get(length) and needed[-1] is not None]
    each, longest = min(PHRASES_OF_EACH, *limits), max(sizes, default=1)
    curves = [
        {"name": f"length {length}", "points": curve(chance)}
        for length, chance in chances.items()
        if length <= longest and users_for(chance, _DESCRIBED_PROBABILITIES[-1])
    ]
    cards = [
        ("Written by nobody", f"at most {at_most(max(spurious, 0.01))}", "expected number of spurious phrases"),
        ("Written by one user", f"up to {single}", "probability of release at worst, once its parts are released"),
    ]
    needed = Grid(
        "Users that a phrase needed",
        ["tokens", "released", *(f"{100 * wanted:g} %" for wanted in _DESCRIBED_PROBABILITIES)],
        [[str(length), f"{sizes.get(length, 0):,}", *map(whole, needed)] for length, needed in users.items()],
        f"At the thresholds that ran, if each user has {each} phrases of that length, none of which has more users. "
        "A user with fewer phrases gives each of them more weight, and a user with more phrases gives each less.",
    )
    return Story(
        words="ngrams.html",
        noun=("phrase", "phrases"),
        title="released",
        kicker=f"Phrases of 1 to {plan['max_length']} tokens",
        proof="docs/privacy/ngrams.md",
        values={
            "max_length": plan["max_length"],
            "limits": limits,
            "max_words_per_user": plan["max_words_per_user"] if choice_in(plan) else None,
            "spurious_share": plan["max_spurious_share"],
            "spurious": spurious,
            "single": single,
            "longest": longest,
            "each": each,
        },
        needed=needed,
        about=(_span(known), "for 90 %, at the thresholds that ran") if known else ("–", "nothing was released"),
        curves=curves,
        curves_note=f"One line for each length, with the noise and threshold that ran. It shows the probability "
        f"once the phrase’s parts are released, if each user has {each} phrases of that length, none of which has "
        "more users.",
        cards=cards if single else [],
        costs=_costs(plan),
        grids=[*known_grids(plan), _ran(plan)],
    )


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _limits(plan: Mapping[str, Any]) -> list[int]:
    """Return the limit for each length. Only plans of DPNE can contain a list of limits."""
    limit = plan["max_phrases_per_user"]
    return [limit] * plan["max_length"] if isinstance(limit, int) else [int(each) for each in limit]


def _chance(plan: Mapping[str, Any], run: Mapping[str, Any], items: int = PHRASES_OF_EACH) -> Chance:
    limits = _limits(plan)
    share = share_of(plan["weighting"], "gaussian", limits[run["length"] - 1], min(items, *limits))
    if share is None:
        raise ValueError("a weighting of another version")
    cutoff = max(run["threshold"] + plan["alpha"] * run["sigma"], 1.0)
    numbers = {"noise": "gaussian", "scale": run["sigma"], "threshold": run["threshold"]}
    return threshold_chance(numbers | {"cutoff": cutoff if plan["weighting"] == "policy-gaussian" else None}, share)


def single_user(plan: Mapping[str, Any], sizes: Mapping[int, int] | None = None) -> str:
    """Return the largest probability of releasing a phrase that only one user has, over all lengths from 2 on.

    The result is an empty string if no such length ran. In the worst case, the parts of the phrase are released, the
    user spends the whole budget of later lengths on it, and the phrase is in the most likely band, which has the lowest
    threshold. A phrase that is not released at its length enters the second-chance pass only if it has reached the
    lowest cutpoint.

    Args:
        plan: The numbers of a plan, before or after the release.
        sizes: The number of released phrases of each length. Lengths without released phrases are skipped.
    """
    votes = _runs(plan, "vote") if _runs(plan, "words") else rows_of_type(plan, "vote")
    found = _facts(plan).alone(plan, [vote for vote in votes if sizes is None or sizes.get(vote["length"])])
    return f"{at_most(100 * max(found))} %" if found else ""


def _alone_in_paper(plan: Mapping[str, Any], votes: Rows) -> list[float]:
    return [_chance(plan, {"threshold": vote["lowest_threshold"], **vote}, 1)(1) for vote in votes]


def _alone(plan: Mapping[str, Any], votes: Rows) -> list[float]:
    usual = [row["lowest_threshold"] / row["sigma"] for row in rows_of_type(plan, "vote")]
    lowest = min([-float(ndtri(tuned.LIKELIEST)), *usual])
    # The array `first` contains the possible weights of the phrase at its length, in sigma. The second-chance pass gets
    # the rest of the budget.
    first, later = np.linspace(0, float(plan["mu_squared_later"]) ** 0.5, 257), 0.0
    for second in _runs(plan, "second chance"):
        if (again := second["lowest_threshold"]) is not None:
            later = ndtr(np.sqrt(first[-1] ** 2 - first**2) - again / second["sigma"])
    # If a band released no grams, it has no threshold.
    bands = [(vote["sigma"], band["threshold"]) for vote in votes if vote["ran"] for band in vote["ran"]["bands"]]
    cuts = [inf if cut is None else cut / sigma for sigma, cut in bands] if _runs(plan, "words") else [lowest]
    return [float(np.max(ndtr(first - cut) * (1 - later) + ndtr(first - min(cut, lowest)) * later)) for cut in cuts]


def _spurious(plan: Mapping[str, Any]) -> dict[int, float]:
    """Return the largest expected number of released phrases without users, by length."""
    found = {run["length"]: run["spurious"] or 0.0 for run in _runs(plan, "words", "vote")}
    for second in _runs(plan, "second chance"):
        for length, more in enumerate(second["spurious"], start=2):
            found[length] += more
    return found


def _costs(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the part of the budget that each completed pass spends.

    The parts are 1 / sigma^2, which adds up over passes, or the charges if each user pays for their own passes.
    """
    parts = [{**_PARTS[run["pass"]](run), "square": run["sigma"] ** -2} for run in _runs(plan, *_PARTS)]
    # The first part covers all adaptive rounds of length 1, or the only vote if length 1 has no rounds.
    parts[0]["square"] = sum(row["scale"] ** -2 for row in rows_of_type(plan, *_FACTS))
    parts[1:] = _facts(plan).later(parts[1:], float(plan["mu_squared_later"]))
    total = sum(part["square"] for part in parts)
    return [{"length": part["length"], "part": part["part"], "share": part["square"] / total} for part in parts]


def _with_rest(parts: list[dict[str, Any]], later: float) -> list[dict[str, Any]]:
    rest = later - sum(part["square"] for part in parts)
    return [*parts, {"length": None, "part": "not used", "square": rest}] if rest > 1e-3 * later else parts


def _in_proportion(parts: list[dict[str, Any]], later: float) -> list[dict[str, Any]]:
    asked = sum(part["square"] for part in parts)
    return [{**part, "square": part["square"] * later / asked} for part in parts] or _with_rest(parts, later)


def _ran(plan: Mapping[str, Any]) -> Grid:
    """Return the table of the passes that ran at each length."""
    shares: dict[Any, float] = {}
    for cost in _costs(plan):
        shares[cost["length"]] = shares.get(cost["length"], 0.0) + cost["share"]
    spurious, rows, kinds = _spurious(plan), [], ("measurement", "screening")
    sigmas = [{_PARTS[kind](run)["length"]: run["sigma"] for run in _runs(plan, kind)} for kind in kinds]
    for run in _runs(plan, "words", "vote"):
        looks = (plain(each.get(run["length"])) for each in sigmas)
        numbers = [plain(run[name]) for name in ("length", "candidates", "sigma", "threshold")]
        found = "–" if run["spurious"] is None else plain(spurious[run["length"]], 3)
        rows.append([*numbers, *looks, found, percent(shares[run["length"]])])
    names = ["candidates", "sigma", "threshold", "sigma of the forecast", "of the screening vote", "spurious"]
    text = (
        "Noise and threshold are in units of weight. Each user divides one unit at each length.\n"
        "Candidates are phrases whose parts were released. If likely phrases had lower thresholds than others, the "
        "table shows the mean.\n"
        "Spurious: an estimate of the number of phrases that nobody wrote. The limit on their share applies to all "
        "lengths together, not to each length.\n"
    )
    for second in _runs(plan, "second chance"):
        text += (
            f"Of {second['candidates']:,} deferred candidates the second-chance pass released "
            f"{sum(second['released']):,}, with sigma {second['sigma']:.5g}.\n"
        )
    return Grid("What ran, length by length", ["tokens", *names, "of the budget"], rows, text + _facts(plan).about)


def describe(plan: Mapping[str, Any], guarantee: str = "") -> str:
    """Return the text of a plan from its public numbers."""
    limits, facts = _limits(plan), _facts(plan)
    most = ", ".join(f"{limit:,}" for limit in (limits if len(set(limits)) > 1 else limits[:1]))
    lengths = "length" if choice_in(plan) is None else "length above 1"
    lines = [
        f"Phrases of 1 to {plan['max_length']} tokens, at most {most} per user and {lengths}, "
        f"{plan['weighting']} weighting, gaussian noise{facts.pruning}",
        *filter(None, ["; ".join(filter(None, [guarantee, facts.choices]))]),
        *_words_text(plan),
        *_risk(plan),
        *(line for each in [*known_grids(plan), _planned(plan)] for line in ("", *each.lines())),
        *(["", *_ran(plan).lines()] if _runs(plan, "words") else []),
    ]
    return "\n".join(lines)


def _risk(plan: Mapping[str, Any]) -> list[str]:
    """Return the lines about phrases that no user or only one user has, which the guarantee does not exclude."""
    if plan["max_length"] == 1:
        return []
    spurious, share = max(sum(_spurious(plan).values()), 0.01), plan["max_spurious_share"]
    number = f"at most {at_most(spurious)}" if _runs(plan, "words") else f"a share of about {share:g}"
    return [
        f"expected number of released phrases that nobody wrote: {number}; a phrase that only one user wrote is",
        f"released with a probability of up to {single_user(plan) or '0 %'}, once its parts are released",
    ]


def _words_text(plan: Mapping[str, Any]) -> list[str]:
    if choice_in(plan) is None:
        return []
    limit = plan["max_words_per_user"]
    return [f"length 1: {about_limit(plan, limit, 'words')}", *about_menu(plan, limit), *_share_text(plan)]


def _share_text(plan: Mapping[str, Any]) -> list[str]:
    """Return the line about the share of the budget for words, or an empty list if all phrases have one word."""
    if plan["max_length"] == 1:
        return []
    if plan["share_of_words"] is not None:
        return [f"words had {100 * plan['share_of_words']:.3g} % of the budget, by the number of counted users"]
    few, many = (f"{100 * plan['shares_of_words'][place]:.3g} %" for place in (0, -1))
    return [f"words get {many} of the budget, as below, or up to {few} if few users are counted"]


def _planned(plan: Mapping[str, Any]) -> Grid:
    """Return the table of the planned numbers."""
    facts, rows, measured = (
        _facts(plan),
        [],
        {row["length"] + 1: row["sigma"] for row in rows_of_type(plan, "measurement")},
    )
    for each in rows_of_type(plan, "words", "vote"):
        low, high, rule = each["lowest_threshold"], each["highest_threshold"], each["spurious_allowance"]
        span = f"{low:.5g}" if low == high else f"{low:.4g} to {high:.4g}"
        allowed = "–" if rule is None else f"{100 * rule['share']:.3g} % of {rule['of']}"
        numbers = map(plain, (each["length"], each["sigma"], measured.get(each["length"])))
        rows.append([*numbers, span, whole(each["users_50"]), whole(each["users_90"]), allowed])
    text = (
        "Threshold: the lower number is for few candidates, the higher one for many.\n"
        "Users for 50 % and 90 %: the users that a phrase needs for this probability of release, if its parts are "
        f"released, each user has {USUAL_ITEMS} phrases of that length, and 10 candidates compete for each place.\n"
    )
    if (rounds := len(rows_of_type(plan, *_FACTS))) > 1:
        text += f"Length 1 runs in {rounds} adaptive rounds; its numbers are those of the last round.\n"
    if plan["max_length"] > 1:
        text += "Spurious: the largest expected share of phrases that nobody wrote, of all released so far or of those "
        text += f"one token shorter{facts.limit}.\n"
    head = ["length", "sigma", "measured with", "threshold", "users for 50 %", "for 90 %", "spurious"]
    return Grid("Plan of each length", head, rows, text if _runs(plan, "words") else text + facts.about)
