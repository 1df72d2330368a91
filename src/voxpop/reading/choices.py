"""Choices that several parts offer, as types: editors complete them, and type checkers refuse a wrong name."""

import re
from collections.abc import Callable
from typing import Any, Literal, get_args

TokenizerName = Literal["words", "whitespace", "characters"]
TextTokenizer = TokenizerName | re.Pattern[str] | Callable[[list[str]], Any]
"""How texts are cut: by name, by the matches of an expression, or by a callable from texts to lists of tokens."""
Format = Literal[
    "text",
    "json",
    "csv",
    "arrow",
    "parquet",
    "sql",
    "vocabulary",
    "tokenizer",
    "spacy",
    "registry",
    "checklist",
    "frequencies",
    "bpe",
    "wordpiece",
    "unigram",
]
"""The file formats of `voxpop.exports`; a test compares them with the registry."""
Subwords = Literal["bpe", "wordpiece", "unigram"]
"""The models of subwords that a tokenizer is trained with."""
SUBWORDS = get_args(Subwords)
Form = Literal["where", "select"]
"""The request to SQL."""
WeightingName = Literal[
    "adaptive", "count", "count-laplace", "weighted", "weighted-laplace", "policy-laplace", "policy-gaussian"
]
"""The weightings of the command line; a test compares them with `voxpop.privacy.weightings.builtin.WEIGHTINGS`."""
