"""`voxpop export`: a saved release as one file that other software reads."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from voxpop.cli.options import Overwrite, Saved, Tokenizer

if TYPE_CHECKING:
    from voxpop.choices import Format as Formats
    from voxpop.choices import Subwords

Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="text, json, csv, arrow, parquet, vocabulary (scikit-learn), tokenizer (Hugging Face), spacy, gensim, "
        "sql, or, trained on its counts, bpe, wordpiece or unigram (Hugging Face); by default what the name says.",
        show_default=False,
    ),
]
File = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="File to write.", show_default=False)]


Dialect = Annotated[str, typer.Option(help="Of SQL: duckdb, postgres, bigquery, snowflake, ...")]
Size = Annotated[int, typer.Option(help="Of bpe, wordpiece and unigram: the most subwords.")]


def export(
    folder: Saved,
    output: File,
    format: Format = None,
    tokenizer: Tokenizer = "words",
    dialect: Dialect = "duckdb",
    size: Size = 8000,
    overwrite: Overwrite = False,
) -> None:
    """Write a saved release as one file for other software.

    voxpop export words -o words.txt

    voxpop export phrases --format tokenizer -o tokenizer.json

    voxpop export words --format bpe --size 8000 -o tokenizer.json
    """
    from voxpop.choices import SUBWORDS
    from voxpop.cli.columns import tokenizer_of
    from voxpop.release.stored_release import load_release

    if format in SUBWORDS:
        from voxpop.release.tally import Tally

        Tally.load(folder).write(output, cast("Subwords", format), size, overwrite=overwrite)
        typer.echo(f"Wrote a tokenizer to {output}")
        return
    cut = tokenizer_of(tokenizer)
    release = load_release(folder)
    named = cast("Formats | None", format)  # what it does not know, it refuses itself
    release.write(output, named, cut, dialect=dialect, overwrite=overwrite)
    typer.echo(f"Wrote {len(release):,} gram{'' if len(release) == 1 else 's'} to {output}")
