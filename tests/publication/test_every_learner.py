"""Every private classifier is published, saved, loaded and reported."""

import json
import pickle
import subprocess
import sys
import warnings
from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pate import (
    PrivacyLeakWarning,
    PrivacyLedger,
    PublicData,
    PublishedClassifier,
)
from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.learners import DPLogisticRegression
from sklearn_pate.model_selection import PrivateSearchCV
from sklearn_pate.publication import publish
from sklearn_pate.testing import seeded_noise
from tests.cases import thorough_but
from tests.inspection.report.registry_schema import violations
from tests.private import last_step, model_fingerprint, read_released
from tests.publication.learners import (
    CLASSES,
    LEARNERS,
    TRUSTED,
    WITHOUT_PUBLIC,
    assert_predicts_alike,
    fit,
)


@pytest.fixture(scope="module", params=LEARNERS)
def name(request):
    return request.param


@pytest.fixture
def fitted(name, fits):
    return fits(name)


@pytest.fixture
def saved(fitted, tmp_path):
    path = tmp_path / "model.skops"
    fitted.publish().save(path)
    return path


@pytest.fixture(scope="module")
def fingerprints_elsewhere(fits, originals, rows, tmp_path_factory):
    """Fingerprints that another process reads, by name: of two pickles and a file."""
    folder = tmp_path_factory.mktemp("elsewhere")
    for number, name in enumerate(LEARNERS):
        originals(name)
        fits(name).predict(rows[0][2200:])  # which must not change it
        for kind, model in (("fitted", fits(name)), ("published", originals(name))):
            (folder / f"{number}.{kind}").write_bytes(pickle.dumps(model))
        originals(name).save(folder / f"{number}.skops")
    code = (
        "import json, pathlib, pickle, sys\n"
        "from sklearn_pate._estimators._fingerprints import model_fingerprint\n"
        "from sklearn_pate.publication import PublishedClassifier\n"
        "from tests.publication.learners import TRUSTED\n"
        "folder, found = pathlib.Path(sys.argv[1]), []\n"
        "for path in sorted(folder.glob('*.skops'), key=lambda path: int(path.stem)):\n"
        "    pickles = path.with_suffix('.fitted'), path.with_suffix('.published')\n"
        "    models = [pickle.loads(one.read_bytes()) for one in pickles]\n"
        "    models.append(PublishedClassifier.load(path, trusted=TRUSTED))\n"
        "    found.append([*map(model_fingerprint, models)])\n"
        "print(json.dumps(found))"
    )
    elsewhere = subprocess.run(
        [sys.executable, "-c", code, folder], check=True, capture_output=True, text=True
    )
    return dict(zip(LEARNERS, json.loads(elsewhere.stdout), strict=True))


@pytest.mark.slow
def test_a_model_has_one_fingerprint_wherever_it_is(
    name, fitted, originals, fingerprints_elsewhere
):
    published = originals(name)
    before = published.card["model_fingerprint"]
    assert fingerprints_elsewhere[name] == 3 * [before]
    assert model_fingerprint(fitted) == model_fingerprint(clone(published)) == before


@pytest.mark.slow
def test_its_statement_is_read_without_its_student(fitted, saved):
    assert read_released(saved).card["statement"] == fitted.privacy_spent_.in_one_line()


@pytest.mark.slow
def test_what_is_published_predicts_and_states_the_same(fitted, rows):
    published = fitted.publish()
    assert_predicts_alike(fitted, published, rows[0][2200:])
    assert published.privacy_spent_ == fitted.privacy_spent_
    assert published.card["statement"] == fitted.privacy_spent_.in_one_line()


@pytest.mark.slow
def test_a_registry_takes_its_record(fitted, saved):
    loaded = PublishedClassifier.load(saved, trusted=TRUSTED)
    record = PrivacyReport.from_estimator(loaded).to_registry()
    of_fit = PrivacyReport.from_estimator(fitted).to_registry()
    for name in ("dp_variant", "privacy_loss", "deployment_model"):
        assert record["deployment"][name] == of_fit["deployment"][name]
    missing = "/deployment/basic/data_curators[]/data_curator_type"
    assert violations(record) == [missing]


def test_a_saved_model_comes_back_with_the_types_that_were_named(
    fitted, tmp_path, rows
):
    path = tmp_path / "model.skops"
    trusted = fitted.publish().save(path)
    loaded = PublishedClassifier.load(path, trusted=trusted)
    assert_predicts_alike(fitted, loaded, rows[0][2200:])
    assert str(loaded.privacy_spent_) == str(fitted.privacy_spent_)
    assert loaded.privacy_spent_.epsilon == fitted.privacy_spent_.epsilon
    for name in ("epsilons", "deltas"):  # computed again from the card
        one, other = (
            getattr(spent.profile, name)
            for spent in (loaded.privacy_spent_, fitted.privacy_spent_)
        )
        np.testing.assert_allclose(one, other, rtol=1e-14, atol=0)


@pytest.mark.parametrize("kind", ["objective", "dpsgd"])
@pytest.mark.parametrize("value", [np.nan, np.inf, "unknown", None])
def test_a_value_that_is_no_number_is_read_as_the_fit_reads_it(kind, value, fits, rows):
    X = rows[0][2200:2210].astype(object if isinstance(value, str | None) else float)
    X[3, 0] = value
    fitted = fits(kind)
    assert_predicts_alike(fitted, fitted.publish(), X)


def test_a_pickled_model_comes_back(fitted, rows):
    unpickled = pickle.loads(pickle.dumps(fitted.publish()))
    assert_predicts_alike(fitted, unpickled, rows[0][2200:])


def test_a_saved_model_is_reported_as_the_fit_is(fitted, saved):
    loaded = PublishedClassifier.load(saved, trusted=TRUSTED)
    of_fit = PrivacyReport.from_estimator(fitted).to_dict()
    of_file = PrivacyReport.from_estimator(loaded, model_file=saved).to_dict()
    for name in ("statement", "epsilon", "delta", "kind", "promise", "n_classes"):
        assert of_file[name] == of_fit[name]
    assert of_file["private"]


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_an_unfitted_classifier_is_not_published(learner):
    with pytest.raises(NotFittedError):
        clone(learner).publish()


def test_a_classifier_without_privacy_is_not_published(rows):
    with pytest.raises(ValueError, match="pass a private classifier of sklearn_pate"):
        publish(LogisticRegression().fit(rows[0][:200], rows[1][:200]))


@pytest.mark.parametrize("kind", ["pate", "knn", "petdl", "objective", "dpsgd"])
def test_a_plan_takes_the_arguments_of_fit(kind, rows):
    learner = LEARNERS[kind]
    with pytest.raises(TypeError, match=r"arguments of fit, and .*'X_pubic'"):
        learner.plan_privacy(*rows, X_pubic=rows[0])


@pytest.mark.parametrize("kind", ["pate", "petdl", "objective", "dpsgd"])
def test_a_published_model_does_not_name_the_ledger(kind, rows, tmp_path):
    ledger = PrivacyLedger(tmp_path / "patients.sqlite", epsilon=10, delta=1e-5)
    learner = clone(LEARNERS[kind]).set_params(ledger=ledger)
    fitted = fit(learner, rows, public=kind not in WITHOUT_PUBLIC)
    content = pickle.dumps(fitted.publish())
    assert b"patients.sqlite" in pickle.dumps(fitted)
    assert b"patients.sqlite" not in content


@pytest.mark.slow
def test_the_winner_of_a_search_is_published_under_the_cost_of_the_search(
    fits, tmp_path
):
    search = fits("search")
    published = search.best_estimator_.publish()
    assert published.privacy_spent_.epsilon == search.privacy_spent_.epsilon
    published.save(tmp_path / "winner.skops")
    loaded = PublishedClassifier.load(tmp_path / "winner.skops")
    assert loaded.privacy_spent_.epsilon == search.privacy_spent_.epsilon
    assert loaded.privacy_spent_.release == "search"
    assert loaded.privacy_spent_.profile == search.privacy_spent_.profile


def test_steps_in_front_of_a_winner_are_published_without_folders(rows, tmp_path):
    public = make_pipeline(StandardScaler(), memory=str(tmp_path)).fit(rows[0][2000:])
    front = FrozenEstimator(public)
    learner = PrivateSearchCV(
        make_pipeline(front, DPLogisticRegression(data_norm=3.0)),
        {"dplogisticregression__C": [0.1, 1.0]},
        mean_n_trials=2,
        classes=CLASSES,
    )
    search = fit(learner, rows, public=False)
    published = search.publish()
    assert_predicts_alike(search, published, rows[0][2200:])
    assert str(tmp_path).encode() not in pickle.dumps(published)
    before = published.predict_proba(rows[0][2200:])
    public[-1].scale_[:] = 1e9  # what is published is a copy
    np.testing.assert_array_equal(published.predict_proba(rows[0][2200:]), before)


@pytest.mark.thorough
def test_the_winner_of_a_search_of_searches_comes_back(rows, tmp_path):
    learner = PrivateSearchCV(
        LEARNERS["search"], {"mean_n_trials": [2, 3]}, mean_n_trials=2
    )
    search = fit(learner, rows)
    winner = search.best_estimator_.best_estimator_
    winner.publish().save(tmp_path / "winner.skops")
    loaded = PublishedClassifier.load(tmp_path / "winner.skops")
    assert_predicts_alike(search, loaded, rows[0][2200:])
    assert loaded.privacy_spent_.epsilon == search.privacy_spent_.epsilon


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", thorough_but(["pate", "newton", "objective", "dpsgd"], LEARNERS)
)
def test_a_seeded_fit_comes_back_without_a_guarantee(kind, rows, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with seeded_noise(5):
            seeded = fit(LEARNERS[kind], rows, public=kind not in WITHOUT_PUBLIC)
        seeded.publish().save(tmp_path / "void.skops")
    loaded = PublishedClassifier.load(tmp_path / "void.skops", trusted=TRUSTED)
    assert loaded.privacy_spent_ == seeded.privacy_spent_
    assert loaded.privacy_spent_.epsilon == np.inf
    assert loaded.card["epsilon"] is None
    report = PrivacyReport.from_estimator(loaded).to_markdown()
    assert "No privacy guarantee." in report


@pytest.mark.thorough
def test_the_winner_of_a_seeded_search_comes_back_without_a_guarantee(rows, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with seeded_noise(5):
            winner = fit(LEARNERS["search"], rows).best_estimator_
        winner.publish().save(tmp_path / "void.skops")
    loaded = PublishedClassifier.load(tmp_path / "void.skops")
    assert loaded.card["epsilon"] is None
    assert np.isinf(loaded.privacy_spent_.epsilon)


@pytest.mark.parametrize("kind", ["search", "pure search"])
def test_a_winner_that_is_fitted_again_is_published_under_that_fit(
    kind, fits, rows, tmp_path
):
    winner = last_step(deepcopy(fits(kind)).best_estimator_)
    again = {"X_public": PublicData(rows[0][2000:2200])} if kind == "search" else {}
    winner.fit(rows[0][:2000], rows[1][:2000], **again)
    winner.publish().save(tmp_path / "again.skops")
    loaded = PublishedClassifier.load(tmp_path / "again.skops")
    assert str(loaded.privacy_spent_) == str(winner.privacy_spent_)
    assert "PrivateSearchCV" not in str(loaded.privacy_spent_)


def test_bounds_that_were_read_from_the_rows_are_published_with_a_warning(
    rows, tmp_path
):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = fit(DPLogisticRegression(classes=CLASSES), rows, public=False)
    with pytest.warns(PrivacyLeakWarning, match="no privacy guarantee"):
        published = fitted.publish()
    assert published.card["epsilon"] is None
    assert published.privacy_spent_.attack_accuracy() == 1
    published.save(tmp_path / "model.skops")
    loaded = PublishedClassifier.load(tmp_path / "model.skops")
    assert loaded.privacy_spent_ == published.privacy_spent_
