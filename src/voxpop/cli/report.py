"""A release as people and machines read it. Everything here is a function of the release."""

import json
from pathlib import Path
from textwrap import fill, indent
from typing import TYPE_CHECKING, Any

import typer

from voxpop.mechanisms import mechanism_called
from voxpop.showing import printable, words_first

if TYPE_CHECKING:
    from voxpop.privacy.guarantee import Guarantee
    from voxpop.release.about import About
    from voxpop.release.release import Release
    from voxpop.sequences.model import SequenceModel

SAMPLE = 20
WIDTH = 96


def report(release: "Release", folder: Path, *, as_json: bool, user: str = "user", data: str | None = None) -> None:
    """Print what was released, its guarantee in words, and where it was saved.

    Args:
        release: what was released.
        folder: where it was saved.
        as_json: print one JSON object instead.
        user: what one user is called.
        data: what the release was made from, where that is public.
    """
    if as_json:
        content = summary(release, folder)
        typer.echo(json_line(content if data is None else {"data": data, **content}))
        return
    typer.echo(listed(release))
    typer.echo(promise(release.guarantee, user))
    typer.echo(saved(folder, release.about))


def listed(release: "Release") -> str:
    """Say how many grams there are, and some of them, or what it would have taken to release any."""
    if not len(release):
        return f"{count(release)}\n{nothing(release.plan)}"
    grams = indented(fill(", ".join(sample(release)), WIDTH, break_long_words=False, break_on_hyphens=False))
    return f"{count(release)}{' Some of them:' if len(release) > SAMPLE else ''}\n{grams}"


def saved(folder: Path, about: "About | None" = None, page: str = "report.html there") -> str:
    """Say where something was saved, and which ledger paid where a data set was named."""
    where = f"\nSaved to {folder}; {page} is for whoever signs it off."
    if about is None or not about.dataset:
        return where
    return f"{where} Ledger: {about.ledger or 'none was charged; --ledger FILE charges one'}."


def summary(release: "Release | SequenceModel", folder: Path) -> dict[str, Any]:
    """Return what a machine wants to know about a saved release or model."""
    found_there = found(release, folder)
    return {
        "released": found_there["released"],
        **promised(release.guarantee),
        "plan": release.plan.to_dict(),
        "folder": found_there["folder"],
    }


def found(release: "Release | SequenceModel", folder: Path) -> dict[str, Any]:
    """Return how much was released and where it is."""
    return {"released": len(release), "folder": str(folder.resolve())}


def promised(guarantee: "Guarantee") -> dict[str, Any]:
    """Return a guarantee for machines, with the sentence that states it."""
    return {"statement": str(guarantee), "guarantee": guarantee.to_dict()}


def json_line(content: dict[str, Any]) -> str:
    """Return one JSON object on one line of ASCII."""
    return json.dumps(content, allow_nan=False)


def count(release: "Release") -> str:
    """Say how many grams there are, and of what length if not all are single."""
    number = len(release)
    longest = release.grams["length"][number - 1].as_py() if number else 1
    noun, rest = ("item", "") if longest == 1 else ("gram", f" of up to {longest} tokens")
    return f"Released {number:,} {noun}{'' if number == 1 else 's'}{rest}."


def sample(release: "Release") -> list[str]:
    """Return up to 20 grams, evenly spaced in canonical order, of those that begin with a letter where there are 20."""
    words = [gram for gram in release.each_gram() if gram[0][:1].isalpha()]
    chosen = words_first(release.each_gram()) if len(words) < SAMPLE else words
    number = len(chosen)
    places = range(number) if number <= SAMPLE else [number * place // SAMPLE for place in range(SAMPLE)]
    return [printable(chosen[place]) for place in places]


def nothing(plan: Any) -> str:
    """Say what it would have taken to release something: a function of the plan alone."""
    needed = "\n".join(filter(None, (_needed_at(plan, times) for times in (1, 2, 4))))
    return (
        "No item was held by enough users, and the budget is spent all the same. At this delta, what so many users\n"
        f"hold is found 9 times in 10:\n{indented(needed)}\n"
        "(for users who hold ten items each, none of them held by more people). It takes more users or more epsilon.\n"
        "If you expect that many, check that you named the right column and tokenizer."
    )


def _needed_at(plan: Any, times: int) -> str:
    """Say how many users an item needs at a multiple of the plan's epsilon; nothing where there is no such plan."""
    from voxpop.errors import BudgetError
    from voxpop.privacy.budget import Budget

    epsilon, names = plan.budget.epsilon * times, getattr(plan, "data_sets", ())
    shared = (names,) if names else ()
    try:
        users = _users_needed(plan if times == 1 else plan.mechanism.plan(Budget(epsilon, plan.budget.delta), *shared))
    except BudgetError:
        return ""
    return f"epsilon {epsilon:g}: {'more than 10^12' if users is None else f'{users:,}'} users"


def _users_needed(plan: Any) -> int | None:
    """Return how many users an item needs for a probability of 0.9."""
    mechanism = mechanism_called(plan.mechanism.to_dict()["mechanism"])
    needed: int | None = plan.holders(probability=0.9, **(mechanism.holders if mechanism else {}))
    return needed


def promise(guarantee: "Guarantee", user: str = "user") -> str:
    """Say what a guarantee means."""
    from voxpop.privacy.in_words import cautions, meaning

    warned = [indented(fill(f"Careful: {each}", WIDTH)) for each in cautions(guarantee)]
    return "\n".join([f"\nGuarantee: {guarantee}", indented(fill(meaning(guarantee, user), WIDTH)), *warned])


def indented(text: str) -> str:
    """Move a text two places to the right."""
    return indent(text, "  ")
