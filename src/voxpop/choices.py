"""Choices that several parts offer, as types: editors complete them, and type checkers refuse a wrong name."""

import re
from collections.abc import Callable
from typing import Any, Literal, get_args

TokenizerName = Literal["words", "unicode", "whitespace", "characters"]
TextTokenizer = TokenizerName | re.Pattern[str] | Callable[[list[str]], Any]
"""How texts are cut: by name, by what matches an expression, or by a callable from texts to lists of tokens."""
Format = Literal["text", "json", "csv", "arrow", "parquet", "vocabulary", "tokenizer", "spacy", "gensim", "sql"]
"""The formats that a release is written in."""
Subwords = Literal["bpe", "wordpiece", "unigram"]
"""The models of subwords that a tokenizer is trained with."""
SUBWORDS = get_args(Subwords)
Form = Literal["where", "select"]
"""What SQL is asked for."""
