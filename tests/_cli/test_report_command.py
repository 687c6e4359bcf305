"""Command ``report``: the report of a released model, which is not loaded."""

import hashlib
import json
import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PATEClassifier, PrivacyLedger, PublicData, PublishedClassifier
from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.mechanisms import GumbelMax
from tests.private import main

MEASURED = ["--quality", "accuracy=0.84", "--evaluated-on", "500 rows of 2019"]


def fit(student, blobs, **parameters):
    X, y, X_public, _ = blobs
    pate = PATEClassifier(
        GaussianNB(),
        student,
        **{"n_teachers": 20, "n_queries": 40, "mechanism": "gumbel", "epsilon": 8}
        | parameters,
    )
    return pate.fit(X, y, X_public=PublicData(X_public))


@pytest.fixture(scope="module")
def published(blobs):
    return fit(LogisticRegression(), blobs).publish()


@pytest.fixture
def model(published, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    published.save("model.skops")
    return tmp_path / "model.skops"


@pytest.fixture
def ledger(blobs, tmp_path):
    ledger = PrivacyLedger(tmp_path / "rows.sqlite", epsilon=30, delta=1e-5)
    fit(LogisticRegression(), blobs, ledger=ledger)
    return ledger


def facts_of(name):
    return json.loads(Path(name).read_text())


def sha256(model):
    return hashlib.sha256(model.read_bytes()).hexdigest()


def rewrite(model, change):
    """Change members of the model file, and make the hash on the card fit."""
    with zipfile.ZipFile(model) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(model, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    card = json.loads(model.with_suffix(".json").read_text())
    card["sha256"] = sha256(model)
    model.with_suffix(".json").write_text(json.dumps(card))


@pytest.mark.slow
def test_the_report_is_that_of_the_loaded_model(model):
    loaded = PublishedClassifier.load(model)
    assert main(["report", "model.skops", "-o", "report.json", "--title", "Blobs"]) == 0
    report = PrivacyReport.from_estimator(loaded, title="Blobs", model_file=model)
    assert report.to_dict()["model_file"]["sha256"] == sha256(model)
    assert facts_of("report.json") == report.to_dict()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_the_format_is_that_of_the_name(model, published, name):
    assert main(["report", "model.skops", "-o", name]) == 0
    report = PrivacyReport.from_estimator(published, model_file=model)
    text = report.to_html() if name.endswith("html") else report.to_markdown()
    assert Path(name).read_text() == text


def test_a_draft_is_announced_with_the_fields_that_are_missing(model, capsys):
    Path("about.json").write_text('{"name": "Beds", "curator": "City Hospital"}')
    options = ["-o", "report.md", "--deployment", "about.json"]
    assert main(["report", "model.skops", *options]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        "report.md is written. It is a draft. Add these fields to the file of"
        in printed
    )
    assert "prediction, intended_use, description, one_row, controller" in printed
    assert Path("report.md").read_text().startswith("> **DRAFT: do not sign")
    assert "\n# Beds, City Hospital\n" in Path("report.md").read_text()


def test_without_a_file_it_is_markdown_that_fits_a_terminal(model, published, capsys):
    assert main(["report", "model.skops"]) == 0
    printed = capsys.readouterr().out
    report = PrivacyReport.from_estimator(published, model_file=model)
    markdown = report.to_markdown()
    # Words and tables are the same; wrapped quotations have more marks.
    words, expected = (text.replace(">", "").split() for text in (printed, markdown))
    assert words == expected
    assert max(len(line) for line in printed.splitlines() if line[:1].isalpha()) <= 80


@pytest.mark.slow
def test_a_forest_needs_no_trust(blobs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fit(RandomForestClassifier(2), blobs).publish().save("forest.skops")
    assert main(["report", "forest.skops", "-o", "report.json"]) == 0
    assert facts_of("report.json")["model"] == "RandomForestClassifier"


@pytest.mark.slow
def test_a_student_of_text_labels_is_named_without_its_wrapper(
    blobs, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    X, y, X_public, others = blobs
    named = X, np.array(["a", "b", "c"])[y], X_public, others
    fit(GaussianNB(), named).publish().save("named.skops")
    assert main(["report", "named.skops", "-o", "report.json"]) == 0
    assert facts_of("report.json")["model"] == "GaussianNB"


def test_nothing_that_the_model_file_names_is_imported(model, monkeypatch):
    trap, sprung = model.with_name("trap.py"), model.with_name("sprung")
    trap.write_text(f"open({str(sprung)!r}, 'w').close()\nclass Student: pass\n")
    monkeypatch.syspath_prepend(model.parent)

    def forge(members):
        index = json.loads(members["schema.json"])
        index["content"]["student"] |= {"__module__": "trap", "__class__": "Student"}
        members["schema.json"] = json.dumps(index).encode()
        card = json.loads(members["privacy_card.json"]) | {"model": "trap.Student"}
        members["privacy_card.json"] = json.dumps(card, sort_keys=True).encode()
        model.with_suffix(".json").write_text(json.dumps(card))

    rewrite(model, forge)
    assert main(["report", "model.skops", "-o", "report.json"]) == 0
    assert not sprung.exists()
    # Loading the model imports it.
    with pytest.raises(ValueError, match="the student is of type Student"):
        PublishedClassifier.load(model, trusted=["trap.Student"])
    assert sprung.exists()
    del sys.modules["trap"]


def test_skops_is_not_needed(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    assert main(["report", "model.skops", "-o", "report.md"]) == 0


def test_quality_of_subpopulations_is_joined(model):
    of_sexes = ["accuracy by sex=women=0.85", "accuracy by sex=men=0.83"]
    figures = [option for one in of_sexes for option in ("--quality", one)]
    given = [*MEASURED, "--public-rows", *figures]
    assert main(["report", "model.skops", "-o", "r.json", *given]) == 0
    assert facts_of("r.json")["quality"]["figures"] == {
        "accuracy": 0.84,
        "accuracy by sex": {"women": 0.85, "men": 0.83},
    }


def test_quality_on_public_rows_may_be_published(model):
    assert (
        main(["report", "model.skops", "-o", "r.json", *MEASURED, "--public-rows"]) == 0
    )
    facts = facts_of("r.json")
    assert facts["quality"]["figures"] == {"accuracy": 0.84}
    assert facts["quality"]["evaluated_on"] == "500 rows of 2019"
    assert not facts["internal"]


@pytest.mark.slow
@pytest.mark.parametrize("output", [[], ["-o", "report.json"]])
def test_an_internal_report_needs_an_option(model, ledger, capsys, output):
    for options, because in (
        (["--ledger", "rows.sqlite"], "because it has the history of the ledger"),
        ([*MEASURED, "--private-rows"], "figures that were computed on private rows"),
    ):
        asked = ["model.skops", *options, *output]
        message = refusal(capsys, asked)
        assert because in message
        assert "add --internal" in message
        assert not model.with_name("report.json").exists()
        assert main(["report", *asked, "--internal", "--overwrite"]) == 0
        printed = capsys.readouterr().out
        if output:
            assert facts_of("report.json")["internal"]
            model.with_name("report.json").unlink()
        else:
            assert printed.startswith("> **INTERNAL: do not publish")


@pytest.mark.slow
def test_the_history_is_that_of_the_ledger(model, ledger):
    asked = ["model.skops", "--ledger", "rows.sqlite", "--internal", "-o", "r.json"]
    assert main(["report", *asked]) == 0
    (entry,) = facts_of("r.json")["ledger"]["entries"]
    assert entry["what"] == ledger.entries()[0].description


@pytest.mark.slow
def test_files_are_replaced_only_if_asked(model, capsys):
    model.with_name("r.md").write_text("mine")
    message = refusal(capsys, ["model.skops", "-o", "r.md"])
    assert "r.md exists already; choose another path, or pass --overwrite" in message
    assert model.with_name("r.md").read_text() == "mine"
    assert main(["report", "model.skops", "-o", "r.md", "--overwrite"]) == 0


def test_the_card_of_the_model_is_never_replaced(model, capsys):
    card = model.with_suffix(".json").read_text()
    message = refusal(capsys, ["model.skops", "-o", "./model.json", "--overwrite"])
    assert "--output ./model.json is the card of the model" in message
    assert model.with_suffix(".json").read_text() == card


def test_an_edited_card_is_refused(model, capsys):
    card = json.loads(model.with_suffix(".json").read_text()) | {"epsilon": 0.1}
    model.with_suffix(".json").write_text(json.dumps(card))
    assert "differs from the copy of the card" in refusal(capsys, ["model.skops"])


@pytest.mark.slow
def test_files_of_two_models_are_refused(model, blobs, capsys):
    fit(None, blobs, mechanism=GumbelMax(c=0.1), epsilon=None).publish().save(
        "other.skops"
    )
    model.with_name("other.skops").replace(model)
    assert "does not have the sha256" in refusal(capsys, ["model.skops"])


@pytest.mark.parametrize("changes", [{"epsilon": "small"}, {"model": None}])
def test_a_card_without_its_numbers_is_refused(model, capsys, changes):
    card = json.loads(model.with_suffix(".json").read_text()) | changes
    model.with_suffix(".json").write_text(json.dumps(card))
    del card["sha256"]
    copy = json.dumps(card, sort_keys=True).encode()
    rewrite(model, lambda members: members.update({"privacy_card.json": copy}))
    assert "its statement cannot be read" in refusal(capsys, ["model.skops"])


@pytest.mark.slow
def test_a_deployment_is_read_from_a_file(model):
    Path("about.json").write_text('{"unit_name": "patient", "audits": ["one"]}')
    options = ["model.skops", "--deployment", "about.json"]
    assert main(["report", *options, "-o", "report.json"]) == 0
    given = facts_of("report.json")["deployment"]
    assert given == {"unit_name": "patient", "audits": ["one"]}
    assert main(["report", *options, "-o", "record.yaml"]) == 0
    text = Path("record.yaml").read_text()
    assert '"privacy_unit": "patient (one row)"' in text
    assert "# contact" not in text
    assert "# authors: " in text


def refusal(capsys, options):
    """Return the error, one line."""
    with pytest.raises(SystemExit) as stopped:
        main(["report", *options])
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


QUALITY = ["model.skops", "--quality"]
WRONG = [
    ([], "the following arguments are required: MODEL"),
    (["model.pickle"], "MODEL: 'model.pickle' must end in '.skops'"),
    (["no.skops"], "no.skops is missing: it is the model of a published classifier"),
    (["model.skops", "-o", "r.pdf"], "--output r.pdf must end in one of .html, .md"),
    (["model.skops", "-o", "no/r.md"], "There is no folder no for --output no/r.md"),
    (["model.skops", "--title", ""], "--title '' must be a text"),
    (
        ["model.skops", "--ledger", "no.sqlite"],
        "--ledger no.sqlite is not a file; correct",
    ),
    (["model.skops", "--ledger", "model.json"], "model.json cannot be used"),
    (["model.skops", "--deployment", "no.json"], "--deployment no.json is not a file"),
    (
        ["model.skops", "--deployment", "model.skops"],
        "cannot be read: it is not strict JSON",
    ),
    (["model.skops", "--deployment", "model.json"], "with fields among .'name'"),
    (["model.skops", "--public-rows"], "for example --quality accuracy=0.84"),
    (["model.skops", *MEASURED[2:]], "for example --quality accuracy=0.84"),
    ([*QUALITY, "accuracy"], "--quality: 'accuracy' is not NAME=VALUE; write"),
    ([*QUALITY, "accuracy=high"], "--quality: 'high' is not a number; write"),
    ([*QUALITY, "a=b=c=1"], "--quality: 'a=b=c=1' is not NAME=VALUE; write"),
    (
        ["model.skops", *MEASURED, *MEASURED, "--public-rows"],
        "quality has 'accuracy' more than once; give each figure a different name",
    ),
    ([*QUALITY, "accuracy=1", "--public-rows"], "--quality needs --evaluated-on"),
    (["model.skops", *MEASURED], "add one of them"),
    (["model.skops", *MEASURED, "--public-rows", "--private-rows"], "not allowed with"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_wrong_options_are_refused_in_one_sentence(model, capsys, options, message):
    assert re.search(message, refusal(capsys, options))
