"""The numbers of plans about items of a public list, and their texts in plans and reports."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from voxpop.errors import InputError
from voxpop.mechanisms.rounds import users_needed as needed
from voxpop.mechanisms.rounds.known import released_alone
from voxpop.mechanisms.rounds.menu import Menu, UnionStep, deciding
from voxpop.privacy.budget import check_probability, check_whole, table
from voxpop.privacy.guarantee import at_most
from voxpop.privacy.planned import USUAL_ITEMS
from voxpop.release.report.numbers import whole
from voxpop.release.report.page import Grid

if TYPE_CHECKING:
    from voxpop.release.known import KnownColumns, KnownItems


def known_users_needed(
    step: UnionStep,
    known: "KnownItems | KnownColumns | None",
    limit: int | None,
    probability: float,
    per_user: int | None,
) -> int | None:
    """Return the number of users who must have a listed item for its release with this probability.

    The result assumes that a tenth of the list is released. If more is released, an item needs fewer users.

    Args:
        step: The pass that decides.
        known: The public list of the plan.
        limit: The maximum number of items per user in a round; None for a private choice.
        probability: A number strictly between 0 and 1.
        per_user: The number of items per user, as in `users_needed`.

    Raises:
        InputError: If a number is out of range, or there is no list.
    """
    check_probability(probability)
    if known is None:
        raise InputError("the plan has no list: give `known` to the mechanism, or ask for `users_needed`.")
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
    """Return the numbers about listed items, ready for JSON; empty if there is no list.

    Args:
        step: The pass that decides.
        known: The public list of the plan, if there is one.
        limit: The maximum number of items per user in a round; None for a private choice.
        transcript: The passes that ran.
    """
    last: Any = deciding(step)
    if known is None or getattr(last, "known", None) is None:
        return {}
    # Levels of the transcript count from 1; at a level above all of them, no listed item is released.
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


def users_rows(plan: Mapping[str, Any]) -> tuple[list[float], list[list[str]]]:
    """Return the probabilities, and the users that an item needs for each number of items per user."""
    users = {(row["items"], row["probability"]): row["users"] for row in plan["users_needed"]}
    sizes, probabilities = (sorted(set(each)) for each in zip(*users, strict=True))
    return probabilities, [[f"{size:,}", *(whole(users[size, each]) for each in probabilities)] for size in sizes]


def both_rows(plan: Mapping[str, Any], mark: str = "", scale: float = 1.0) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of users needed; with a public list, each probability has a column for known items.

    Args:
        plan: The public numbers of the plan.
        mark: The text after a probability.
        scale: The factor of probabilities.
    """
    head, rows = _users_table(plan, mark, scale)
    known = plan.get("known")
    if known is None or "users_needed" not in known:
        return head, rows
    pairs = zip(rows, users_rows(known)[1], strict=True)
    joint = [
        [row[0], *(cell for pair in zip(row[1:], other[1:], strict=True) for cell in pair)] for row, other in pairs
    ]
    return [name for each in head for name in (each, f"{each} known")], joint


def known_lines(plan: Mapping[str, Any], noun: str = "item") -> list[str]:
    """Return the lines of a plan about items of a public list.

    Args:
        plan: The public numbers of the plan. If its users needed are by length of phrase, known words have a table.
        noun: The name of an item.
    """
    known = plan.get("known")
    if known is None or "users_needed" not in known:
        return []
    size, share = known["size"], known["share_without_users"]
    if "users_needed" in plan:
        needed = [f"Columns of known {noun}s are for the list of {size:,} {noun}s, if a tenth of the list is released"]
    else:
        names, rows = _users_table(known, "", 1)
        needed = [
            f"Users that a known {noun} of the list of {size:,} {noun}s needs, if a tenth of the list is released",
            *table([[f"{noun}s of each", *names], *rows]),
        ]
    return [
        *needed,
        f"At most {100 * share:g} % of the released {noun}s, in expectation, are known {noun}s that no user has",
        *_alone(known, noun),
    ]


def _users_table(plan: Mapping[str, Any], mark: str, scale: float) -> tuple[list[str], list[list[str]]]:
    probabilities, rows = users_rows(plan)
    return [f"{scale * probability:g}{mark}" for probability in probabilities], rows


def _alone(known: Mapping[str, Any], noun: str) -> list[str]:
    if "alone" in known:
        return [f"A known {noun} of one user was released with probability at most {known['alone']:.2g}"]
    usual, most = known["alone_at_a_tenth"], known["alone_at_most"]
    return [
        f"A known {noun} of one user is released with probability at most {usual:.2g} if a tenth of the list is",
        f"released, and never more than {most:.2g}; all other numbers here are about unknown {noun}s",
    ]


def known_grids(plan: Mapping[str, Any], noun: str = "item") -> list[Grid]:
    """Return the tables of a report about items of a public list, if there is one.

    Args:
        plan: The public numbers of the plan.
        noun: The name of an item.
    """
    known = plan.get("known")
    if known is None or "users_needed" not in known:
        return []
    alone = at_most(known.get("alone", known["alone_at_most"]))
    name, share = known["fingerprint"][:23], 100 * known["share_without_users"]
    apart = "users_needed" not in plan
    about = "This table assumes" if apart else f"The columns of known {noun}s assume"
    note = (
        f"{known['size']:,} {noun}s were known from a public list ({name}...). {about} that a tenth of the list is "
        f"released. Other statements about {noun}s of one user exclude known {noun}s."
    )
    bounds = [[f"known {noun}s without users among the released {noun}s, expected share at most", f"{share:g} %"]]
    bounds.append([f"probability that a known {noun} of one user is released, at most", alone])
    grid = Grid(f"Known {noun}s", ["about", "bound"], bounds, note)
    if not apart:
        return [grid]
    head, rows = _users_table(known, " %", 100)
    return [grid, Grid(f"Users that a known {noun} needs", [f"{noun}s of each user", *head], rows, "")]
