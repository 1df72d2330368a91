"""The story of an n-gram extraction."""

from collections.abc import Mapping
from typing import Any

from voxpop.release.report.chances import Chance, curve, share_of, threshold_chance, users_for
from voxpop.release.report.story import Grid, Story
from voxpop.release.report.words import percent, plain, whole

PHRASES_OF_EACH = 10
PROBABILITIES = (0.5, 0.9, 0.99)


def about_ngrams(plan: Mapping[str, Any], sizes: Mapping[int, int]) -> Story:
    """Return the story of an extraction from its plan's numbers and how many grams each length released."""
    runs = plan["ran"]
    chances = {run["length"]: _chance(plan, run) for run in runs}
    each = min(PHRASES_OF_EACH, *_limits(plan))
    longest = max(sizes, default=1)
    curves = [
        {"name": f"length {length}", "points": curve(chance)}
        for length, chance in chances.items()
        if length <= longest and users_for(chance, PROBABILITIES[-1])
    ]
    return Story(
        words="ngrams.html",
        noun=("phrase", "phrases"),
        title="that many people share",
        kicker=f"Phrases of 1 to {plan['max_length']} tokens",
        proof="docs/privacy/ngrams.md",
        values={
            "max_length": plan["max_length"],
            "limits": _limits(plan),
            "eta": plan["eta"],
            "spurious": _spurious(plan),
            "longest": longest,
            "both": plan["pruning"] == "both",
            "each": each,
        },
        needed=_needed(chances, sizes, each),
        about=_about(chances, sizes, each),
        curves=curves,
        curves_note=f"One line for each length, with the noise and threshold that ran. It is the chance once the "
        f"phrase’s parts are released, if each holder holds {each} phrases of that length, none held by more people.",
        costs=_costs(plan),
        grids=[_ran(plan, sizes)],
    )


def _limits(plan: Mapping[str, Any]) -> list[int]:
    limit = plan["limit"]
    return [limit] * plan["max_length"] if isinstance(limit, int) else [int(each) for each in limit]


def _chance(plan: Mapping[str, Any], run: Mapping[str, Any]) -> Chance:
    limits = _limits(plan)
    limit = limits[run["length"] - 1]
    share = share_of(plan["weighting"], "gaussian", limit, min(PHRASES_OF_EACH, *limits))
    if share is None:
        raise ValueError("a weighting of another version")
    cutoff = max(run["threshold"] + plan["alpha"] * run["sigma"], 1.0) if plan["weighting"] == "l2-descent" else None
    numbers = {"noise": "gaussian", "scale": run["sigma"], "threshold": run["threshold"], "cutoff": cutoff}
    return threshold_chance(numbers, share)


def _about(chances: Mapping[int, Chance], sizes: Mapping[int, int], each: int) -> tuple[str, str]:
    """Return the least and the greatest number of holders that a length with releases needed."""
    needed = [users_for(chance, 0.9) for length, chance in chances.items() if sizes.get(length)]
    known = [users for users in needed if users is not None]
    if not known:
        return "–", "nothing was released"
    span = whole(known[0]) if min(known) == max(known) else f"{min(known):,} to {max(known):,}"
    return span, "for 90 %, by length"


def _needed(chances: Mapping[int, Chance], sizes: Mapping[int, int], each: int) -> Grid:
    rows = [
        [str(length), f"{sizes.get(length, 0):,}", *(whole(users_for(chance, wanted)) for wanted in PROBABILITIES)]
        for length, chance in chances.items()
    ]
    return Grid(
        "Holders that a phrase needed",
        ["tokens", "released", *(f"{100 * wanted:g} %" for wanted in PROBABILITIES)],
        rows,
        f"If each holder holds {each} phrases of that length, none held by more people. A user with fewer phrases "
        "gives each more weight, one with more gives each less.",
    )


def _spurious(plan: Mapping[str, Any]) -> float:
    """Return how many released phrases nobody holds, on average at most."""
    return sum(_spurious_by_length(plan).values())


def _spurious_by_length(plan: Mapping[str, Any]) -> dict[int, float]:
    found = {run["length"]: run.get("spurious") or 0.0 for run in plan["ran"]}
    for length, more in enumerate((plan.get("swept") or {}).get("spurious", ()), start=2):
        found[length] += more
    return found


def _costs(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each pass's part of the budget: of 1 / sigma^2, which adds up; or its price, where users pay each."""
    # In adaptive rounds all of length 1 together, else its one vote.
    first = sum(each["scale"] ** -2 for each in plan.get("round_plans", [])) or plan["ran"][0]["sigma"] ** -2
    later = float(plan["mu_squared_later"])
    parts = [{"length": 1, "part": "vote", "square": first}]
    for run in plan["ran"][1:]:
        looks = [run["measurement_sigma"], run.get("prevote_sigma")]
        parts += [{"length": run["length"], "part": "forecast", "square": look**-2} for look in looks if look]
        parts.append({"length": run["length"], "part": "vote", "square": run["sigma"] ** -2})
    if plan.get("swept"):
        parts.append({"length": None, "part": "vote", "square": plan["swept"]["sigma"] ** -2})
    asked = sum(part["square"] for part in parts[1:])
    if plan.get("spending") == "individual" and asked:
        parts[1:] = [{**part, "square": part["square"] * later / asked} for part in parts[1:]]
    elif later - asked > 1e-3 * later:
        parts.append({"length": None, "part": "not used", "square": later - asked})
    total = sum(part["square"] for part in parts)
    return [{"length": part["length"], "part": part["part"], "share": part["square"] / total} for part in parts]


def _ran(plan: Mapping[str, Any], sizes: Mapping[int, int]) -> Grid:
    shares: dict[Any, float] = {}
    for cost in _costs(plan):
        shares[cost["length"]] = shares.get(cost["length"], 0.0) + cost["share"]
    spurious = _spurious_by_length(plan)
    rows = [
        [
            str(run["length"]),
            f"{sizes.get(run['length'], 0):,}",
            "–" if run["candidates"] is None else f"{run['candidates']:,}",
            plain(run["sigma"]),
            plain(run["threshold"]),
            plain(run["measurement_sigma"]),
            percent(shares[run["length"]]),
            "–" if run["length"] == 1 else plain(spurious[run["length"]]),
        ]
        for run in plan["ran"]
    ]
    return Grid(
        "What ran, length by length",
        [
            "tokens",
            "released",
            "candidates",
            "sigma",
            "threshold",
            "sigma of the forecast",
            "of the budget",
            "spurious",
        ],
        rows,
        "Noise and threshold are in units of weight: each user has one unit to share out at each length. Candidates "
        "are phrases whose parts were released; they and all later numbers follow from what was released before. Where "
        "likely phrases had lower thresholds than unlikely ones, the mean over what was released is shown. Spurious: "
        "an estimate of how many nobody holds, the last vote counted; no share is promised at one length."
        + _of_individual(plan),
    )


def _of_individual(plan: Mapping[str, Any]) -> str:
    """Say what is different where users pay for themselves."""
    if plan.get("spending") != "individual":
        return ""
    text = " Every user pays from a budget of its own, and only at lengths where it holds a candidate. Sigma is that "
    text += "of a user who pays the price of the length, and shares of the budget are prices."
    swept = plan.get("swept")
    if swept:
        text += f" In the end {swept['candidates']:,} phrases that had come close were voted on once more, with what "
        text += f"each user had left (sigma {plain(swept['sigma'])}); {sum(swept['released']):,} of them came out."
    return text
