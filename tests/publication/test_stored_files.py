"""Files of every format that released versions wrote, whole and broken."""

import json
import shutil
import sqlite3
import warnings

import numpy as np
import pytest
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.fixes import parse_version

from sklearn_pate import PrivacyLedger, PublishedClassifier, Votes
from sklearn_pate.exceptions import LedgerError
from sklearn_pate.metrics import OutcomeMetrics, PrivateMetrics
from sklearn_pate.outcomes import (
    PublishedMultiOutput,
    PublishedRegressor,
    PublishedSurvival,
)
from tests._cli.site_files import SITES, fit_votes
from tests.private import (
    _ledger,
    _outcome_metrics,
    _privacy_card,
    _results,
    _several,
    _site_commands,
    _votes,
    main,
    read_released,
)
from tests.publication.write_stored import OTHERS, STORED, folder_of, fresh

FOLDERS = sorted(STORED.iterdir(), key=lambda folder: parse_version(folder.name))
NEWEST = FOLDERS[-1]
#: What readers have to find in the files of each folder.
ANSWERS = {
    folder: json.loads((folder / "answers.json").read_text()) for folder in FOLDERS
}
MODULES = {"scikit-learn": "sklearn"}
OF_MODELS = {
    folder / name: found
    for folder, answers in ANSWERS.items()
    for name, found in [
        *((name, answers[name]) for name in answers if name not in OTHERS),
        ("with_metrics", answers["metrics"]["model"]),
    ]
}
OF_OUTCOMES = {
    folder / name: found
    for folder, answers in ANSWERS.items()
    for name, found in answers["outcomes"].items()
}


def name_of(path):
    """Name a test by release and file."""
    return path.relative_to(STORED).as_posix()


every_folder = pytest.mark.parametrize("folder", FOLDERS, ids=name_of)


def load(path, **parameters):
    """Load a model that another version of scikit-learn may have saved."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        return PublishedClassifier.load(path, **parameters)


def skip_unless_later(card):
    """Skip where a package is missing, or is older than the one that wrote a file."""
    for name, version in card["versions"].items():
        if name in ("python", "tests"):
            continue
        module = pytest.importorskip(MODULES.get(name, name))
        if parse_version(module.__version__) < parse_version(version):
            pytest.skip(f"{name} is older than the version that wrote the file")


LOADERS = {
    "outcome_number": PublishedRegressor,
    "outcome_time": PublishedSurvival,
    "outcomes": PublishedMultiOutput,
}


@pytest.mark.slow
@pytest.mark.parametrize("stored", OF_OUTCOMES, ids=name_of)
def test_a_stored_model_of_an_outcome_predicts_as_it_did(stored):
    path, answers = stored.with_suffix(".skops"), OF_OUTCOMES[stored]
    card = json.loads(path.with_suffix(".json").read_text())
    skip_unless_later(card if "versions" in card else card["cards"][0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        loaded = LOADERS[path.stem].load(path, trusted=answers["trusted"])
    assert loaded.predict(fresh(path.stem)) == pytest.approx(
        np.array(answers["predictions"]), rel=1e-9
    )
    assert loaded.card["epsilon"] == answers["epsilon"]
    assert loaded.privacy_spent_.in_one_line() == card["statement"]


@pytest.mark.slow
@pytest.mark.parametrize("stored", OF_MODELS, ids=name_of)
def test_a_stored_model_predicts_and_states_as_it_did(stored):
    path, answers = stored.with_suffix(".skops"), OF_MODELS[stored]
    card = json.loads(path.with_suffix(".json").read_text())
    skip_unless_later(card)
    loaded = load(path, trusted=answers["trusted"])
    assert loaded.predict(fresh(path.stem)).tolist() == answers["predictions"]
    assert loaded.card["epsilon"] == answers["epsilon"]
    for one in (loaded, read_released(path)):
        assert one.privacy_spent_.in_one_line() == card["statement"]
        is_private = answers["epsilon"] is not None
        assert (one.privacy_spent_.epsilon < 10) == is_private


@every_folder
def test_stored_metrics_are_read(folder):
    metrics = PrivateMetrics.load(folder / "metrics.json")
    answers = ANSWERS[folder]["metrics"]
    assert metrics.privacy_spent_.epsilon == pytest.approx(answers["epsilon"], rel=1e-9)
    assert metrics["accuracy"].value == pytest.approx(answers["accuracy"], abs=1e-9)
    assert metrics.n_rows_ == answers["n_rows"]
    other = load(folder / "with_metrics.skops").metrics_
    assert {**other} == {**metrics}


@every_folder
@pytest.mark.parametrize("name", ["outcome_number", "outcome_time"])
def test_stored_metrics_of_an_outcome_are_those_of_its_card(folder, name):
    metrics = OutcomeMetrics.load(folder / f"{name}_metrics.json")
    card = json.loads((folder / f"{name}.json").read_text())
    assert metrics.to_dict() == card["metrics"]


@pytest.mark.slow
@every_folder
def test_a_stored_study_and_its_votes_become_a_model(folder, tmp_path, monkeypatch):
    shutil.copytree(folder / "study", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    votes = Votes.merge([Votes.load(f"{site}.votes") for site in SITES])
    assert repr(votes) == ANSWERS[folder]["study"]["votes"]
    assert main(fit_votes()) == 0
    assert load("model.skops").classes_.tolist() == ["no", "yes"]


@every_folder
def test_a_stored_ledger_is_read_and_goes_on(folder, tmp_path):
    found = PrivacyLedger(copied_ledger(folder, tmp_path))
    answers = ANSWERS[folder]["ledger"]
    [entry] = found.entries()
    assert entry.epsilon == pytest.approx(answers["epsilon"], rel=1e-9)
    assert found.spent == pytest.approx(answers["spent"], rel=1e-9)


def copied_ledger(folder, tmp_path):
    for end in ("", ".key"):
        shutil.copy(folder / f"ledger.sqlite{end}", tmp_path)
    return tmp_path / "ledger.sqlite"


def test_the_newest_files_have_the_formats_that_are_written_now(tmp_path):
    """If this fails, write the files again: see write_stored.py."""
    card = {"format": _privacy_card.FORMAT}
    card["format_version"] = _privacy_card.FORMAT_VERSION
    models = [path.name for path in OF_MODELS if path.parent == NEWEST]
    expected = {f"{name}.json": card for name in models}
    for name in ("outcome_number", "outcome_time"):
        expected[f"{name}.json"] = card
        expected[f"{name}_metrics.json"] = _outcome_metrics._FORMAT
    expected["outcomes.json"] = _several._FORMAT
    expected["metrics.json"] = _results._FORMAT
    expected["study/study.json"] = _site_commands._FORMAT
    for name, form in expected.items():
        values = json.loads((NEWEST / name).read_text())
        assert {one: values[one] for one in form} == form, name
    for site in SITES:
        content = (NEWEST / f"study/{site}.votes").read_bytes()
        assert content.startswith(_votes._FIRST_LINE)
    connection = sqlite3.connect(copied_ledger(NEWEST, tmp_path))
    assert connection.execute("PRAGMA user_version").fetchone() == (
        _ledger.FORMAT_VERSION,
    )
    connection.close()


def test_only_a_minor_release_in_development_has_its_files_written():
    assert folder_of("0.1.0.dev0") == STORED / "0.1"
    assert folder_of("0.2.0.dev0") == STORED / "0.2"
    for version in ("0.1.0", "0.1.0rc1", "0.1.1.dev0", "0.1.1", "1.0.0"):
        with pytest.raises(SystemExit, match="files of a released version are never"):
            folder_of(version)


@every_folder
def test_no_file_is_stored_without_an_answer(folder):
    models = [
        f"{path.name}.{end}"
        for path in (*OF_MODELS, *OF_OUTCOMES)
        for end in ("json", "skops")
        if path.parent == folder
    ]
    others = ["answers.json", "metrics.json", "ledger.sqlite", "ledger.sqlite.key"]
    others += ["outcome_number_metrics.json", "outcome_time_metrics.json"]
    others += ["study.json", "public.csv", *(f"{site}.votes" for site in SITES)]
    files = [path.name for path in folder.rglob("*") if path.is_file()]
    assert sorted(files) == sorted([*models, *others])


# Broken files.


def without_end(content):
    return content[: len(content) // 2]


def with_other_byte(content):
    place = 2 * len(content) // 3
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def not_utf8(content):
    return b"\xff\xfe" + content


def empty(content):
    return b""


def of_version(step):
    """Change the version in a file of JSON, or in the first line of votes."""

    def change(content):
        if not content.startswith(b"{"):
            return content.replace(b"format 1", f"format {1 + step}".encode(), 1)
        values = json.loads(content)
        values["format_version"] += step
        return json.dumps(values).encode()

    return change


def of_file(name):
    """Put another stored file in its place."""
    return lambda content: (NEWEST / name).read_bytes()


DAMAGED = "strict JSON"
NO_CARD = "does not have the sha256 on"
OTHER_VERSION = "use the version that wrote the file, or publish the model again"
NO_METRICS, NO_STUDY = "is not a file of private metrics", "is not a study"
NO_VOTES, CUT = "is not a file of votes; pass one", "was cut off or changed; ask"
#: File, change, and what the error says.
BROKEN = [
    ("pate.skops", without_end, NO_CARD),
    ("pate.skops", with_other_byte, NO_CARD),
    ("pate.skops", empty, NO_CARD),
    ("pate.skops", of_file("knn.skops"), NO_CARD),
    ("pate.json", without_end, DAMAGED),
    ("pate.json", not_utf8, DAMAGED),
    ("pate.json", empty, DAMAGED),
    ("pate.json", of_version(-1), OTHER_VERSION),
    ("pate.json", of_version(1), OTHER_VERSION),
    ("pate.json", of_file("knn.json"), NO_CARD),
    ("pate.json", of_file("metrics.json"), "is not a sklearn_pate privacy card"),
    ("metrics.json", without_end, NO_METRICS),
    ("metrics.json", not_utf8, NO_METRICS),
    ("metrics.json", empty, NO_METRICS),
    ("metrics.json", of_version(-1), "their format_version does not match"),
    ("metrics.json", of_version(1), "their format_version does not match"),
    ("metrics.json", of_file("pate.json"), NO_METRICS),
    ("study/study.json", without_end, NO_STUDY),
    ("study/study.json", not_utf8, NO_STUDY),
    ("study/study.json", empty, NO_STUDY),
    ("study/study.json", of_version(1), "install the version of sklearn-pate that"),
    ("study/study.json", of_file("metrics.json"), NO_STUDY),
    ("study/north.votes", without_end, CUT),
    ("study/north.votes", with_other_byte, CUT),
    ("study/north.votes", not_utf8, NO_VOTES),
    ("study/north.votes", empty, NO_VOTES),
    ("study/north.votes", of_version(1), NO_VOTES),
    ("study/north.votes", of_file("study/public.csv"), NO_VOTES),
    ("ledger.sqlite", without_end, "ledger"),
    ("ledger.sqlite", not_utf8, "is not a ledger"),
    ("ledger.sqlite", of_file("pate.json"), "is not a ledger"),
]
READERS = {
    "pate.skops": load,
    "pate.json": lambda path: load(path.with_suffix(".skops")),
    "metrics.json": PrivateMetrics.load,
    "study.json": _site_commands.VoteStudy.read,
    "north.votes": Votes.load,
    "ledger.sqlite": lambda path: PrivacyLedger(path).entries(),
}


@pytest.mark.parametrize(
    ("name", "change", "message"),
    BROKEN,
    ids=[f"{number}-{one[0]}" for number, one in enumerate(BROKEN)],
)
def test_a_broken_file_is_refused_in_one_sentence(name, change, message, tmp_path):
    file = (NEWEST / name).name
    for one in (NEWEST / name).parent.glob(f"{file.partition('.')[0]}.*"):
        shutil.copy(one, tmp_path)
    path = tmp_path / file
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises((ValueError, LedgerError), match=message) as caught:
        READERS[file](path)
    assert str(path.with_suffix("")) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("pragma", "message"),
    [
        ("user_version = 2", "has format 2, but this version of sklearn_pate reads"),
        ("user_version = 99", "has format 99, but this version of sklearn_pate reads"),
        ("application_id = 7", "is not a ledger; pass another file"),
    ],
)
def test_a_ledger_of_another_version_or_application_is_refused(
    pragma, message, tmp_path
):
    ledger = copied_ledger(NEWEST, tmp_path)
    connection = sqlite3.connect(ledger)
    connection.execute(f"PRAGMA {pragma}")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match=message):
        PrivacyLedger(ledger)
