"""Conversion of any table to checked columns, users and tokens (adapters, declared types, tokenizers, typed keys)."""
