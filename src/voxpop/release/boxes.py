"""Releases and counts as a notebook shows them."""

from itertools import islice
from typing import TYPE_CHECKING

from voxpop.privacy.in_words import cautions
from voxpop.showing import card, printable, words_first

if TYPE_CHECKING:
    from voxpop.release.ranking import Ranking
    from voxpop.release.release import Release
    from voxpop.release.tally import Tally

SHOWN = 12


def release_box(release: "Release") -> str:
    """Return a release: how much there is, its guarantee, and some of it, words before punctuation."""
    noun = "gram" if release.keys is None else "item"
    title = f"{len(release):,} {noun}{'' if len(release) == 1 else 's'} released"
    first = words_first(release.each_gram())[:SHOWN]
    some = " · ".join(map(printable, first)) + (" …" if len(release) > SHOWN else "")
    lines = [str(release.guarantee), some or "Nothing was held by enough users.", "It says which, not how many users."]
    return card(title, lines, warned=cautions(release.guarantee))


def tally_box(tally: "Tally") -> str:
    """Return counts: their error, their guarantee alone and with the release, and the grams of most users."""
    rows = [(printable(gram), f"{users:,}") for gram, users in islice(tally.each_gram(), SHOWN)]
    title = f"Noisy numbers of users of {len(tally):,} gram{'' if len(tally) == 1 else 's'}"
    lines = [
        f"Standard error of each: {tally.error:.3g} users.",
        f"{tally.guarantee}; with the release: {tally.with_release}",
    ]
    return card(title, lines, ("gram", "users, about"), rows, cautions(tally.with_release))


def ranking_box(ranking: "Ranking") -> str:
    """Return a ranking: the first grams in order, its guarantee alone and with the release."""
    rows = [(f"{place:,}", printable(gram)) for place, gram in enumerate(islice(ranking.each_gram(), SHOWN), start=1)]
    title = f"The {len(ranking):,} of {len(ranking.grams):,} that most users hold"
    lines = [f"{ranking.guarantee}; with the release: {ranking.with_release}", "In order, about; no counts."]
    return card(title, lines, ("place", "gram"), rows, cautions(ranking.with_release))
