"""Exports of releases as tables, SQL, files and objects of other libraries.

A release is public, so the exports cost no budget. Functions that need an optional library import it when they are
called.
"""

from voxpop.exports.files import EXPORTS, Export, write
from voxpop.exports.libraries import (
    to_count_vectorizer,
    to_phrase_matcher,
    to_subword_tokenizer,
    to_tokenizer,
)
from voxpop.exports.records import checklist, registry_record
from voxpop.exports.sql import to_sql
from voxpop.exports.tables import filter, to_spark, with_other

__all__ = [
    "EXPORTS",
    "Export",
    "checklist",
    "filter",
    "registry_record",
    "to_count_vectorizer",
    "to_phrase_matcher",
    "to_spark",
    "to_sql",
    "to_subword_tokenizer",
    "to_tokenizer",
    "with_other",
    "write",
]
