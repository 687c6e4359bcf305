"""Metadata of the project agree in all files."""

import importlib.metadata
import re
import runpy
import tomllib
from pathlib import Path

import pytest
import yaml

import sklearn_pate

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def pinned(name):
    """Versions by package in a file of constraints."""
    return dict(re.findall(r"^(\S+)==(\S+)$", (ROOT / name).read_text(), re.MULTILINE))


def read(name):
    return yaml.safe_load((ROOT / name).read_text())


def test_the_version_is_the_same_everywhere():
    version = sklearn_pate.__version__
    installed = importlib.metadata.version("sklearn-pate")
    assert installed == version, "install again: make .venv/test"
    assert read("CITATION.cff")["version"] == version


def test_a_release_finds_the_version_and_its_section_in_the_changelog(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / ".ci")
    release = runpy.run_path(str(ROOT / ".ci" / "release.py"))
    for name in release["VERSIONED"]:
        [(_, version, _)] = re.findall(release["LINE"], (ROOT / name).read_text())
        assert version == sklearn_pate.__version__
    number, is_dev, _ = version.partition(".dev")
    date = r"unreleased" if is_dev else r"\d{4}-\d\d-\d\d"
    _, first = (ROOT / "CHANGELOG.md").read_text().split("\n## ", 1)
    assert re.match(rf"{re.escape(number)} \({date}\)\n", first)


def test_every_file_of_the_package_is_distributed():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    package = ROOT / "sklearn_pate"
    patterns = ["**/*.py", *config["package-data"]["sklearn_pate"]]
    distributed = {path for pattern in patterns for path in package.glob(pattern)}
    files = {path for path in package.rglob("*") if path.is_file()}
    assert {path for path in files if "__pycache__" not in path.parts} == distributed


def test_the_licence_is_the_same_everywhere():
    licence = importlib.metadata.metadata("sklearn-pate")["License-Expression"]
    assert read("CITATION.cff")["license"] == licence
    name, clause, _ = licence.split("-")
    heading = (ROOT / "LICENSE").read_text().splitlines()[0]
    assert heading == f"{name} {clause}-Clause License"


def test_the_oldest_python_that_is_listed_is_the_oldest_that_is_required():
    listed = re.findall(r"Python :: (3\.\d+)'", str(PROJECT["classifiers"]))
    assert PROJECT["requires-python"] == f">={listed[0]}"


def test_the_oldest_versions_that_are_allowed_are_those_that_are_tested():
    extras = PROJECT["optional-dependencies"]
    runtime = ("deep", "data", "plot", "distributed", "publish", "dpsgd", "sites")
    allowed = PROJECT["dependencies"] + [
        one for name in runtime for one in extras[name]
    ]
    oldest = pinned("constraints-oldest.txt")
    for requirement in allowed:
        name, _, version = requirement.partition(">=")
        if not name.startswith("sklearn-pate["):
            assert oldest[name.partition("[")[0]] == version, requirement


def test_the_conda_recipe_requires_what_the_package_requires():
    text = (ROOT / "recipe" / "recipe.yaml").read_text()
    python = yaml.safe_load(text)["context"]["python_min"]
    recipe = yaml.safe_load(text.replace("${{ python_min }}", python))
    assert recipe["context"]["version"] == sklearn_pate.__version__
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]
    needed = {
        "host": [f"python{python}.*", "pip", *build["requires"]],
        "run": [f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]],
    }
    stated = {
        name: [line.replace(" ", "", 1) for line in lines]
        for name, lines in recipe["requirements"].items()
    }
    assert stated == needed
    [command] = PROJECT["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [" = ".join(command)]


def test_workflows_run_what_exists_on_every_python_that_is_listed():
    jobs = read(".github/workflows/tests.yml")["jobs"].values()
    commands = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    run = {
        word
        for line in commands
        if line[:5] == "make "
        for word in line.split()[1:]
        if "=" not in word  # a variable
    }
    makefile = (ROOT / "Makefile").read_text()
    assert run
    assert run <= set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    [matrix] = [job["strategy"]["matrix"] for job in jobs if "strategy" in job]
    listed = re.findall(r"Python :: (3\.\d+)'", str(PROJECT["classifiers"]))
    assert matrix["python"] == listed
    used = [
        step["with"]["python-version"]
        for job in jobs
        for step in job["steps"]
        if "python-version" in step.get("with", {})
    ]
    assert set(used) - {"${{ matrix.python }}"} == {listed[0]}


def test_commits_are_checked_by_the_versions_that_lint_uses():
    tools = {"ruff-pre-commit": "ruff", "numpydoc": "numpydoc"}
    checked = {
        name: repository["rev"].removeprefix("v")
        for repository in read(".pre-commit-config.yaml")["repos"]
        if (name := tools.get(Path(repository["repo"]).name))
    }
    newest = pinned("constraints.txt")
    assert checked == {name: newest[name] for name in tools.values()}


@pytest.mark.parametrize("form", ["bug", "feature", "privacy_fault"])
def test_every_form_warns_of_what_must_not_be_posted(form):
    first, *_ = read(f".github/ISSUE_TEMPLATE/{form}.yml")["body"]
    warning = first["attributes"]["value"]
    for sensitive in ("rows", "votes", "`privacy_analysis_`", "ledger", "key"):
        assert sensitive in warning
