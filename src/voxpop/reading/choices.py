"""Types for named choices in several parts of the library.

Editors complete the names, and type checkers reject wrong names.
"""

import re
from collections.abc import Callable
from typing import Any, Literal, get_args

TokenizerName = Literal["words", "whitespace", "characters"]
TextTokenizer = TokenizerName | re.Pattern[str] | Callable[[list[str]], Any]
"""The tokenizer for texts, as a name, a regular expression for tokens, or a callable from texts to lists of tokens."""
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
"""The file formats of `voxpop.exports`. A test compares them with the registry."""
Subwords = Literal["bpe", "wordpiece", "unigram"]
"""The models that a subword tokenizer can be trained with."""
SUBWORDS = get_args(Subwords)
Form = Literal["where", "select"]
"""The form of an SQL query."""
