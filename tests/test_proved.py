"""Tests that all sentences quoted in the tables of proofs are on the pages, and that all named objects exist."""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "privacy"
TABLE = PAGES / "proved.md"
KINDS = ("machine", "certificate", "hand", "searched", "assumed")


def plain(text):
    """Return text on one line, without comments and with unescaped bars."""
    return " ".join(re.sub(r"<!--.*?-->", "", text).replace("\\|", "|").split())


def rows():
    """Return the sentence, the kind of proof and the names of proofs in every row."""
    found = re.findall(r'^\| "(.*)" \| (\w+) \|(.*) \|$', TABLE.read_text("utf-8"), re.MULTILINE)
    return [(plain(sentence), kind, by) for sentence, kind, by in found]


def missing(sentences):
    """Return the sentences that no page contains."""
    pages = [plain(page.read_text("utf-8")) for page in PAGES.glob("*.md") if page != TABLE]
    return [sentence for sentence in sentences if not any(sentence in page for page in pages)]


def test_every_row_of_the_table_is_read():
    text = TABLE.read_text("utf-8")
    assert len(rows()) == sum(line.startswith('| "') for line in text.splitlines()) > 120


def test_sentences_in_the_table_are_on_the_pages():
    assert not missing([sentence for sentence, _, _ in rows()])


def test_the_names_in_the_table_exist():
    theorems = {
        f"{file.stem}.{name}"
        for file in (ROOT / "proofs").glob("*.v")
        for name in re.findall(r"^(?:Theorem|Lemma) (\w+)", file.read_text("utf-8"), re.MULTILINE)
    }
    code = {
        f"{file.stem}.{name}"
        for file in (ROOT / "checker" / "src" / "voxpop_check").glob("*.py")
        for name in re.findall(r"^def (\w+)", file.read_text("utf-8"), re.MULTILINE)
    }
    for sentence, kind, by in rows():
        assert kind in KINDS, sentence
        names = re.findall(r"`([^`]+)`", by)
        assert kind not in ("machine", "searched") or names, sentence
        for name in names:
            known = (ROOT / name).exists() or (ROOT / "src" / "voxpop" / name).exists()
            assert known or name in theorems | code or any(each.startswith(f"{name}.") for each in code), name
        if kind == "machine":
            assert names[0] in theorems, sentence


def test_the_theorems_in_the_readme_exist():
    readme = (ROOT / "proofs" / "README.md").read_text("utf-8")
    for line in readme.splitlines():
        if line.startswith("| `"):
            names = re.findall(r"`([\w.]+)`", line.split("|")[1])
            file = names[0].split(".")[0]
            text = (ROOT / "proofs" / f"{file}.v").read_text("utf-8")
            for name in names:
                assert re.search(rf"^(Theorem|Lemma) {name.split('.')[-1]}\b", text, re.MULTILINE), name


def test_quotations_in_the_readme_are_on_the_pages():
    table = [line for line in (ROOT / "proofs" / "README.md").read_text("utf-8").splitlines() if line.startswith("| `")]
    quoted = re.findall('"(.*?)"', "\n".join(table))
    assert len(quoted) > 15
    assert not missing(quoted)


PAGES_ABOUT_PROOFS = (
    "README.md",
    *(f"docs/{name}.md" for name in ("index", "faq", "sharp-edges", "trust", "privacy/README")),
)


def test_texts_about_proofs_link_to_the_table_of_proofs():
    """Pages, reports and records that mention proofs link to the table, which lists the kind of each proof."""
    template = ROOT / "src" / "voxpop" / "release" / "report" / "template"
    files = [*(ROOT / name for name in PAGES_ABOUT_PROOFS), template / "signing.html", template / "page.html"]
    for file in [*files, ROOT / "src" / "voxpop" / "exports" / "records.py"]:
        text = " ".join(file.read_text("utf-8").split())
        near = [text[max(0, found.start() - 300) : found.end() + 300] for found in re.finditer("audited outside", text)]
        assert any("roof" in each and "proved.md" in each for each in near), file.name


def test_the_table_has_the_number_of_claims_of_each_kind():
    counted = Counter(kind for _, kind, _ in rows())
    stated = dict(re.findall(r"^\| (\w+) \| (\d+) \|", TABLE.read_text("utf-8"), re.MULTILINE))
    assert stated == {kind: str(counted[kind]) for kind in KINDS}
