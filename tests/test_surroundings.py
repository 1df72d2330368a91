"""Tests that the files for containers, editors and hooks agree with the project."""

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_images_have_a_supported_python_version():
    """The Python versions of the images are in the classifiers of the project."""
    supported = {each.rpartition(" ")[2] for each in PROJECT["classifiers"] if "Python :: 3." in each}
    image = re.search(r"FROM \S+python:([\d.]+)-slim", (ROOT / "Containerfile").read_text())[1]
    devcontainer = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    assert {image, devcontainer["image"].rpartition(":")[2]} <= supported


def test_commands_of_images_and_hooks_exist():
    """The entry point of the image, the target of the devcontainer, and the programs and files of the hooks exist."""
    entry = json.loads(re.search(r"ENTRYPOINT (.+)", (ROOT / "Containerfile").read_text())[1])
    assert entry[0] in PROJECT["scripts"]
    devcontainer = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    target = devcontainer["postCreateCommand"].removeprefix("make .venv/")
    assert f"$(VENV)/{target}:" in (ROOT / "Makefile").read_text()
    hooks = re.findall(r"entry: (.+)", (ROOT / ".pre-commit-config.yaml").read_text())
    assert len(hooks) == 3
    for hook in hooks:
        words = hook.split()
        assert words[0] in (".venv/bin/ruff", ".venv/bin/python")
        assert all((ROOT / word).is_file() for word in words if word.startswith("tests/"))


def test_make_prints_a_line_before_a_silent_installation():
    """Installers print nothing for a while, so `make` prints a line first, and the README mentions the silence."""
    install = (ROOT / "Makefile").read_text().partition("$(STAMP): pyproject.toml\n")[2]
    assert install.startswith("\t@echo")
    assert "prints nothing" in (ROOT / "README.md").read_text()
