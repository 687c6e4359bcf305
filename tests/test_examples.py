"""The examples run, print the expected text, and draw."""

import re
import runpy
import sys
import textwrap
from pathlib import Path

import pytest

from tests.private import main

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parent.parent / "examples"
GALLERY = sorted(path.stem for path in EXAMPLES.glob("plot_*.py"))
SITE = Path(__file__).parent.parent / "docs" / "auto_examples"
PRINTED = re.compile(
    r"^\.\. rst-class:: sphx-glr-script-out\n\n \.\. code-block:: none\n\n"
    r"((?:    .*\n|\n)+)",
    flags=re.MULTILINE,
)

# Output of gallery scripts that does not depend on the noise.
EXPECTED = {
    "plot_active_queries": [
        "The statement is the same for all strategies: True.",
        "Strategies that adapt to answers: uncertainty, experts.",
        "80 interactive queries\nPrivacySpent(epsilon=3.487",
    ],
    "plot_first_fit": [
        "This fit is (epsilon=1.000",
        "The mean score model of 424 teachers",
        "'relation': 'replace-one'",
    ],
    "plot_five_hospitals": [
        "1.29 times that of a fit on all rows in one place",
        "(not counted: 2)",
        "Add or remove one group",
        "epsilon 1: 0.",
    ],
    "plot_from_the_papers": [
        "LNMax, middle scale: 0.",
        "of labels right, epsilon 4.98 for all votes",
        "max_answers=None: epsilon ",
    ],
    "plot_groups": [
        "A split of patients has 0.",
        "privacy_unit='group'",
        "group: neighbouring data sets add or remove one group",
    ],
    "plot_hospital_stays": [
        "R2 0.",
        "concordance 0.6",
        "True",
        "delirium [",
        "r2 ",
        "covered",
        "PrivacySpent(epsilon=1.466",
    ],
    "plot_hand_over": [
        "A first fit at epsilon 4: 34% of the budget is spent.",
        "The same fit again gets the same answers: 34%.",
        "31.85% is left",
        "epsilon=3.85 would fit this budget.",
        "in 2 entries",
        "This fit is (epsilon=4.000",
    ],
    "plot_methods_of_parties": [
        "five methods in turn 83.",
        "minus nearest neighbours  -2.",
        "minus average of these    +0.",
    ],
    "plot_pipeline_and_grid_search": [
        "standardscaler (StandardScaler) is fitted on private rows",
        "scaler inside:\n  no leak",
        "10 fits, each of epsilon 4.00",
    ],
    "plot_private_metrics": [
        "PrivacySpent(epsilon=0.500",
        ", without privacy 0.",
        "of readmissions are found",
    ],
    "plot_private_search": [
        "GridSearchCV: 26 fits cost",
        "n_trials_distribution='logarithmic': planned PrivacySpent(epsilon=3.",
        "n_trials_distribution='disjoint': planned PrivacySpent(epsilon=2.000",
    ],
    "plot_teachers_vote": ["This fit is (epsilon=4.000", "60 queries to 100 teachers"],
    "plot_texts": [
        "fitted on private notes: 4000 names of patients",
        "fitted on public notes: 0 names of patients",
    ],
}


def test_expected_texts_are_those_of_gallery_scripts():
    assert set(EXPECTED) <= set(GALLERY)


@pytest.mark.docs
@pytest.mark.parametrize("name", GALLERY)
def test_a_gallery_script_printed_the_expected_text_and_drew(name):
    """What sphinx-gallery ran and stored: `make docs` builds the site first."""
    page = (SITE / f"{name}.rst").read_text(encoding="utf-8")
    printed = "\n".join(map(textwrap.dedent, PRINTED.findall(page)))
    for text in EXPECTED.get(name, []):
        assert text in printed
    # Of data that are small, noisy or fitted twice on purpose.
    warned = set(re.findall(r"(\w+Warning): (?!2 fits of the same)", printed))
    assert warned <= {"PrivacyUtilityWarning", "PublicDataWarning"}
    assert list((SITE / "images").glob(f"sphx_glr_{name}_*.png"))


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    def run(name, option="--picture", picture="picture.png", **smaller):
        picture = tmp_path / picture
        into = picture if option == "--picture" else picture.parent
        monkeypatch.setattr(sys, "argv", [name, option, str(into)])
        monkeypatch.setenv("MPLBACKEND", "agg")
        main = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]
        for constant, value in smaller.items():
            monkeypatch.setitem(main.__globals__, constant, value)
        main()
        assert picture.stat().st_size > 5000
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("times", [1, 2])
def test_quickstart(run, tmp_path, times):
    if times == 2:
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "report.html").write_text("of an earlier demo")
    printed = run(
        "quickstart",
        "--folder",
        "new/accuracy.png",
        N_PRIVATE=1500,
        N_PUBLIC=300,
        N_TEST=300,
        N_TEACHERS=20,
        N_QUERIES=100,
        N_RELEASES=2,
    )
    assert "epsilon=1.000" in printed
    for name in ("no privacy", "DPNewton", "PATE, 20 teachers vote"):
        assert re.search(rf"{name}.* +\d+\.\d%", printed)
    assert str(tmp_path / "new") in printed
    report = (tmp_path / "new" / "report.html").read_text(encoding="utf-8")
    assert "1.000" in report
    own = [line for line in printed.splitlines() if "/" not in line]
    assert max(map(len, own)) <= 80


def test_the_command_after_the_quickstart_works(capsys):
    source = (EXAMPLES / "quickstart.py").read_text(encoding="utf-8")
    (command,) = re.findall(r"-m sklearn_pate (.*)\"\)", source)
    assert main(command.split()) == 0
    assert "epsilon     1.000, at delta" in capsys.readouterr().out


@pytest.mark.thorough
def test_mnist_pate_g(run, data_set, monkeypatch):
    data_set("mnist")
    monkeypatch.setenv("SKLEARN_PATE_DATA", str(data_set.home))
    printed = run(
        "mnist_pate_g",
        N_PRIVATE=3000,
        N_PUBLIC=500,
        N_TEACHERS=25,
        N_QUERIES=20,
        N_EPOCHS=1,
    )
    assert "20 queries to 25 teachers were answered by LNMax(gamma=0.05)" in printed
    assert "the paper's bound at these votes: sensitive" in printed
    assert "the student of all public images" in printed
