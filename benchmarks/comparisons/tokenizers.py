"""Tokenizers trained on released words and noisy counts, beside the same trained without privacy.

python -m benchmarks.comparisons.tokenizers
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import voxpop as vp
from benchmarks.support.common import DATA, table
from benchmarks.support.engines import read_engine
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.reading.choices import SUBWORDS
from voxpop.release.result import StoredPlan

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WORDS, COUNTS = vp.Budget(3, 5e-8), vp.Budget(1, 5e-8)
SIZES = (8_000,)
EVERY = 10
"""One user in so many is held out."""
AT_ONCE = 10_000
FEWER = {"unigram": 10}
"""Of the posts it is trained on one in so many: the library weighs each distinct word some thirty times, and posts hold
many more than the released words (words with their punctuation; 185,000 already in one post in ten)."""


def main() -> None:
    """Measure, print, write."""
    posts = pl.read_parquet(DATA / "reddit_posts.parquet")
    held_out = pl.col("user") % EVERY == 0
    training, others = posts.filter(~held_out), posts.filter(held_out)["text"].drop_nulls().to_list()
    corpus = read_engine(training, user="user", text="text")
    released = vp.SetUnion().release(corpus, WORDS)
    private, exact = released.count(corpus, COUNTS), exact_counts(corpus)
    texts = training["text"].drop_nulls().to_list()
    trained = ("private", "words, no privacy", "texts, no privacy")
    rows: list[list[object]] = [["bytes per token", *trained, *(f"unknown %: {each}" for each in trained)]]
    note = f"reddit_posts: {len(texts):,} posts to train on, {len(others):,} of other users to encode, in lower case. "
    note += (
        f"Private: released words and their counts, epsilon {WORDS.epsilon:g} and {COUNTS.epsilon:g}. Words: all words "
    )
    note += (
        "and how many users hold each, the same training. Texts: the library's own training on the posts. Unknown: of "
    )
    note += "all tokens; with wordpiece one stands for a whole word. Texts for unigram: one post in ten. One run."
    for model in SUBWORDS:
        for size in SIZES:
            made = [vp.exports.to_subword_tokenizer(each, model, size) for each in (private, exact)]
            made.append(trained_on(texts[:: FEWER.get(model, 1)], made[1], model, size))
            found = [encoded(each, others) for each in made]
            lengths, unknown = ([each[place] for each in found] for place in (0, 1))
            rows.append(
                [f"{model}, {size:,}", *(f"{each:.3f}" for each in lengths), *(f"{each:.3f}" for each in unknown)]
            )
        table("Tokenizers with and without privacy", rows, "tokenizers", note)  # what is there, if interrupted


def exact_counts(corpus: LocalCorpus) -> vp.Tally:
    """Return all words and how many users hold each: private, and never to be shown."""
    users = np.repeat(np.arange(corpus.user_key.size, dtype=np.int32), np.diff(corpus.user_start))
    held = pl.DataFrame({"user": users, "word": corpus.tokens}).filter(pl.col("word") >= 0).unique()
    counts = np.bincount(held["word"].to_numpy(), minlength=len(corpus.vocabulary))
    plan, guarantee = StoredPlan({}), vp.Guarantee(WORDS.epsilon, WORDS.delta)
    words = vp.Release.from_items(corpus.vocabulary, plan, guarantee, "words")
    return vp.Tally(words, counts.astype(np.int64), 0.0, plan, guarantee)


def trained_on(texts: list[str], same: "Tokenizer", model: str, size: int) -> "Tokenizer":
    """Return a tokenizer of the same parts, trained on the texts as they are."""
    from tokenizers import Tokenizer, models, trainers

    from voxpop.exports.libraries import VISIBLE

    kinds: dict[str, tuple[Any, Any]] = {
        "bpe": (models.BPE(), trainers.BpeTrainer(vocab_size=size, show_progress=False)),
        "wordpiece": (
            models.WordPiece(unk_token="[UNK]"),
            trainers.WordPieceTrainer(vocab_size=size, show_progress=False, special_tokens=["[UNK]"]),
        ),
        "unigram": (
            models.Unigram(),
            trainers.UnigramTrainer(
                vocab_size=size,
                show_progress=False,
                special_tokens=["[UNK]"],
                unk_token="[UNK]",
                initial_alphabet=VISIBLE,
            ),
        ),
    }
    result = Tokenizer(kinds[model][0])
    result.normalizer, result.pre_tokenizer = same.normalizer, same.pre_tokenizer
    result.train_from_iterator((texts[i : i + AT_ONCE] for i in range(0, len(texts), AT_ONCE)), kinds[model][1])
    return result


def encoded(tokenizer: "Tokenizer", texts: list[str]) -> tuple[float, float]:
    """Return how many bytes of folded text one token stands for, and how many tokens in a hundred are unknown."""
    unknown_id = tokenizer.token_to_id("[UNK]")
    tokens = written = unknown = 0
    for begin in range(0, len(texts), AT_ONCE):
        batch = texts[begin : begin + AT_ONCE]
        ids = [each.ids for each in tokenizer.encode_batch(batch)]
        tokens += sum(map(len, ids))
        unknown += sum(each.count(unknown_id) for each in ids)
        written += sum(len(tokenizer.normalizer.normalize_str(each).encode()) for each in batch)
    return written / tokens, 100 * unknown / tokens


if __name__ == "__main__":
    main()
