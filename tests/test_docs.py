"""Code of the user guide runs, and prints the output that its pages show.

The ``python`` and ``console`` blocks of a page run in order, in an empty folder. What
is to be printed is in a ``text`` block right behind the Python, and below the command
on the console, where three dots stand for the rest. Code that is only to be read (it
needs a cluster, say) is in a ``py`` block, and other commands are in a ``sh`` block.
"""

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from decimal import Decimal
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest

from sklearn_pate.learners import DPLogisticRegression
from tests.private import main

DOCS = Path(__file__).parent.parent / "docs"
WITHOUT_CODE = {DOCS / "guide" / "index.md"}
PAPERS = DOCS / "guide" / "papers.md"  # the only page that fetches data sets
GUIDE = sorted({*(DOCS / "guide").glob("*.md")} - WITHOUT_CODE - {PAPERS})
START = [DOCS / "index.md", DOCS / "getting-started.md", DOCS / "comparison.md"]
PAGES = [*START, *GUIDE]
BLOCK = re.compile(
    r"^```(?P<language>python|console)\n(?P<code>.*?)^```\n"
    r"(?:\n```text\n(?P<printed>.*?)^```\n)?",
    flags=re.DOTALL | re.MULTILINE,
)
COMMAND = "$ python -m sklearn_pate "
FINGERPRINT = "Fingerprint"
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def run_python(code, namespace, where):
    """Run Python, so that a traceback names the page and the line."""
    page, line = where
    exec(compile("\n" * line + code, page, "exec"), namespace)


def run_command(command):
    """Run a command of this package, in this process."""
    assert command.startswith(COMMAND), f"no command of this package: {command}"
    assert main(shlex.split(command.removeprefix(COMMAND))) == 0


def run_block(block, namespace, where):
    """Run a block; return what it should print, and what it did."""
    expected, printed = block["printed"] or "", io.StringIO()
    with contextlib.redirect_stdout(printed):
        if block["language"] == "python":
            run_python(block["code"], namespace, where)
        else:
            command, _, expected = block["code"].partition("\n")
            run_command(command.replace("$FINGERPRINT", namespace.get(FINGERPRINT, "")))
    if found := re.search(rf"^{FINGERPRINT}: (.*)$", printed.getvalue(), re.MULTILINE):
        namespace[FINGERPRINT] = found[1]  # which the sites read by phone
    return expected, printed.getvalue()


def assert_same(expected, printed):
    """Compare words, and numbers but for the last digit that is written."""
    expected, printed = expected.split(), printed.split()
    if expected[-1] == "...":
        expected, printed = expected[:-1], printed[: len(expected) - 1]
    expected, printed = " ".join(expected), " ".join(printed)
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", expected)
    numbers = zip(NUMBER.findall(printed), NUMBER.findall(expected), strict=True)
    for number, written in numbers:
        last_digit = Decimal(1).scaleb(Decimal(written).as_tuple().exponent)
        assert abs(Decimal(number) - Decimal(written)) <= last_digit


def assert_runs(page):
    """Run the blocks of a page in order, and compare what they print."""
    namespace = {"__name__": page.stem}
    text = page.read_text()
    blocks = [*BLOCK.finditer(text)]
    assert blocks
    for block in blocks:
        where = page, text.count("\n", 0, block.start("code"))
        expected, printed = run_block(block, namespace, where)
        if expected:
            assert_same(expected, printed)


@pytest.mark.docs
@pytest.mark.thorough  # its fits on whole data sets take minutes
def test_the_page_on_the_papers_runs_on_their_data(data_set, tmp_path, monkeypatch):
    for name in ("adult", "diabetes130", "mnist"):
        data_set(name)
    monkeypatch.setenv("SKLEARN_PATE_DATA", str(data_set.home))
    monkeypatch.chdir(tmp_path)
    assert_runs(PAPERS)


@pytest.mark.docs
@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in PAGES])
def test_a_page_of_the_guide_runs_and_prints_what_it_says(page, tmp_path, monkeypatch):
    if page.stem == "polars-arrow":
        pytest.importorskip("sklearn", "1.7")
    monkeypatch.chdir(tmp_path)
    assert_runs(page)


@pytest.mark.docs
def test_the_page_on_r_runs_where_r_and_reticulate_are_installed(tmp_path):
    if shutil.which("Rscript") is None:
        pytest.skip("no R")
    installed = ["Rscript", "-e", "quit(status = !requireNamespace('reticulate'))"]
    if subprocess.run(installed, capture_output=True, check=False).returncode != 0:
        pytest.skip("no reticulate")
    page = (DOCS / "guide" / "from-r.md").read_text()
    code = re.findall(r"^```r\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "page.R").write_text("\n".join(code))
    python = {
        "RETICULATE_PYTHON": sys.executable,
        "PYTHONPATH": str(DOCS.parent),
    }
    run = subprocess.run(
        ["Rscript", "page.R"],
        cwd=tmp_path,
        env=os.environ | python,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "PrivacySpent(epsilon=1.000, delta=1e-05)\n[1] TRUE" in run.stdout


@pytest.mark.thorough
def test_pictures_of_the_guide_are_those_that_the_script_draws():
    pictures = runpy.run_path(str(DOCS / "guide_pictures.py"))["pictures"]()
    for name, picture in pictures.items():
        assert (DOCS / "_static" / f"{name}.svg").read_text() == picture


def n_syllables(word):
    """Count groups of vowels, without a silent e; five for a number."""
    if word.isdigit():
        return 5
    groups = re.findall(r"[aeiouy]+", re.sub(r"(?<=[^aeiouyl])e$", "", word.lower()))
    return max(1, len(groups))


def test_patients_understand_the_sentences_of_a_consent_form():
    """Flesch reading ease of at least 60, which is plain English."""
    page = (DOCS / "guide" / "signing.md").read_text()
    shown = page.partition("Three sentences for a consent form")[2]
    text = re.search(r"```text\n(.*?)```", shown, re.DOTALL)[1]
    sentences = text.strip().splitlines()
    words = [re.findall(r"\w+", sentence) for sentence in sentences]
    assert len(sentences) == text.count(".") == 3
    assert max(map(len, words)) <= 20
    n_words = sum(map(len, words))
    syllables = sum(n_syllables(word) for sentence in words for word in sentence)
    ease = 206.835 - 1.015 * n_words / len(sentences) - 84.6 * syllables / n_words
    assert ease >= 60


@pytest.mark.parametrize("kind", ["Lemma", "Theorem"])
def test_every_numbered_result_has_one_proof_and_a_link_on_the_page_that_code_cites(
    kind,
):
    summary = (DOCS / "accounting.md").read_text()
    numbers = []
    for page in (DOCS / "proofs").glob("*.md"):
        found = re.findall(rf"^### {kind} (\d+): ", page.read_text(), re.MULTILINE)
        numbers += map(int, found)
        for number in found:
            assert f"(proofs/{page.name}#{kind.lower()}-{number}-" in summary
    assert sorted(numbers) == [*range(1, len(numbers) + 1)]
    assert numbers


def test_the_names_for_other_tools_are_those_of_a_statement():
    """The table of the page, which promises that they stay."""
    page = (DOCS / "comparison.md").read_text()
    table = page.partition("| name of `model.privacy_spent_` |")[2].partition("\n\n")[0]
    firsts = "".join(line.split("|")[1] for line in table.splitlines()[2:])
    names = re.findall(r"`([a-z_.]+)(?:\(\))?`", firsts)
    assert {"epsilon", "curve.values", "profile.deltas", "to_dict"} <= set(names)
    spent = DPLogisticRegression(
        epsilon=1, feature_bounds=(0, 1), classes=[0, 1]
    ).plan_privacy([[0.0], [1.0]], [0, 1])
    for name in names:
        attrgetter(name)(spent)
    for name in ("curve.orders", "curve.values", "profile.epsilons", "profile.deltas"):
        assert attrgetter(name)(spent).dtype == np.float64
    for name in ("epsilon", "delta", "curve.pure_epsilon"):
        assert isinstance(attrgetter(name)(spent), float)
