"""Command ``measure``: private metrics of a released model on a table of rows."""

import json

import numpy as np
import pandas as pd
import pytest

from sklearn_pate import DPNewtonClassifier, PrivacyLedger, PrivateMarginals
from sklearn_pate.learners import DPNaiveBayesClassifier
from sklearn_pate.metrics import PrivateMetrics
from sklearn_pate.publication import PublishedClassifier
from tests.private import main, read_rows, score_rows

pytestmark = pytest.mark.slow

N_ROWS = 1500


def table():
    """Rows of patients of two visits each, with an outcome that has a cause."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 2)).round(3)
    ill = rng.random(N_ROWS) < 1 / (1 + np.exp(-2 * X.sum(axis=1)))
    return pd.DataFrame(
        {
            "patient": np.repeat(np.arange(N_ROWS // 2), 2),
            "marker": X[:, 1],
            "outcome": np.where(ill, "yes", "no"),
            "age": X[:, 0],
            "band": np.where(X[:, 0] > 0, "old", "young"),
        }
    )


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Folder with two models, one without names of features, and rows."""
    folder = tmp_path_factory.mktemp("models")
    rows = table()
    rows[500:].to_csv(folder / "rows.csv", index=False)
    rows[500:].to_parquet(folder / "rows.parquet")
    rows.drop(columns=["patient", "band"])[500:].to_csv(folder / "few.csv", index=False)
    X, y = rows[["age", "marker"]][:500], rows["outcome"][:500]
    clf = DPNaiveBayesClassifier((-4, 4), classes=["no", "yes"])
    clf.fit(X, y).publish().save(folder / "model.skops")
    X = rows[["marker", "age"]].to_numpy()[:500]
    clf.fit(X, y).publish().save(folder / "unnamed.skops")
    return folder


@pytest.fixture
def folder(models, monkeypatch, tmp_path):
    for path in models.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


BANDS = ("--subgroup", "band", "--subgroup-values", "old,young")


def measure(*options, model="model.skops", rows="rows.csv"):
    arguments = ["measure", model, rows, "--label", "outcome", "--epsilon", "2"]
    assert main([*arguments, *options]) == 0


def refused(capsys, *options, **files):
    with pytest.raises(SystemExit) as stop:
        measure(*options, **files)
    assert stop.value.code == 2
    return " ".join(capsys.readouterr().err.split())


def test_metrics_are_printed_and_written_with_their_statement(folder, capsys):
    measure("-o", "metrics.json", *BANDS)
    printed = capsys.readouterr().out
    metrics = PrivateMetrics.load("metrics.json")
    assert str(metrics["roc_auc"]) in printed
    assert 0.7 < metrics["roc_auc"].value < 1
    assert metrics.classes_.tolist() == ["no", "yes"]
    assert "\nband old\n" in printed
    assert "\nband young\n" in printed
    assert "\nband other or missing\n" in printed
    assert "This release of metrics is (epsilon=2.000" in printed
    assert "Written: metrics.json. It may be published." in printed
    assert all(len(line) <= 80 for line in printed.splitlines())


@pytest.mark.parametrize("rows", ["rows.csv", "rows.parquet"])
def test_features_are_found_by_their_names(folder, rows):
    measure("-o", "metrics.json", rows=rows)
    metrics = PrivateMetrics.load("metrics.json")
    assert metrics.n_rows_ == N_ROWS - 500
    assert metrics["roc_auc"].value > 0.7


def test_without_names_all_other_columns_are_features(folder, capsys):
    measure("-o", "metrics.json", model="unnamed.skops", rows="few.csv")
    assert PrivateMetrics.load("metrics.json")["roc_auc"].value > 0.7
    message = refused(capsys, model="unnamed.skops")
    assert "1000 rows of 4 features, but the model has 2" in message


def test_patients_are_protected_with_all_rows(folder):
    measure("--group", "patient", "-o", "metrics.json")
    spent = PrivateMetrics.load("metrics.json").privacy_spent_
    assert (spent.unit, spent.relation) == ("group", "add-remove-or-change")


def test_the_same_command_with_a_ledger_returns_the_same_figures(folder, capsys):
    ledger = PrivacyLedger("rows.sqlite", epsilon=2.5, delta=1e-5)
    measure("--ledger", "rows.sqlite", "-o", "first.json")
    spent = ledger.spent
    measure("--ledger", "rows.sqlite", "-o", "second.json")
    assert 0 < ledger.spent == spent
    first, second = (folder / f"{one}.json" for one in ("first", "second"))
    assert first.read_text() == second.read_text()
    message = refused(capsys, "--ledger", "rows.sqlite", "--delta", "1e-6")
    assert "of the budget of" in message
    assert "no noise was drawn" in message
    assert ledger.spent == spent


def test_nothing_is_released_unless_the_file_can_be_written(folder, capsys):
    (folder / "metrics.json").write_text("")
    PrivacyLedger("rows.sqlite", epsilon=3, delta=1e-4)
    options = ("--ledger", "rows.sqlite", "-o", "metrics.json")
    assert "metrics.json exists already" in refused(capsys, *options)
    assert PrivacyLedger("rows.sqlite").spent == 0
    measure("-o", "metrics.json", "--overwrite")
    assert PrivateMetrics.load("metrics.json")


@pytest.mark.parametrize(
    ("options", "files", "message"),
    [
        (["--label", "cause"], {}, "rows.csv has no column 'cause'"),
        (["--subgroup", "sex"], {}, "rows.csv has no column 'sex'"),
        (["--subgroup", "band"], {}, "--subgroup-values None must list the possible"),
        (["--epsilon", "0"], {}, "--epsilon 0.0 must be a positive"),
        (["--ledger", "none.sqlite"], {}, "--ledger none.sqlite is not a file"),
        ([], {"rows": "rows.txt"}, "rows.txt must end in .csv or .parquet"),
        ([], {"model": "none.skops"}, "none.skops is missing"),
    ],
)
def test_an_invalid_option_is_refused(folder, capsys, options, files, message):
    assert message in refused(capsys, *options, **files)


def test_a_report_has_the_metrics_of_the_file(folder, capsys):
    measure("-o", "metrics.json", *BANDS)
    assert main(["report", "model.skops", "--metrics", "metrics.json"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    metrics = PrivateMetrics.load("metrics.json")
    assert f"| AUC | {metrics['roc_auc'].value:.3f} | " in printed
    assert "together they are" in printed
    values = json.loads((folder / "metrics.json").read_text())
    values["figures"]["roc_auc"]["value"] = 0.99
    (folder / "forged.json").write_text(json.dumps(values))
    with pytest.raises(SystemExit):
        main(["report", "model.skops", "--metrics", "forged.json"])
    assert "forged.json is not a file of private metrics" in capsys.readouterr().err


def test_text_and_missing_cells_are_scored_as_in_python(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 96, 4000),
            "ward": rng.choice(["surgery", "other", ""], 4000),
            "glucose": np.where(rng.random(4000) < 0.2, np.nan, 105.5),
        }
    )
    frame["outcome"] = np.where(frame["age"] + 20 * rng.normal(size=4000) > 60, 1, 0)
    frame.to_csv("rows.csv", index=False)
    frame = pd.read_csv("rows.csv")
    domain = {
        "age": (18, 120),
        "ward": ["surgery", "other", None],
        "glucose": {"range": (40, 400), "missing": True},
    }
    clf = DPNewtonClassifier(
        epsilon=4, synthetic=PrivateMarginals(domain), classes=[0, 1]
    )
    names = [*domain]
    clf.fit(frame[names][:3000], frame["outcome"][:3000])
    clf.publish().save("model.skops")
    model = PublishedClassifier.load("model.skops")
    X, columns = read_rows(tmp_path / "rows.csv", model, ["outcome"])
    rows = np.arange(3000, 3200)
    read, known = (
        score_rows(model, one, rows, model.classes_) for one in (X, frame[names])
    )
    np.testing.assert_allclose(read[0], known[0])
    assert np.all(read[1] >= 0)
    assert set(columns["outcome"]) == {"0", "1"}


def test_a_model_of_patients_needs_their_ids(folder, capsys):
    rows = table()
    X, y = rows[["age", "marker"]][:1000], rows["outcome"][:1000]
    clf = DPNewtonClassifier(
        epsilon=4,
        privacy_unit="group",
        n_groups=400,
        synthetic=PrivateMarginals({"age": (-4, 4), "marker": (-4, 4)}),
        classes=["no", "yes"],
    )
    clf.fit(X, y, groups=rows["patient"][:1000])
    clf.publish().save("groups.skops")
    message = refused(capsys, model="groups.skops")
    assert "The model protects groups; pass --group" in message
