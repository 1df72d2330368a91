"""Reading, one way: a source, its batches, checked columns, users and tokens, arrays.

| file | holds |
|---|---|
| `read.py` | all of it, from top to bottom |
| `sources.py` | what a path, folder, pattern or table stands for, as batches |
| `files.py`, `failures.py` | one file as batches; what readers say, without rows in it |
| `columns.py` | checked columns |
| `stretches.py` | rows cut where memory is full |
| `tokens.py`, `tokenisers.py`, `sentences.py` | from columns to tokens |
| `interner.py`, `code_points.py` | from texts to words and their ids |
| `users.py`, `vocabulary.py` | users and words by number |
| `layout.py` | users and tokens as the arrays of a corpus |
| `spilling.py` | the same within a limit on memory |
| `arrow_sources.py` | tables as people hold them |
| `csv_text.py` | CSV as people export it |
| `databases.py` | queries of a database, read as they come |
| `event_times.py` | when events happened |
| `events.py` | rows of events to sequences |
| `keyed.py` | users and items of any type, and of several columns, on their way to what the engine reads |
| `remote.py` | files behind an address, such as `s3://...` and `https://...` |
| `encodings.py` | text in whatever encoding, as UTF-8 |
| `markup.py` | HTML as the text that readers see, by Python's own parser |
| `portions.py` | batches of about a megabyte, from sources that count rows |
| `content_order.py` | an order that follows from what rows hold |
| `wanted.py` | what is read of a table, whatever engine reads it |
"""
