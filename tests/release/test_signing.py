"""Tests of signatures and digests of folders, and of removing names from releases."""

import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import voxpop as vp
from voxpop.cli import main
from voxpop.errors import InputError, ReleaseError, SourceError
from voxpop.release.table import names_of_persons
from voxpop.release.verifying import check_signature, sign, verify

needs_ssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
BUDGET = vp.Budget(4, 1e-7)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with a release of phrases and its counts."""
    home = tmp_path_factory.mktemp("signed")
    said = pl.DataFrame({"who": range(3000), "what": ["Thank you, Ann Lee", "see @bob soon", "Ann's tea"] * 1000})
    posts = vp.read(said, user="who", text="what", tokenizer="whitespace")
    vp.NGrams(max_length=2, max_phrases_per_user=20).release(posts, BUDGET).save(home / "phrases")
    return home / "phrases"


@pytest.fixture
def folder(made, tmp_path):
    shutil.copytree(made, tmp_path / "phrases")
    return tmp_path / "phrases"


@pytest.fixture
def key(tmp_path):
    """Return the path of an SSH key. A file of permitted signers is in the same folder."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    kind, text = (tmp_path / "key.pub").read_text().split()[:2]
    (tmp_path / "signers").write_text(f"ann@example.org {kind} {text}\n")
    return tmp_path / "key"


@needs_ssh
def test_a_signed_folder_is_verified(folder, key, tmp_path, capsys):
    """`voxpop verify` and ssh-keygen confirm the signature of the folder."""
    assert main(["sign", str(folder), "--key", str(key)]) == 0
    signature, signers = tmp_path / "phrases.sig", tmp_path / "signers"
    call = ["verify", str(folder), "--signature", str(signature), "--signers", str(signers), "--identity"]
    assert main([*call, "ann@example.org"]) == 0
    assert "Signed by ann@example.org" in capsys.readouterr().out
    own = [
        "ssh-keygen",
        "-Y",
        "verify",
        "-f",
        signers,
        "-I",
        "ann@example.org",
        "-n",
        "voxpop-release",
        "-s",
        signature,
    ]
    with (folder / "SHA256SUMS").open("rb") as file:
        assert subprocess.run(own, stdin=file, check=False, capture_output=True).returncode == 0
    assert main([*call, "bob@example.org"]) == 2
    assert "is not a signature of bob@example.org" in capsys.readouterr().err


@needs_ssh
@pytest.mark.parametrize("harm", ["metadata", "another key", "another file"])
def test_signatures_by_other_keys_or_for_other_contents_are_rejected(folder, key, tmp_path, harm):
    """Signatures are rejected if the folder was saved again, or if they are from another key or for another file."""
    signature, signers = tmp_path / "phrases.sig", tmp_path / "signers"
    sign(folder, key, signature)
    check_signature(folder, signature, signers, "ann@example.org")
    if harm == "metadata":
        vp.load(folder).with_metadata(title="Other").save(folder)
        verify(folder)
    elif harm == "another key":
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True)
        signature.unlink()
        sign(folder, tmp_path / "other", signature)
    else:
        signature.unlink()
        sign(tmp_path / "signers", key, signature)
    with pytest.raises(ReleaseError, match="is not a signature of ann"):
        check_signature(folder, signature, signers, "ann@example.org")


@needs_ssh
def test_only_whole_folders_are_signed(folder, key, tmp_path):
    """A changed folder, a missing key and an existing signature raise errors."""
    with pytest.raises(ReleaseError, match="was not signed"):
        sign(folder, tmp_path / "nowhere", tmp_path / "new.sig")
    with pytest.raises(ReleaseError, match="was not signed"):
        sign(tmp_path / "nowhere", key, tmp_path / "new.sig")
    (tmp_path / "old.sig").touch()
    with pytest.raises(ReleaseError, match=r"old\.sig already exists\. Give --output"):
        sign(folder, key, tmp_path / "old.sig")
    (folder / "notes.txt").touch()
    with pytest.raises(ReleaseError, match="was added"):
        sign(folder, key, tmp_path / "new.sig")
    assert not (tmp_path / "new.sig").exists()


@needs_ssh
def test_only_a_signed_job_runs(key, tmp_path, monkeypatch, capsys):
    """A job runs with a signature of its file. A changed job is rejected, and so is an override."""
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"who": range(400), "what": "tea"}).write_parquet("t.parquet")
    job = 'command="items"\nsource="t.parquet"\noutput="words"\ntable={user="who",items="what"}\n'
    Path("job.toml").write_text(f"{job}mechanism={{max_items_per_user=1}}\nbudget={{epsilon=1,delta=1e-8}}\n")
    assert main(["sign", "job.toml", "--key", str(key)]) == 0
    call = ["run", "job.toml", "--signature", "job.toml.sig", "--signers", "signers"]
    assert main(call) == 2
    assert "Give all of them or none" in capsys.readouterr().err
    call += ["--identity", "ann@example.org"]
    assert main([*call, "--set", "budget.epsilon=2"]) == 2
    assert "does not cover --set" in capsys.readouterr().err
    assert main(call) == 0
    Path("job.toml").write_text(f"{job}mechanism={{max_items_per_user=1}}\nbudget={{epsilon=2,delta=1e-8}}\n")
    assert main([*call, "--dry-run"]) == 2
    assert "is not a signature of ann" in capsys.readouterr().err


def test_signatures_without_ssh_are_reported(folder, tmp_path, monkeypatch):
    """The message names the missing program or package."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReleaseError, match="Install OpenSSH"):
        sign(folder, tmp_path / "key", tmp_path / "new.sig")


def test_a_digest_depends_on_the_folder(folder, capsys):
    """A digest that differs from that of the folder is an error. The options for a signature must be given together."""
    digest = verify(folder)["digest"]
    assert main(["verify", str(folder), "--digest", digest]) == 0
    vp.load(folder).with_metadata(title="Other").save(folder)
    assert main(["verify", str(folder), "--digest", digest]) == 2
    assert "another digest was signed" in capsys.readouterr().err
    assert main(["verify", str(folder), "--signature", "x.sig"]) == 2
    assert main(["verify", str(folder), "--identity", "ann"]) == 2


def test_phrases_with_names_are_removed(made, tmp_path):
    """Phrases with a listed word in any case, with several listed words in a row, or with "@" are removed."""
    phrases = vp.load(made, vp.Release)
    assert {("Ann", "Lee"), ("see", "@bob"), ("Ann's", "tea")} <= set(phrases)
    clean = phrases.without(["ANN", "thank you,"], mentions=True)
    texts = [" ".join(gram) for gram in clean]
    assert {"Lee", "you,", "Thank", "tea", "see", "soon"} <= set(texts)
    assert not any("@" in text or "Thank you," in text or "Ann" in text for text in texts)
    assert clean.guarantee == phrases.guarantee
    clean.save(tmp_path / "clean")
    assert len(verify(tmp_path / "clean")["results"]) == 1
    assert vp.load(tmp_path / "clean").id != phrases.id


def test_names_are_removed_from_the_values_of_keys():
    """Values of columns are compared as texts, separately for each column."""
    table = pl.DataFrame({"who": range(3000), "name": ["ann", "tea|x", "milk"] * 1000, "size": 7})
    keys = vp.Items(max_items_per_user=1).release(vp.read(table, user="who", items=["name", "size"]), BUDGET)
    assert keys.without(["Ann", "tea|x"]).to_list() == [("milk", 7)]
    assert keys.without(["7"]).to_list() == []


def test_names_are_given_as_a_list_or_a_file(tmp_path):
    """A file contains one word per line."""
    plan, guarantee = vp.Items().plan(BUDGET), vp.Guarantee(4, 1e-7)
    words = vp.Release.from_items(pa.array(["ann", "bob", "tea"]), plan, guarantee, "words")
    (tmp_path / "names.txt").write_text("\ufeffAnn\n\nBOB \n")
    assert words.without(tmp_path / "names.txt").to_list() == ["tea"]
    assert words.without().to_list() == ["ann", "bob", "tea"]
    with pytest.raises(SourceError, match="one word per line"):
        words.without(tmp_path / "nowhere")
    for wrong in ([1], 7, b"ann"):
        with pytest.raises(InputError, match="must be strings"):
            words.without(wrong)


NAMES = ["Abigail", "may", "miller's", "miller’s", "tea", "ольга", "van der ven"]


def test_names_of_public_lists_are_removed():
    """Names of the given locales are removed, with or without 's, except for words to keep. Other words remain."""
    pytest.importorskip("faker", reason="faker is not installed: pip install voxpop[names]")
    items = pa.array(sorted(NAMES, key=str.encode))
    words = vp.Release.from_items(items, vp.Items().plan(BUDGET), vp.Guarantee(4, 1e-7), "items")
    found = {locale: set(words.without(names=locale)) for locale in ("en_US", "ru_RU", "nl_NL", "es_ES")}
    assert found["en_US"] == {"tea", "ольга", "van der ven"}
    assert "ольга" not in found["ru_RU"]
    assert "van der ven" not in found["nl_NL"]
    assert words.without(names=["en_US", "ru_RU"], keep=["MILLER", "may"], mentions=True).to_list() == [
        "may", "miller's", "miller’s", "tea", "van der ven"
    ]  # fmt: skip
    for wrong in ("es", "xx_XX", "", ["en_US", "../x"]):
        with pytest.raises(InputError, match=r"Choose from .*en_US"):
            words.without(names=wrong)


def test_names_of_every_locale_are_read():
    """Each supported locale has names, without the patterns that Faker uses to combine names."""
    person = pytest.importorskip("faker.providers.person", reason="faker is not installed")
    empty = []
    for each in pkgutil.iter_modules(person.__path__):
        try:
            names = names_of_persons(each.name)
        except InputError:
            empty.append(each.name)
        else:
            assert len(names) > 40
            assert not any("{{" in name for name in names)
    assert empty == ["es"]


def test_a_missing_faker_is_reported(monkeypatch):
    """The message names the missing program or package."""
    monkeypatch.setitem(sys.modules, "faker.providers.person", None)
    words = vp.Release.from_items(pa.array(["tea"]), vp.Items().plan(BUDGET), vp.Guarantee(4, 1e-7))
    with pytest.raises(InputError, match="pip install faker"):
        words.without(names="en_US")


@pytest.mark.parametrize("mechanism", [vp.Items(max_items_per_user=20), vp.NGrams(max_length=2)])
def test_mentions_cannot_be_removed_if_the_tokenizer_removed_the_mark(mechanism):
    """The default tokenizer reduces "@bob" to "bob", so a filter for mentions would not find any."""
    said = pl.DataFrame({"who": range(3000), "what": ["see @bob soon"] * 3000})
    words = mechanism.release(vp.read(said, user="who", text="what"), BUDGET)
    assert "bob" in words
    with pytest.raises(InputError, match="Remove such names from the texts before the release"):
        words.without(mentions=True)
    whole = mechanism.release(vp.read(said, user="who", text="what", tokenizer="whitespace"), BUDGET)
    assert "@bob" in whole
    assert "@bob" not in whole.without(mentions=True)


def test_the_command_block_saves_a_copy_without_names(made, tmp_path, monkeypatch, capsys):
    """The command prints the number of removed grams."""
    monkeypatch.chdir(tmp_path)
    assert main(["block", str(made), "--mentions", "-o", "clean"]) == 0
    assert "Removed 3 grams of" in capsys.readouterr().out
    assert main(["block", str(made), "-o", "other"]) == 2
    assert "nothing to remove" in capsys.readouterr().err
    (tmp_path / "names.txt").write_text("ann\ntea\n")
    (tmp_path / "keep.txt").write_text("Tea")
    assert main(["block", str(made), "--list", "names.txt", "--keep", "keep.txt", "-o", "third", "--first", "1"]) == 0
    shown = capsys.readouterr().out
    assert "\n  Ann, ...\n" in shown
    assert {("tea",), ("Lee",)} <= set(vp.load("third"))
    pytest.importorskip("faker", reason="faker is not installed: pip install voxpop[names]")
    assert main(["block", str(made), "--names", "en_US", "--names", "en_GB", "-o", "fourth"]) == 0
    assert "Ann Lee" in capsys.readouterr().out
    assert ("Lee",) not in vp.load("fourth")


def test_the_faq_answers_fifteen_questions():
    """Each heading of docs/faq.md is a question with an answer of more than 25 words."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "faq.md").read_text(encoding="utf-8")
    _, *answers = page.split("\n## ")
    assert len(answers) == 15
    for each in answers:
        question, answer = each.split("\n", 1)
        assert question.endswith("?")
        assert len(answer.split()) > 25, question


def test_a_report_requests_a_check_of_names(made):
    """The section for the signature contains a statement that names were checked."""
    page = (made / "report.html").read_text()
    assert "Names were checked." in page
    assert "in a million of those" not in page
