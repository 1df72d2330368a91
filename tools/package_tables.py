"""Package tables: what each folder of the package holds, file by file, in its `__init__`.

`python tools/package_tables.py` adds a row for each file that is missing, from the first sentence of its docstring, and
takes out what is gone; `tests/test_layout.py` fails where that is due. Rows may be rewritten by hand and share files.
"""

import ast
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "voxpop"
NAMED = re.compile(r"`([\w/]+(?:\.py|/))`")
MOST = 95
"""Characters of a row's text; of longer sentences only the beginning is said."""
HEAD = "| file | holds |\n|---|---|\n"


def packages() -> list[Path]:
    """Return the folders of the package, itself left out: its `__init__` lists what users import."""
    return sorted(init.parent for init in SOURCE.rglob("__init__.py") if init.parent != SOURCE)


def there(package: Path) -> set[str]:
    """Return the files and folders of a package."""
    files = {path.name for path in package.glob("*.py")} - {"__init__.py"}
    return files | {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}


def rows(package: Path) -> list[str]:
    """Return the rows of a package's table."""
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text()), clean=False) or ""
    return [line for line in text.splitlines() if line.startswith("| `")]


def named(package: Path) -> set[str]:
    """Return the files that a package's table names."""
    return {name for row in rows(package) for name in NAMED.findall(row.split("|")[1])}


def says(path: Path) -> str:
    """Return the first sentence of a module's docstring, as a row has it."""
    file = path if path.suffix == ".py" else path / "__init__.py"
    first = (ast.get_docstring(ast.parse(file.read_text())) or "").split("\n\n")[0].replace("\n", " ")
    sentence = re.split(r"(?<=[^A-Z])[.:](?: |$)", first)[0].strip()
    if len(sentence) > MOST:
        sentence = re.split(r"(?<=\w{3}) (?=\(|in which|so that|whose|that keep)|, ", sentence, maxsplit=1)[0]
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]


def mended(package: Path) -> str:
    """Return the text of a package's `__init__` with a table of just what is there."""
    init = package / "__init__.py"
    text, held = init.read_text(), there(package)
    for row in rows(package):
        cell = row.split("|")[1]
        kept = [name for name in NAMED.findall(cell) if name in held]
        fresh = row.replace(cell, f" {', '.join(f'`{name}`' for name in kept)} ") + "\n" if kept else ""
        text = text.replace(row + "\n", fresh)
    missing = [f"| `{name}` | {says(package / name)} |\n" for name in sorted(held - named(package))]
    if not missing:
        return text
    present = rows_in(text)
    if present:
        last = present[-1] + "\n"
        return text.replace(last, last + "".join(missing))
    quote = text.index('"""') + 3
    end = text.index('"""', quote)
    body = text[quote:end].rstrip()
    return f"{text[:quote]}{body}\n\n{HEAD}{''.join(missing)}{text[end:]}"


def rows_in(text: str) -> list[str]:
    """Return the rows of a table in a text."""
    return [line for line in text.splitlines() if line.startswith("| `")]


if __name__ == "__main__":
    for each in packages():
        new = mended(each)
        if new != (each / "__init__.py").read_text():
            (each / "__init__.py").write_text(new)
            print("mended", each.relative_to(SOURCE), file=sys.stderr)
