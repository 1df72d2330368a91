"""The numbers of a plan about items of a public list, and the sentences about them in plans and reports."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from voxpop.errors import InputError
from voxpop.mechanisms.rounds import users_needed as needed
from voxpop.mechanisms.rounds.known import released_alone
from voxpop.mechanisms.rounds.menu import Menu, UnionStep, deciding
from voxpop.privacy.budget import check_probability, check_whole
from voxpop.privacy.guarantee import at_most
from voxpop.privacy.planned import USUAL_ITEMS
from voxpop.release.report.numbers import whole

if TYPE_CHECKING:
    from voxpop.release.known import KnownColumns, KnownItems
    from voxpop.release.report.page import Grid

_SHOWN = 23
"""The number of characters of a fingerprint that texts show, including its prefix."""


def known_users_needed(
    step: UnionStep,
    known: "KnownItems | KnownColumns | None",
    limit: int | None,
    probability: float,
    per_user: int | None,
) -> int | None:
    """Return the number of users that a listed item needs to be released with this probability.

    The result assumes that a tenth of the list is released. If a larger part is released, an item needs fewer users.

    Args:
        step: The pass that decides which items are released.
        known: The public list of the plan.
        limit: The maximum number of items per user in a round (None for a private choice).
        probability: A number strictly between 0 and 1.
        per_user: The number of items per user, as in `users_needed`.

    Raises:
        InputError: If a number is out of range, or there is no list.
    """
    check_probability(probability)
    if known is None:
        raise InputError("the plan has no list. Give `known` to the mechanism, or call `users_needed`.")
    items = per_user or min(USUAL_ITEMS, limit or USUAL_ITEMS)
    check_whole("per_user", items, 10**12, "the number of items of each user")
    if isinstance(step, Menu):
        return step.users_needed(probability, items, needed.listed_users_needed)
    rounds: Any = deciding(step)
    return needed.listed_users_needed(rounds, probability, items)


def listed_numbers(
    step: UnionStep,
    known: "KnownItems | KnownColumns | None",
    limit: int | None,
    transcript: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the numbers about listed items, ready for JSON, or an empty dictionary without a list.

    Args:
        step: The pass that decides which items are released.
        known: The public list of the plan, if there is one.
        limit: The maximum number of items per user in a round (None for a private choice).
        transcript: The passes that ran.
    """
    last: Any = deciding(step)
    if known is None or getattr(last, "known", None) is None:
        return {}
    # Levels in the transcript are counted from 1. If the level in the transcript is above the highest level, no listed
    # item is released.
    levels = [each["level"] for each in transcript if each["pass"] == "list"]
    ran = {"level": levels[0], "alone": released_alone(last, levels[0] - 1)} if levels else {}

    def users(probability: float, *, per_user: int) -> int | None:
        return known_users_needed(step, known, limit, probability, per_user)

    numbers = {
        **{"share_without_users": last.known.share, "alone_at_most": released_alone(last, 0)},
        "alone_at_a_tenth": released_alone(last, needed.usual_level(last)),
        "users_needed": needed.users_needed_rows(users),
    }
    return {"known": {**known.to_dict(), **numbers, **ran}}


def users_grid(plan: Mapping[str, Any], noun: str, note: str) -> "Grid":
    """Return the table of users needed. With a public list, each probability has an additional column for known items.

    Args:
        plan: The public numbers of the plan.
        noun: The noun for an item, with an article.
        note: The note below the table.
    """
    from voxpop.release.report.page import Grid

    head, rows = _users_rows(plan)
    if "users_needed" in plan.get("known", {}):
        pairs = zip(rows, _users_rows(plan["known"])[1], strict=True)
        rows = [
            [row[0], *(cell for pair in zip(row[1:], other[1:], strict=True) for cell in pair)] for row, other in pairs
        ]
        head = [name for each in head for name in (each, f"{each} known")]
    of_each = f"{noun.split()[-1]}s of each"
    return Grid(f"Users that {noun} needs, by probability of release", [of_each, *head], rows, note)


def _users_rows(plan: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the probabilities of release, and for each number of items a row of the numbers of users needed."""
    users = {(row["items"], row["probability"]): row["users"] for row in plan["users_needed"]}
    sizes, probabilities = (sorted(set(each)) for each in zip(*users, strict=True))
    rows = [[f"{size:,}", *(whole(users[size, each]) for each in probabilities)] for size in sizes]
    return [f"{probability:g}" for probability in probabilities], rows


def known_note(plan: Mapping[str, Any], noun: str, assuming: str) -> str:
    """Return the sentences about items of a public list, one per line, or an empty text if there is no list.

    Args:
        plan: The public numbers of the plan.
        noun: The noun for an item.
        assuming: The subject and the verb of the sentence about how much of the list is assumed to be released.
    """
    known = plan.get("known", {})
    if "users_needed" not in known:
        return ""
    return _sentences(
        known, noun, f"{assuming} that a tenth of the list is released.", f"At most {{}} % of the released {noun}s"
    )


def known_series_note(plan: Mapping[str, Any]) -> str:
    """Return the sentences about items of a public list in a series, one per line, or an empty text without a list."""
    if "known" not in plan:
        return ""
    assuming = "The column of known items assumes that a tenth of the list is released by the last night."
    return _sentences(plan["known"], "item", assuming, "On each night, at most {} % of the items released so far")


def _sentences(known: Mapping[str, Any], noun: str, assuming: str, share: str) -> str:
    one = f"A known {noun} of one user"
    alone = f"{one} is released with probability at most {at_most(known['alone_at_a_tenth'])} if a tenth of the list is"
    alone += f" released, and never more than {at_most(known['alone_at_most'])}."
    if "alone" in known:
        alone = f"{one} was released with probability at most {at_most(known['alone'])}."
    percent = f"{100 * known['share_without_users']:g}"
    return (
        f"\n{known['size']:,} {noun}s are known from a public list ({known['fingerprint'][:_SHOWN]}...). {assuming}\n"
        f"{share.format(percent)}, in expectation, are known {noun}s that no user has.\n{alone}\n"
        f"All other numbers about {noun}s of one user are about unknown {noun}s."
    )


def known_grids(plan: Mapping[str, Any]) -> "list[Grid]":
    """Return the table of the users that a known word needs, or an empty list without a public list."""
    note = known_note(plan, "word", "The table assumes")
    return [users_grid(plan["known"], "a known word", note.strip())] if note else []
