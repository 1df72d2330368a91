"""Reference implementation of TrieHH (Algorithms 1 to 3 of the paper) with dicts and strings.

Words are strings that end with "$". Draws are arguments, so that tests can pass the draws of the library.
"""

from collections import Counter
from collections.abc import Callable, Sequence

Choose = Callable[[int, int, Counter[str]], str]
"""A function of the user, the round (from 1) and the words of the user. It returns the word of this round."""


def grow_trie(
    users: Sequence[Counter[str]],
    sampled: Callable[[int, int], bool],
    choose: Choose,
    theta: int,
    rounds: int,
    unit: int = 1,
) -> list[set[str]]:
    """Return the new prefixes of each round. Run Algorithm 2 once per round until a round adds no prefix."""
    trie: list[set[str]] = []
    before = {""}
    for number in range(1, rounds + 1):
        votes: Counter[str] = Counter()
        for user, words in enumerate(users):
            if not words or not sampled(user, number):
                continue
            word = choose(user, number, words) + "$"
            if word[: (number - 1) * unit] in before and len(word) > (number - 1) * unit:
                votes[word[: number * unit]] += 1
        before = {prefix for prefix, count in votes.items() if count >= theta}
        if not before:
            break
        trie.append(before)
    return trie


def found_words(trie: list[set[str]]) -> set[str]:
    """Return the words of a trie, without their end marks."""
    return {prefix[:-1] for level in trie for prefix in level if prefix.endswith("$")}


def most_frequent(words: Counter[str]) -> str:
    """Return the most frequent word. If there are several, return the first of them in the order of bytes."""
    return min(words, key=lambda word: (-words[word], word.encode()))


def by_share(words: Counter[str], draw: int) -> str:
    """Return the word that a draw of 64 bits selects, with probabilities proportional to frequencies."""
    ordered = sorted(words.elements(), key=str.encode)
    return ordered[draw * len(ordered) >> 64]
