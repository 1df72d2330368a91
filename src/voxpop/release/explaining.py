"""Explanations of missing items, and the parts of an explanation that follow from the plan."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import pyarrow as pa

from voxpop.engine.local.exact import PRIVATE
from voxpop.errors import on_one_line
from voxpop.privacy.budget import Printed, printable, table
from voxpop.privacy.guarantee import at_most
from voxpop.privacy.planned import ITEMS_EACH, DiscoveryPlan
from voxpop.reading.keys import Keys, unspelled
from voxpop.release.table import Gram

_EXPLAINED_PROBABILITIES = (0.5, 0.95)


@final
@dataclass(frozen=True, repr=False)
class Explanation(Printed):
    """The reasons why an item is in a release or may be missing. All fields except `private` are public.

    Attributes:
        item: The item as passed by the caller.
        tokens: The tokens that the release would contain.
        released: Whether it was released.
        reasons: Sentences that follow from the release and its plan.
        needed: The numbers of users that the item needs. There is one row for each number of items per user, with the
            keys `per_user` (None if the number does not matter), `users_50` and `users_95`.
        similar: Released items that differ only in case, accents, spaces or punctuation.
        private: A sentence about the data, which must not be published, or "" without a corpus.
    """

    item: str
    tokens: tuple[str, ...]
    released: bool
    reasons: tuple[str, ...]
    needed: tuple[dict[str, int | None], ...]
    similar: tuple[Gram, ...]
    private: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary for JSON, with `private` only if a corpus was given."""
        found = {
            "item": self.item,
            "tokens": list(self.tokens),
            "released": self.released,
            "reasons": list(self.reasons),
            "needed": [dict(row) for row in self.needed],
            "similar": [list(gram) for gram in self.similar],
        }
        return {**found, "private": f"{PRIVATE} {self.private}"} if self.private else found

    def __str__(self) -> str:
        state = "released" if self.released else "not released"
        lines = [f"{on_one_line(self.item)}: {state}", *(f"  {each}" for each in self.reasons)]
        if self.similar:
            lines.append(f"  Similar released items: {', '.join(map(printable, self.similar))}")
        if self.needed:
            rows = [["items of each user", "users for 50 %", "for 95 %"]]
            rows += [[_number(row[name]) for name in ("per_user", "users_50", "users_95")] for row in self.needed]
            parts = ", if its parts are released" if len(self.tokens) > 1 else ""
            lines += [f"  Users who must have it, by the plan alone{parts}:", *(f"  {line}" for line in table(rows))]
        return "\n".join([*lines, *([f"  {PRIVATE}", f"  {self.private}"] if self.private else [])])


def _number(value: int | None) -> str:
    return "any number" if value is None else f"{value:,}"


def key_text(keys: Keys, item: Any) -> str | None:
    """Return the item for a value of the key columns, which may be given as texts on a command line."""
    found = keys.item(item)
    parts = item if isinstance(item, list | tuple) else (item,)
    if found is not None or len(parts) != len(keys.columns) or not all(isinstance(part, str) for part in parts):
        return found
    try:
        arrays = [
            unspelled(pa.array([part], pa.large_string()), each.type)
            for part, each in zip(parts, keys.columns, strict=True)
        ]
        spelled: str | None = keys.spell(arrays)[0].as_py()
    except ValueError:  # pyarrow's errors about values are ValueErrors.
        return None
    return spelled


def about_list(numbers: Mapping[str, Any], known: bool | None) -> list[str]:
    """Return the sentence about the public list of a release, or no sentence without a list.

    Args:
        numbers: The public numbers of the plan.
        known: Whether the item was on the list, or None if it was not released or the release does not record this.
    """
    listed = numbers.get("known")
    if not isinstance(listed, Mapping):
        return []
    if known is None:
        return ["The release had a public list. The numbers of users below are for items that are not on it."]
    if not known:
        return []
    alone = listed.get("alone", listed.get("alone_at_most"))
    most = "" if alone is None else f" A known item of one user is released with probability at most {at_most(alone)}."
    return [f"It was on the public list of the release (known), so it may have only one user or no user.{most}"]


def once_released(numbers: Mapping[str, Any], gram: Gram) -> list[str]:
    """Return notes about a released gram for readers of the release."""
    if len(gram) < 2 or numbers.get("max_spurious_share") is None:
        return []
    share = f"At most a share of about {numbers['max_spurious_share']:g}"
    return [f"{share} of the released phrases is expected to have no user (max_spurious_share)."]


def reasons_of_plan(numbers: Mapping[str, Any], gram: Gram) -> list[str]:
    """Return the reasons that follow from the public numbers of the plan."""
    found, mechanism = [], numbers.get("mechanism")
    longest = numbers.get("max_length")
    if mechanism == "n-grams" and longest is not None and len(gram) > longest:
        found.append(f"It has {len(gram)} tokens, and the plan has phrases of at most {longest}. Raise max_length.")
    if mechanism == "heavy hitters" and longest is not None and gram:
        symbols = numbers.get("alphabet")
        text = " ".join(gram)
        size = len(gram) if symbols == "tokens" else len(text.encode()) if symbols == "bytes" else len(text)
        if size >= longest:
            found.append(
                f"It has {size} {symbols} and an end mark, and the plan has at most {longest}. Raise max_length."
            )
        if numbers.get("exclude"):
            found.append(
                "The plan excludes a public list of words. It contains only the size and fingerprint of this list."
            )
        found.append("A user votes only for the user's most frequent word, so other words of the user do not count.")
    if numbers.get("min_users"):
        found.append(
            f"The plan hardly ever releases an item that fewer than {numbers['min_users']:,} users have (min_users)."
        )
    for noun, rest in (("item", ""), ("phrase", " of its length")):
        setting = f"max_{noun}s_per_user"
        if isinstance(most := numbers.get(setting), int):
            several = f"{noun}{'' if most == 1 else 's'}{rest}"
            found.append(f"A user with more than {most:,} {several} contributes a random sample of them ({setting}).")
    return found


def users_needed_of(
    plan: DiscoveryPlan[Any, Any, Any], length: int, *, known: bool = False
) -> tuple[dict[str, int | None], ...]:
    """Return the numbers of users that a gram of this length needs, by the number of items per user.

    Args:
        plan: The plan.
        length: The number of tokens of the gram.
        known: Whether the gram is an item of the public list of the plan.
    """
    if known:
        needed: Any = plan.known_users_needed  # type: ignore[attr-defined]
        pairs = [(each, [needed(share, per_user=each) for share in _EXPLAINED_PROBABILITIES]) for each in ITEMS_EACH]
        return tuple({"per_user": each, "users_50": half, "users_95": most} for each, (half, most) in pairs)
    if length > (plan.longest or 1):
        return ()
    size, rows = (length if plan.longest else None), []
    for per_user in ITEMS_EACH if plan.counts_items else (None,):
        half, most = (plan.users_needed(each, length=size, per_user=per_user) for each in _EXPLAINED_PROBABILITIES)
        rows.append({"per_user": per_user, "users_50": half, "users_95": most})
    return tuple(rows)


def folded_gram(gram: Gram) -> str:
    """Return the letters and digits of a gram, without case and accents."""
    text = unicodedata.normalize("NFKD", "".join(gram)).casefold()
    return "".join(letter for letter in text if letter.isalnum())
