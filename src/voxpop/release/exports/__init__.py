"""A release in the forms that other software reads: one file each, which alone imports that software.

| file | makes |
|---|---|
| `count_vectorizer.py` | a scikit-learn `CountVectorizer` |
| `word_level.py` | a Hugging Face tokenizer |
| `phrase_matcher.py` | spaCy patterns |
| `gensim_phrases.py` | gensim phrases |
| `filtering.py`, `keys.py` | the rows of a table whose key was released |
| `files.py`, `formats.py` | files: text, JSON, CSV, Arrow, Parquet, and those of the libraries above |
| `joining.py` | text cut as `voxpop.read` cuts it; grams as single strings |
| `duckdb_keys.py` | released keys in DuckDB: a join that DuckDB runs itself, so that its rows are never read here |
| `other.py` | everything else in one group |
| `spark_keys.py` | released keys in Spark |
| `sql.py` | released keys as SQL, in the dialect of whoever runs it |
| `subwords.py` | Hugging Face tokenizers of subwords |
| `text_cutter.py` | one text cut into tokens as `voxpop.read` cuts it, by Python's own strings |
"""
