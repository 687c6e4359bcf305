"""Tests of fits and metrics over several sites."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PublishedClassifier,
)
from sklearn_pate.distributed import Site, Study
from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.metrics import OutcomeMetrics, PrivateMetrics, private_metrics
from sklearn_pate.outcomes import BinnedRegressor, DiscreteSurvival
from tests.distributed.studies import (
    IN_ROUNDS,
    NAMES,
    NEWTON,
    OF_STUDIES,
    PARTS,
    VOTES,
    collector_of,
    ledger_at,
    one_round,
    run,
    sites_of,
    study_of,
)
from tests.private import NoiseSource, SharedNoise, checked_statements, shared_release

pytestmark = OF_STUDIES


@pytest.mark.parametrize(
    "estimator",
    [
        NEWTON,
        VOTES,
        pytest.param(
            PATEClassifier(classes=[0, 1], random_state=0), marks=pytest.mark.thorough
        ),
    ],
    ids=["newton", "votes", "scores"],
)
def test_a_model_over_sites_is_as_good_as_a_pooled_one(rows, tmp_path, estimator):
    study = study_of(rows, estimator)
    model = run(study, sites_of(study, rows, tmp_path)).result()
    X, y, X_public, *test = rows
    pooled = estimator.fit(X, y, X_public=X_public)
    assert model.score(*test) > pooled.score(*test) - 0.08
    assert model.privacy_spent_ == study.privacy_spent
    assert 0.99 < model.privacy_spent_.epsilon <= 1
    assert isinstance(model.mechanism_, SharedNoise)
    assert shared_release() is None


@pytest.mark.thorough
def test_adult_over_five_sites(data_set, tmp_path):
    X, y = data_set("adult", as_frame=True, return_X_y=True)
    n_rows, names = 15_000, ["a", "b", "c", "d", "e"]
    newton = DPNewtonClassifier(classes=np.unique(y), random_state=0)
    X_public = X[30_000:31_500]
    study = Study(newton, X_public, sites=names, n_rows=n_rows)
    assert study.n_colluding == 2
    ends = [0, 6000, 10_500, 12_750, 14_250, 15_000]
    parts = {name: slice(*ends[k : k + 2]) for k, name in enumerate(names)}
    model = run(study, sites_of(study, (X, y), tmp_path, parts)).result()
    assert model.score(X[33_000:], y[33_000:]) > 0.83
    pooled = newton.fit(X[:n_rows], y[:n_rows], X_public=X_public)
    wider = model.mechanism_.mechanism.noise_scale / pooled.mechanism_.noise_scale
    assert wider == pytest.approx(np.sqrt(5 / 3), rel=1e-5)


@pytest.fixture
def no_noise(monkeypatch):
    def zeros(noise, sigma, shape):
        return np.zeros(shape, dtype=np.int64)

    monkeypatch.setattr(NoiseSource, "discrete_gaussian", zeros)


@pytest.mark.thorough
@pytest.mark.usefixtures("no_noise")
def test_sums_do_not_depend_on_which_site_has_a_row(rows, tmp_path):
    # Two sites, one of them counted, and four sites, two of them counted, have the same
    # noise in all, so that only the sums could differ.
    found = []
    for names, n_colluding in ((["a", "b"], 1), (["a", "b", "c", "d"], 2)):
        folder = tmp_path / str(n_colluding)
        folder.mkdir()
        study = study_of(rows, sites=names, n_colluding=n_colluding)
        size = 3000 // len(names)
        parts = {name: slice(k * size, (k + 1) * size) for k, name in enumerate(names)}
        found.append(run(study, sites_of(study, rows, folder, parts)).result())
    assert_array_equal(*(one.coefficients_ for one in found))


@pytest.mark.usefixtures("no_noise")
def test_groups_over_sites(rows, tmp_path):
    patients = np.arange(3000) // 3
    newton = DPNewtonClassifier(
        classes=[0, 1], random_state=0, privacy_unit="group", n_groups=1000
    )
    study = study_of(rows, newton, n_rows=None)
    sites = sites_of(study, rows, tmp_path, groups=patients)
    model = run(study, sites).result()
    assert model.privacy_spent_.unit == "group"
    assert model.score(*rows[3:]) > 0.6
    codes = {one.code for one in model.privacy_spent_.assumptions}
    assert "n-rows-of-sites-public" not in codes
    assert {"one-site-each", "fingerprint-compared", "masks-unbroken"} <= codes


@pytest.mark.thorough
def test_counted_codes_over_sites(tmp_path):
    rng = np.random.default_rng(0)
    codes = np.array([f"c{k}" for k in range(40)])
    kind = rng.integers(40, size=5000)
    X = pd.DataFrame({"code": codes[kind], "age": rng.normal(size=5000)})
    y = (rng.random(5000) < kind / 40).astype(int)
    newton = DPNewtonClassifier(
        classes=[0, 1], codes={"code": codes.tolist()}, random_state=0, epsilon=4.0
    )
    study = Study(newton, X[4500:], sites=["a", "b"], n_rows=4000)
    assert study.n_sums == 6
    sites = {
        name: Site(study, name, X[part], y[part], ledger=ledger_at(tmp_path, name, 4.0))
        for name, part in {"a": slice(0, 2500), "b": slice(2500, 4000)}.items()
    }
    model = run(study, sites).result()
    assert model.score(X[4000:], y[4000:]) > 0.62
    assert list(model.marginals_) == ["code"]


@pytest.mark.thorough
def test_queries_that_depend_on_answers_take_several_rounds(rows, tmp_path):
    study = study_of(rows, IN_ROUNDS)
    sites = sites_of(study, rows, tmp_path)
    collector, n_rounds = collector_of(study, sites), 0
    while collector.request() is not None:
        one_round(collector, sites)
        n_rounds += 1
    assert n_rounds > 2
    model = collector.result()
    assert len(set(model.queried_indices_)) == 80
    assert model.score(*rows[3:]) > 0.6


def test_the_result_has_nothing_of_made_up_rows(rows, tmp_path):
    study = study_of(rows, VOTES)
    model = run(study, sites_of(study, rows, tmp_path)).result()
    assert not {"privacy_analysis_", "data_problems_"} & vars(model).keys()


def test_a_model_over_sites_is_published_with_report_and_metrics(rows, tmp_path):
    study = study_of(rows)
    fitted = run(study, sites_of(study, rows, tmp_path)).result()
    model = fitted.publish()
    measured = study_of(rows, model, measure={"epsilon": 0.5})
    (tmp_path / "metrics").mkdir()
    sites = sites_of(measured, rows, tmp_path / "metrics")
    metrics = run(measured, sites).result()
    assert metrics.sites_ == (3, 1)
    alone = private_metrics(model, rows[0], rows[1], epsilon=0.5)
    assert abs(metrics["accuracy"].value - alone["accuracy"].value) < 0.1
    metrics.save(tmp_path / "metrics.json")
    loaded = PrivateMetrics.load(tmp_path / "metrics.json")
    assert loaded.privacy_spent_ == metrics.privacy_spent_
    published = fitted.publish(metrics=metrics)
    assert 1.1 < published.privacy_spent_.epsilon < 1.3
    page = PrivacyReport.from_estimator(published).to_markdown()
    assert "Distributed: each site keeps its raw data" in page
    assert "Did the sites read the fingerprint to each other" in page


def test_a_card_with_other_numbers_of_sites_is_refused(rows, tmp_path):
    study = study_of(rows)
    model = run(study, sites_of(study, rows, tmp_path)).result().publish()
    model.save(tmp_path / "model.skops")
    loaded = PublishedClassifier.load(tmp_path / "model.skops")
    assert loaded.privacy_spent_ == study.privacy_spent
    assert loaded.card["mechanism"]["class"] == "SharedNoise"
    for name, value in (("n_colluding", 2), ("n_sites", 4), ("n_colluding", 0)):
        forged = loaded.card
        forged["mechanism"]["parameters"][name] = value
        with pytest.raises(ValueError, match=r"its other fields give|n_colluding=0"):
            checked_statements(forged)


def test_numbers_and_times_are_measured_over_sites(rows, tmp_path):
    X, _, X_public, *_ = rows
    time = 3 + X[:, 0] / 4
    event = np.arange(3000) % 3 > 0
    survival = np.zeros(3000, dtype=[("event", bool), ("time", float)])
    survival["event"], survival["time"] = event, time.clip(0.1)
    for kind, model, y, name in (
        ("number", BinnedRegressor(DPNewtonClassifier(), bins=(0, 6)), time, "r2"),
        (
            "time",
            DiscreteSurvival(DPNewtonClassifier(), intervals=[1, 2, 3, 4, 5]),
            survival,
            "concordance",
        ),
    ):
        fitted = model.fit(X[:2000], y[:2000], X_public=X_public)
        (tmp_path / kind).mkdir()
        study = study_of(rows, fitted.publish(), measure={"epsilon": 2.0})
        sites = {
            name: Site(study, name, X[part], y[part], ledger=ledger)
            for name, part in PARTS.items()
            for ledger in [ledger_at(tmp_path / kind, name, 2.0)]
        }
        metrics = run(study, sites).result()
        assert isinstance(metrics, OutcomeMetrics)
        alone = private_metrics(fitted, X, y, epsilon=2.0)
        assert metrics[name].value == pytest.approx(alone[name].value, abs=0.15)


def test_subgroups_and_groups_are_measured_over_sites(rows, tmp_path):
    X, y, X_public, *_ = rows
    model = NEWTON.fit(X[:500], y[:500], X_public=X_public).publish()
    measure = {"epsilon": 2.0, "subgroup_values": ["young", "old"]}
    study = Study(model, X_public, sites=NAMES, measure=measure)
    sites = {
        name: Site(
            study,
            name,
            X[part],
            y[part],
            groups=np.arange(3000)[part],
            subgroups=np.where(np.arange(3000) % 3, "young", "old")[part],
            ledger=ledger_at(tmp_path, name, 2.0),
        )
        for name, part in PARTS.items()
    }
    metrics = run(study, sites).result()
    assert metrics.n_rows_ is None
    assert list(metrics.by_subgroup) == ["young", "old", "other or missing"]
    accuracy = np.mean(model.predict(X) == y)
    assert metrics["accuracy"].value == pytest.approx(accuracy, abs=0.05)
