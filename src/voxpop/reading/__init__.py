"""From a table in any form to checked columns, users and tokens: adapters, declared types, tokenizers, typed keys."""
