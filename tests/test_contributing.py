"""Examples in CONTRIBUTING.md run unchanged, and its layers are the contract."""

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
# Folders of the package find the files of the guide as if they lay in them.
CONFTEST = """
from importlib import import_module
from pathlib import Path

here = Path(__file__).parent
for folder in (path for path in here.glob("sklearn_pate/**") if path.is_dir()):
    name = ".".join(folder.relative_to(here).parts)
    if name != "sklearn_pate":
        import_module(name).__path__.append(str(folder))
"""


BLOCKS = re.findall(r"```python\n# (\S+)\n(.*?)```", GUIDE, flags=re.DOTALL)


def run_tests(folder, blocks, *options):
    """Run the blocks of the guide as files of a folder."""
    for name, code in blocks:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    (folder / "conftest.py").write_text(CONFTEST)
    # With the project's own settings: warnings are errors, docstrings are run.
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    return subprocess.run(
        [*pytest, "-c", ROOT / "pyproject.toml", "--rootdir", folder, folder],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.docs
def test_the_examples_of_the_guide_pass_their_tests(tmp_path):
    assert len(BLOCKS) == GUIDE.count("```python\n")
    done = run_tests(tmp_path, BLOCKS)
    assert done.returncode == 0, done.stdout + done.stderr
    for name, _ in BLOCKS:
        assert f"{Path(name).name} ." in done.stdout, f"{name} was not run"


@pytest.mark.docs
def test_the_examples_of_the_guide_pass_lint_and_types(tmp_path):
    for tool in ("ruff", "mypy"):
        if shutil.which(tool, path=Path(sys.executable).parent) is None:
            pytest.skip(f"{tool} is not installed")
    modules = []
    for name, code in BLOCKS:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
        modules += [path] if name.startswith("sklearn_pate") else []
    settings = ["--config", ROOT / "pyproject.toml"]
    # Tests have no docstrings, as tests/ has none.
    ruff = ["ruff", "check", *settings, "--extend-ignore", "D103,I001,INP001"]
    types = ["mypy", "--config-file", ROOT / "pyproject.toml", *modules]
    for command in (
        [*ruff, tmp_path],
        ["ruff", "format", "--check", *settings, tmp_path],
        types,
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_layers_are_those_that_lint_checks():
    table = GUIDE.partition("| layer | content |\n|---|---|\n")[2].partition("\n\n")[0]
    stated = [
        set(re.findall(r"`(\w+)`", line.split("|")[1])) for line in table.splitlines()
    ]
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / "setup.cfg")
    layers = contracts["importlinter:contract:layers"]["layers"].strip()
    checked = [
        set(re.findall(r"sklearn_pate\.(\w+)", line)) for line in layers.splitlines()
    ]
    assert stated == checked


@pytest.mark.thorough
def test_the_tests_of_the_guide_fail_for_a_mechanism_that_claims_half(tmp_path):
    right = "return pure_dp_curve(self.c, orders)"
    blocks = [
        (name, code.replace(right, f"{right} * 0.5"))
        for name, code in BLOCKS
        if "randomized" in name
    ]
    assert sum(right in code for _, code in blocks) == 1
    done = run_tests(tmp_path, blocks, "-k", "cost or audit")
    assert done.returncode == 1, done.stdout + done.stderr
    # Both of the enumeration, with two classes and with three, and the audit.
    assert "3 failed" in done.stdout


def test_the_guide_names_only_what_make_can_make():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([\w-]+):", makefile, flags=re.MULTILINE))
    named = re.findall(r"`make ([a-z][a-z -]*)`", GUIDE)
    assert named
    assert {one for words in named for one in words.split()} <= targets
