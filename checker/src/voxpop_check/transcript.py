"""The transcript of a release.

Each pass that ran is compared with the certificate, which must contain the pass and pay for it.
"""

from fractions import Fraction
from itertools import pairwise
from math import sqrt
from typing import Any

from flint import arb

from . import schema
from .balls import require
from .bounding import bounded
from .public import counts_square
from .rounds import square_of

PARTS = 2**40
ROUND, FIRST_ROUND, CLASSES = "round", "first round", "classes"
ZERO = arb(0)
FIRST_SYMBOLS = 10
"""The number of symbols at the start of a sequence. Distinct and repeated symbols are counted among them."""


def check(certificate: Any, passes: Any) -> str:
    """Check the passes of a transcript, and return a sentence about them.

    Raises:
        CertificateError: A pass ran that the certificate does not contain or does not pay for, or passes ran in another
            order.
    """
    frame = schema.certificate(certificate)
    numbers, proof = frame.numbers, frame.proof
    listed = isinstance(passes, list) and all(isinstance(each, dict) and "pass" in each for each in passes)
    require(listed, "no transcript")
    names, later = [each["pass"] for each in passes], getattr(numbers, "later", None)
    if proof == "adaptive rounds":
        require(not passes or numbers.rounds is not None, "rounds ran that the certificate does not contain")
        per_set, sets = rounds_of(numbers), max(1, len(numbers.data_sets))
        whole, rest = names[: len(per_set) * sets], passes[len(per_set) * sets :]
        require(whole == (per_set * sets)[: len(whole)], "rounds ran that the certificate does not contain")
        require(not rest or later is not None, "a pass ran that the certificate does not contain")
        follow(later, rest, unused(numbers) if rest else ZERO)
    elif proof == "threshold":
        require(names[:1] in ([], ["threshold"]), "another pass ran before the threshold")
        require(len(passes) < 2 or later is not None, "a pass ran that the certificate does not contain")
        follow(later, passes[1:])
    elif proof == "counts":
        head = ["classes"] if numbers.classes_sigma > 0 else []
        require(names[: len(head)] == head, "the choice did not run first")
        ran = passes[len(head) :]
        require(all(each["pass"] == "count" for each in ran), "a pass ran that the certificate does not contain")
        lengths = [each.get("length") for each in ran]
        require(len(set(lengths)) == len(lengths), "a length was counted twice")
        menu = numbers.menu if numbers.chosen is None else [numbers.menu[numbers.chosen]]
        for each in ran:
            length, sigma = each.get("length"), each.get("sigma")
            fits = any(length in range(1, len(m.limits) + 1) and m.sigma <= arb(sigma) for m in menu)
            require(fits, "a count ran with less noise than was charged")
    elif proof == "votes":
        require(names in [["votes"] * n for n in range(numbers.rounds + 1)], "more rounds ran than were charged")
        require([each.get("round") for each in passes] == [*range(1, len(passes) + 1)], "a round ran twice or late")
    elif proof == "nights":
        nights = [each.get("night") for each in passes]
        require(set(names) <= {"night"} and len(set(nights)) == len(nights), "a night ran twice")
        require(all(night in range(1, len(numbers.costs) + 1) for night in nights), "a night ran that was not charged")
    elif proof == "paths":
        paths_of(numbers, passes)
    elif proof == "keys":
        keys_of(certificate, numbers, passes)
    else:
        allowed = [], [{"picks": "picks", "optimal selection": "selection"}[proof]]
        require(names in allowed, "a pass ran that the certificate does not contain")
    return f"{len(passes)} passes, each of them in the certificate"


def rounds_of(numbers: Any) -> list[str]:
    """Return the passes of one data set, in order."""
    if (ran := numbers.rounds) is None:
        return []
    later = [ROUND] * len(ran.later) + ["list"] * (ran.known is not None)
    return [CLASSES] * (numbers.choice is not None) + [FIRST_ROUND] + later


def unused(numbers: Any) -> arb:
    """Return the part of the cap on mu^2 that chosen rounds leave for later passes (docs/privacy/limit.md)."""
    return ZERO if numbers.choice is None else (numbers.choice.square - square_of(numbers.rounds)).max(ZERO)


def follow(later: Any, passes: list[dict[str, Any]], more: arb = ZERO) -> None:
    """Require that (S / sigma)^2 of each later pass is at most its price or the rest of the common cap.

    If each user pays separately, `more` is added to the cap of the certificate.
    """
    left, votes = None if later is None else later.square, 0
    for each in passes:
        if later.charged == "parts":
            known = {"counts": later.counting > 0, "cover": later.cover is not None, ROUND: later.joining > 0}
            once = each["pass"] == ROUND or [other["pass"] for other in passes].count(each["pass"]) == 1
            require(once and known.get(each["pass"], False), "a pass ran that the certificate does not contain")
            if each["pass"] == "counts":
                counted = schema.certificate(each.get("certificate"))
                fits = counted.proof == "counts" and counts_square(counted.numbers) <= later.counting
                require(fits, "counts ran with less noise than was charged")
            continue
        votes += not str(each["pass"]).startswith("measure")
        require(votes <= later.passes, "more votes ran than were charged")
        form = schema.bounding(each.get("bounding"))
        require(type(each.get("sigma")) in (int, float) and each["sigma"] > 0, "a pass ran without noise")
        # The program computes S in doubles, so its last bits may differ.
        square = (bounded(form).sensitivity / arb(each["sigma"])) ** 2 * (1 - arb(2) ** -48)
        if later.charged == "everybody":
            require(form.name != "capped" and form.bound == 1, "a pass has a bounding that differs from its proof")
            left = left - square
            require(left >= 0, "the passes exceed the cap on later releases")
        else:
            # Individual sensitivities are proved only for these two rules, including rounding for users with any bound.
            known = form.name == "weighted" or (form.name == "policy-gaussian" and form.bound == 4)
            require(known and form.norm == 2, "a pass has a bounding that differs from its proof")
            cost = each.get("cost")
            require(type(cost) is int and 0 < cost <= PARTS, "a pass ran without a price")
            require(
                square <= (later.square + more) * cost / PARTS, "a pass ran with less noise than its price requires"
            )
            fair = all(type(rate) is int and 0 <= rate <= 2**20 for rate in each.get("rates") or [0])
            require(fair, "users would pay more than they have")


def keys_of(certificate: Any, numbers: Any, passes: list[dict[str, Any]]) -> None:
    """Require at most one choice and one entry, and the sums of other rows only at the end.

    Passes of rounds are compared with their certificate.
    """
    head, last = [CLASSES] if numbers.edges else [], ["rest"] if numbers.rest > 0 else []
    names, chosen = [each["pass"] for each in passes], numbers.chosen
    require(names[: len(head)] == head[: len(names)], "the choice did not run first")
    ran = passes[len(head) :]
    if ran and ran[-1]["pass"] == "rest":
        require(bool(last), "a pass ran that the certificate does not contain")
        ran = ran[:-1]
    require(not ran or chosen is not None, "an entry ran that was not chosen")
    few = len(numbers.menu)
    if ran and numbers.parts is not None and chosen == few:
        names = [each["pass"] for each in ran]
        require(names == ["few", "sizes", "more"][: len(ran)], "a pass ran that the certificate does not contain")
        limits = [each.get("limit") for each in ran[2:]]
        require(all(type(each) is int and each >= 1 for each in limits), "users with more keys have no limit")
    elif ran and chosen == few + (numbers.parts is not None):
        rounds = {**certificate, "proof": "adaptive rounds", "numbers": certificate["numbers"]["rounds"]}
        check(rounds, ran)
    elif ran:
        numbered = {"pass": "numbers", "limit": numbers.menu[chosen].limit}
        require(ran == [numbered], "a pass ran that the certificate does not contain")


def paths_of(numbers: Any, passes: list[dict[str, Any]]) -> None:
    """Require that shares add up to at most 1 on every path.

    Each path begins at the end of a path of the previous level.
    """
    statistics = [each for each in passes if "part" in each]
    names, spent = [each["pass"] for each in passes], Fraction(0)
    known = ["lengths", "variety"][: len(statistics)]
    require(len(passes) - len(known) <= numbers.max_gram, "more levels ran than the certificate contains")
    require(names == known + ["level"] * (len(passes) - len(known)), "a pass ran that the certificate does not contain")
    require(not statistics or numbers.tree == "contexts", "statistics ran before a tree of grams")
    longest, steps = steps_of(numbers, statistics[0]) if statistics and numbers.least else (numbers.max_length,) * 2
    for each in statistics:
        part, sensitivity, bins = Fraction(each["part"]), each.get("sensitivity"), each.get("bins")
        # A user is in one class of length, and has at most as many distinct symbols as the alphabet or a sequence has.
        # With two numbers of symbols, only the first symbols of a sequence are counted.
        most = FIRST_SYMBOLS if bins == 2 else numbers.alphabet or statistics[0].get("symbols") or longest
        least = 1 if each["pass"] == "lengths" else min(most, longest)
        require(each["pass"] == "lengths" or bins in (1, 2), "another statistic ran")
        require(0 < part <= 1 and type(sensitivity) is int and sensitivity >= least, "a statistic ran with less noise")
        spent += (1 - spent) * part
    ends = {spent}
    for each in passes[len(statistics) :]:
        # The noise of a level has the rate epsilon s / sensitivity, and its sensitivity is the number of counted steps.
        require(each.get("sensitivity") == steps, "a level ran with noise for another number of steps")
        shares = [(Fraction(before), Fraction(own)) for before, own in each.get("shares", ())]
        require(bool(shares), "a level ran that pays nothing")
        require(all(before in ends and own > 0 and before + own <= 1 for before, own in shares), "shares exceed a path")
        ends = {before + own for before, own in shares}


def steps_of(numbers: Any, lengths: dict[str, Any]) -> tuple[int, int]:
    """Return the length and the counted steps, which must follow from released lengths by the rules of the certificate.

    Among the sufficient numbers of steps, the rules select the one with the lowest price, computed in doubles. The
    price is `per_noise` times the square root of the noise, plus the share of the steps that are not counted.
    """
    longest, symbols = numbers.max_length, lengths.get("symbols") or 0
    first, released = lengths.get("first"), lengths.get("released")
    require(isinstance(first, list) and isinstance(released, list), "released lengths are missing")
    require({type(each) for each in [symbols, *first, *released]} == {int}, "released lengths are not whole numbers")
    rising = first[:1] == [1] and first == sorted(set(first)) and first[-1] <= longest
    require(rising and len(first) == len(released), "the classes of length are not in order")
    require(symbols == (numbers.alphabet or symbols) and symbols > 0, "the alphabet differs")
    if numbers.usual is not None:
        released = classes_of(numbers.usual, first, released, numbers.epsilon * Fraction(lengths["part"]))
        longest, first = first[len(released) - 1], first[: len(released)]
        require(lengths.get("longest") == longest, "the length of sequences does not follow from the released lengths")
    # Twice the mean number of steps per sequence in each class. The mean is half the sum of the shortest and the
    # longest length, plus the end mark unless sequences are cut.
    means = [*(low + high + 1 for low, high in pairwise(first)), 2 * longest]
    counted = [sum(n * min(mean, 2 * k) for n, mean in zip(released, means, strict=True)) for k in range(longest + 1)]
    enough = [k for k in range(1, longest + 1) if counted[k] >= numbers.least * counted[-1] > 0]

    def price(k: int) -> float:
        noise = 2 * k * (symbols + 1) / (numbers.epsilon * counted[k])
        return float(numbers.per_noise) * sqrt(noise) + float(1 - Fraction(counted[k], counted[-1]))

    best = min(enough, key=price, default=longest)
    require(lengths.get("steps") == best, "the number of counted steps does not follow from the released lengths")
    return longest, best


def classes_of(usual: int, first: list[int], released: list[int], rate: Fraction) -> list[int]:
    """Return the number of sequences in each class, up to the class of the longest sequences that are drawn.

    Classes after the last one with at least 4 noise scales are taken to be empty. The longest sequences are in one of
    the other classes or in the next class after them. The longest sequences are longer than usual only if at least a
    fifth of the sequences are longer.
    """
    common = sum(each <= usual for each in first)
    kept = max((place + 1 for place, each in enumerate(released) if each * rate >= 4), default=common)
    tails = [sum(released[place:kept]) for place in range(min(kept + 1, len(first)))]
    last = max(place for place, tail in enumerate(tails) if place < common or 5 * tail >= tails[0])
    return [*released[:last], released[last] if last == kept else tails[last]]
