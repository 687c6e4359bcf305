"""Mistakes in tables, options and files that a command must not pass over."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sklearn_pate import DPNewtonClassifier, PATEClassifier, PrivacyLedger, PublicData
from sklearn_pate.distributed import Study
from sklearn_pate.metrics import PrivateMetrics
from tests.private import INTERRUPTED, main

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn_pate.PrivacyUtilityWarning"),
]

CODES = ["05", "3A", "NA", "True"]


def table(n_rows, seed):
    """Rows whose class follows from a code that could be read as a number."""
    rng = np.random.default_rng(seed)
    ward = rng.choice(CODES, n_rows)
    return pd.DataFrame(
        {
            "patient": [f"p{number}" for number in range(n_rows)],
            "age": rng.normal(60, 10, n_rows).round(),
            "ward": ward,
            "y": np.where(np.isin(ward, ["05", "NA"]), "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folder with two models, and rows to measure them on."""
    folder = tmp_path_factory.mktemp("codes")
    rows, public = table(900, 0), table(300, 1)[["age", "ward"]]
    for name, more in (("rows", {}), ("groups", {"groups": rows["patient"]})):
        unit = {"privacy_unit": "group", "n_groups": 900} if more else {}
        clf = DPNewtonClassifier(
            classes=["no", "yes"], epsilon=8.0, random_state=0, **unit
        )
        clf.fit(rows[["age", "ward"]], rows["y"], X_public=PublicData(public), **more)
        clf.publish().save(folder / f"of_{name}.skops")
    table(400, 2).to_csv(folder / "rows.csv", index=False)
    public.to_csv(folder / "public.csv", index=False)
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    for path in made.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    PrivacyLedger("ledger.sqlite", epsilon=100, delta=1e-4)
    return tmp_path


MEASURE = ["measure", "of_rows.skops", "rows.csv", "--label", "y", "--epsilon", "5"]
MEASURE += ["--ledger", "ledger.sqlite"]
STUDY = ["study", "--public", "public.csv", "--sites", "north,south"]


def refused(capsys, arguments):
    """Run a command that is refused without a charge, and return the reason."""
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert PrivacyLedger("ledger.sqlite").entries() == []
    return " ".join(capsys.readouterr().err.split())


def test_codes_of_a_column_of_text_are_no_numbers(folder):
    assert main([*MEASURE, "-o", "metrics.json"]) == 0
    assert PrivateMetrics.load("metrics.json")["balanced_accuracy"].value > 0.95


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--label", "ward"], "Column 'ward' is a feature"),
        (["--group", "age"], "Column 'age' is a feature"),
        (["--group", "y"], "Two options name column 'y'"),
        (["--label", "patient"], "No label in column 'patient' of rows.csv is one of"),
        (["-o", "of_rows.json", "--overwrite"], "of_rows.json is a file that this"),
        (["-o", "rows.csv", "--overwrite"], "rows.csv is a file that this command"),
        (["-o", "somewhere", "--overwrite"], "somewhere is a folder"),
    ],
)
def test_columns_and_outputs_that_cannot_be_meant_are_refused(
    folder, capsys, options, message
):
    Path("somewhere").mkdir()
    before = Path("rows.csv").read_bytes()
    assert message in refused(capsys, [*MEASURE, *options])
    assert Path("rows.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("patient,age,ward,y,y\np,1,05,no,yes\n", "names column 'y' twice"),
        (",patient,age,ward,y\n0,p,1,05,no\n", "has a column without a name"),
        ("patient;age;ward;y\np;1,5;05;no\n", "is separated by semicolons"),
        ("patient,age,ward,y\n", "rows.csv has no rows"),
        ("patient,age,ward,y\np,1,K\xf6,no\n", "is not in UTF-8; save it in UTF-8"),
    ],
)
def test_tables_that_would_be_misread_are_refused(folder, capsys, content, message):
    Path("rows.csv").write_bytes(content.encode("latin-1"))
    assert message in refused(capsys, MEASURE)


def test_a_missing_table_is_named(folder, capsys):
    Path("rows.csv").unlink()
    assert "rows.csv is not a file; correct the path" in refused(capsys, MEASURE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--estimator", "of_groups.skops", "--rows", "9"], "leave --rows out"),
        (["--estimator", "of_rows.skops", "--rows", "9", "--seed", "1"], "--seed is"),
        (["--classes", "no,yes", "--teachers", "5", "--epsilon", "2"], "--epsilon is"),
        (["--classes", "no,yes,", "--teachers", "5"], "'no,yes,' has nothing before"),
    ],
)
def test_a_study_refuses_what_it_would_not_use(folder, capsys, options, message):
    assert message in refused(capsys, [*STUDY, *options])
    assert not Path("study.json").exists()


ESTIMATOR = """\
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_pate import PATEClassifier


class Own(LogisticRegression):
    pass


estimator = PATEClassifier(
    LogisticRegression(),
    student={student},
    mechanism="histogram",
    n_teachers=20,
    n_queries=20,
    classes=["no", "yes"],
    privacy_unit="group",
    random_state=0,
)
"""


@pytest.mark.parametrize(
    ("student", "name"),
    [
        ("Own()", "Own"),
        (
            "make_pipeline(FunctionTransformer(lambda X: X), LogisticRegression())",
            "<lambda>",
        ),
    ],
)
def test_a_student_that_could_not_be_saved_is_refused(folder, capsys, student, name):
    Path("estimator.py").write_text(ESTIMATOR.format(student=student))
    message = refused(capsys, [*STUDY, "--estimator", "estimator.py"])
    assert f"The student in estimator.py has {name}" in message
    assert "which this file defines" in message


def test_an_interrupted_command_says_so(monkeypatch, capsys, folder):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("sklearn_pate._cli._model_commands.read_rows", interrupt)
    assert main(MEASURE) == INTERRUPTED
    assert "interrupted; run the same command again" in capsys.readouterr().err


def test_no_study_costs_more_than_was_asked_for():
    public = table(300, 1)[["age", "ward"]]
    clf = PATEClassifier(
        mechanism="histogram",
        n_teachers=20,
        n_queries=20,
        classes=["no", "yes"],
        privacy_unit="group",
        random_state=0,
        epsilon=10.0,
    )
    with pytest.raises(ValueError, match=r"epsilon=10.0 is too large for noise that"):
        Study(clf, public, sites=["north", "south"])
    study = Study(clf.set_params(epsilon=3.0), public, sites=["north", "south"])
    assert 2.99 < study.privacy_spent.epsilon <= 3


def test_another_budget_than_that_of_a_ledger_is_refused(folder, capsys):
    Path("estimator.py").write_text(
        "from sklearn_pate import DPNewtonClassifier\n\nestimator = DPNewtonClassifier("
        "classes=['no', 'yes'], privacy_unit='group', n_groups=900, random_state=0)\n"
    )
    of_study = ["--public", "public.csv", "--estimator", "estimator.py"]
    assert main(["study", *of_study, "--sites", "north,south"]) == 0
    join = ["join", "--study", "study.json", *of_study, "--site", "north"]
    join += ["--ledger", "ledger.sqlite", "-o", "north.join"]
    assert "100" in refused(capsys, [*join, "--epsilon", "1"])
    assert not Path("north.join").exists()
    assert main(join) == 0
