"""Commands of the benchmarks, and the benchmark of SVHN on small files."""

import hashlib
import importlib
import io
import json
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import sklearn
from scipy.io import savemat

from benchmarks import record, rules
from benchmarks.__main__ import FOLDER as BENCHMARKS
from benchmarks.__main__ import main, scripts
from benchmarks.record import load, names
from sklearn_pate.students import ImageRepresentation
from tests.private import _fetch


def test_every_printed_command_names_a_benchmark():
    commands = [one["command"] for name in names() for one in load(name).values()]
    assert len(commands) > 50
    assert {command.split()[3] for command in commands} <= set(scripts())


def test_make_benchmarks_runs_every_benchmark_and_then_writes_the_pages():
    makefile = (BENCHMARKS.parent / "Makefile").read_text()
    listed = makefile.partition("BENCHMARKS := ")[2].partition("\n\n")[0]
    run = listed.replace("\\", " ").split()
    # `make coverage` measures the coverage.
    assert sorted([*run, "coverage_of_tests"]) == sorted(scripts())
    assert run[0] == "rules"
    assert run[-2:] == ["pictures", "pages"]


@pytest.mark.slow
def test_the_stored_fingerprints_are_those_of_the_rules():
    versions = load("rules")["fingerprints"]["versions"]
    if versions["scikit-learn"] != sklearn.__version__:
        pytest.skip("the fingerprints are of another scikit-learn")
    kept = {rule: one["fingerprint"] for rule, one in record.stored_rules().items()}
    # If they differ: python -m benchmarks rules.
    assert kept == {rule: rules.fingerprint(rule) for rule in rules.RULES}


def test_tables_before_a_change_of_their_rules_are_older(monkeypatch):
    dates = {"newton": "2026-11-02", "votes": "2026-11-01"}
    stored = {rule: {"since": since} for rule, since in dates.items()}
    monkeypatch.setattr(record, "stored_rules", lambda: stored)
    monkeypatch.setattr(record, "RULES_OF", {"one": ("newton", "votes")})
    measured = {"before": {"date": "2026-11-01"}, "after": {"date": "2026-11-02"}}
    monkeypatch.setattr(record, "load", lambda name: measured)
    assert record.older() == {"one": ["before"]}


@pytest.mark.parametrize("argument", ["accounting.py", "record"])
def test_another_name_is_refused(monkeypatch, argument):
    monkeypatch.setattr(sys, "argv", ["benchmarks", argument])
    with pytest.raises(SystemExit, match=f"{argument!r} is none of the benchmarks"):
        main()


@pytest.fixture
def recipe(monkeypatch, tmp_path):
    """Return the benchmark, which writes to a temporary folder."""
    module = importlib.import_module("benchmarks.images.image_recipe")
    monkeypatch.setattr(module, "WORK", tmp_path / "work")
    monkeypatch.setattr("benchmarks.record.RESULTS", tmp_path)
    return module


def put_svhn(home, monkeypatch, sizes):
    """Write small files as the official ones, with bright images for even digits."""
    rng = np.random.default_rng(0)
    (home / "svhn").mkdir()
    for subset, n_rows in sizes.items():
        labels = np.arange(n_rows) % 10
        X = rng.integers(120, size=(n_rows, 32, 32, 3))
        X[:, 4:28, 2:30] += 12 * labels[:, np.newaxis, np.newaxis, np.newaxis]
        X[np.arange(n_rows), 3 * labels] = 255  # a line, the higher the smaller
        content = io.BytesIO()
        file_labels = np.where(labels == 0, 10, labels)[:, np.newaxis]
        images = X.transpose(1, 2, 3, 0).astype(np.uint8)
        savemat(content, {"X": images, "y": file_labels})
        (home / "svhn" / f"{subset}_32x32.mat").write_bytes(content.getvalue())
        sha256 = hashlib.sha256(content.getvalue()).hexdigest()
        official = replace(_fetch._SVHN_FILES[subset], sha256=sha256)
        monkeypatch.setitem(_fetch._SVHN_FILES, subset, official)


@pytest.mark.slow
def test_one_command_takes_the_official_files(recipe, monkeypatch, tmp_path):
    put_svhn(tmp_path, monkeypatch, {"train": 700, "extra": 800, "test": 500})
    monkeypatch.setenv("SKLEARN_PATE_DATA", str(tmp_path))
    monkeypatch.setattr(recipe, "SHUFFLES", range(1))
    monkeypatch.setattr(recipe, "EPSILONS", (8.0,))
    small = partial(ImageRepresentation, n_filters=50, n_components=200)
    components = np.asarray, lambda seed: small(random_state=seed)
    monkeypatch.setitem(recipe.REPRESENTATIONS, "components", components)
    newton = {"DPNewton": recipe.newton}
    monkeypatch.setattr(recipe, "LEARNERS", newton)
    monkeypatch.setattr(recipe, "Runs", partial(recipe.Runs, n_jobs=1))
    monkeypatch.setattr(sys, "argv", ["", "svhn", "--data", "svhn-official"])
    recipe.main()
    rows = json.loads((tmp_path / "image_recipe.json").read_text())["svhn"]["rows"]
    assert {row["data"] for row in rows} == {"SVHN"}
    [private] = [row for row in rows if row["target"] is not None]
    assert private["accuracy"]["mean"] > 0.5
    images = recipe.load("SVHN")
    assert images.private[0].shape == (1500, 3, 32, 32)
    assert [len(part) for part in images.shuffled(0)] == [200, 300]
    assert set(images.private[1]) == set(range(10))
