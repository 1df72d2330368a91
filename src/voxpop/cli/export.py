"""`voxpop export`: a saved release as one file that other software reads."""

from pathlib import Path
from typing import Annotated

import typer

from voxpop.cli.options import Saved, Tokenizer

Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="text, json, csv, arrow, parquet, vocabulary (scikit-learn), tokenizer (Hugging Face), spacy or gensim; "
        "by default what the file's name says.",
        show_default=False,
    ),
]
File = Annotated[
    Path, typer.Option("-o", "--output", metavar="FILE", help="File to write; replaced.", show_default=False)
]


def export(folder: Saved, output: File, format: Format = None, tokenizer: Tokenizer = "words") -> None:
    """Write a saved release as one file for other software.

    voxpop export words -o words.txt

    voxpop export phrases --format tokenizer -o tokenizer.json
    """
    from voxpop.cli.columns import tokenizer_of
    from voxpop.release.loading import load

    cut = tokenizer_of(tokenizer)
    release = load(folder)
    release.write(output, format, cut)
    typer.echo(f"Wrote {len(release):,} gram{'' if len(release) == 1 else 's'} to {output}")
