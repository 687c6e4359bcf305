"""Tests of DPNewtonClassifier: fits, groups, ledger, data, publication."""

import pickle
import re
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits, make_blobs
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.preprocessing import StandardScaler

from sklearn_pate import (
    BudgetExceededError,
    DPNewtonClassifier,
    PrivacyLedger,
    PrivacyUtilityWarning,
    PublicData,
    PublicDataWarning,
    PublishedClassifier,
)
from sklearn_pate.inspection import (
    PrivacyReport,
    audit_neighbours,
    plan,
)
from sklearn_pate.learners import PrivateKNNClassifier
from sklearn_pate.model_selection import PrivateSearchCV
from sklearn_pate.students import ImageRepresentation, TableRepresentation
from tests.private import GaussianSum, NewtonSteps, StoredSums
from tests.seeding import equal_noise

pytestmark = pytest.mark.filterwarnings("error::sklearn_pate.PrivacyUtilityWarning")


@pytest.fixture(scope="module")
def blobs():
    """Return private rows, labels, public rows, and evaluated rows of three classes."""
    X, y = make_blobs(5000, centers=3, cluster_std=1.2, random_state=0)
    return X[:4000], y[:4000], PublicData(X[4000:4400]), X[4400:], y[4400:]


@pytest.fixture(scope="module")
def adult(data_set):
    return data_set("adult", as_frame=True, return_X_y=True)


def fitted(blobs, **parameters):
    X, y, X_public, *_ = blobs
    return DPNewtonClassifier(**{"epsilon": 2.0, "random_state": 0} | parameters).fit(
        X, y, X_public=X_public
    )


@pytest.mark.slow
def test_a_default_fit_needs_no_parameters(blobs):
    clf = fitted(blobs)
    assert isinstance(clf.mechanism_, NewtonSteps)
    spent = clf.privacy_spent_
    assert (spent.release, spent.n_teachers, spent.n_queries) == ("newton", None, None)
    assert 1.99 < spent.epsilon <= 2
    assert "every row contributed one vector of bounded length" in spent.in_one_line()
    assert clf.score(*blobs[3:]) > 0.84
    assert_array_equal(clf.coefficients_, clf.model_.coef_)


OF_PATE = re.compile(r"\b(teacher|quer(y|ies)|vote|student|update|sent|PATE)\w*", re.I)


@pytest.mark.slow
def test_no_text_describes_it_as_pate(blobs):
    clf = fitted(blobs)
    page = PrivacyReport.from_estimator(clf).to_markdown()
    card = clf.publish().card
    texts = [
        page,
        str(clf.privacy_spent_),
        card["statement"],
        str(clf.privacy_spent_.facts),
    ]
    texts.append(str(plan(clf, *blobs[:2], X_public=blobs[2])))
    assert [OF_PATE.findall(text) for text in texts] == [[]] * len(texts)


def test_a_plan_is_what_a_fit_states(blobs):
    X, y, X_public, *_ = blobs
    clf = fitted(blobs)
    planned = plan(clf, X, y, X_public=X_public)
    spent = clf.privacy_spent_
    assert clf.plan_privacy(X, y, X_public=X_public) == spent
    assert (planned.epsilon, planned.mechanism) == (spent.epsilon, spent.mechanism)
    assert 0.9 * planned.n_coordinates < len(clf.coefficients_) <= planned.n_coordinates
    assert "every row contributes one vector" in " ".join(str(planned).split())
    numbers = plan(DPNewtonClassifier(epsilon=2.0), n_rows=4000, n_classes=3)
    assert (numbers.epsilon, numbers.mechanism) == (planned.epsilon, planned.mechanism)


@pytest.mark.slow
def test_a_search_is_planned(blobs, tmp_path):
    X, y, X_public, *_ = blobs
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=9, delta=1e-4)
    clf = DPNewtonClassifier(ledger=ledger, random_state=0)
    grid = {"epsilon": [0.5, 1.0]}
    search = GridSearchCV(clf, grid, cv=KFold(2, shuffle=True, random_state=0))
    planned = plan(search, X, y, X_public=X_public)
    search.fit(X, y, X_public=X_public)
    assert planned.n_fits == len(ledger.entries()) == 5
    assert planned.fits
    after = plan(search, X, y, X_public=X_public)
    assert 0.5 * planned.share < 1 - after.left < planned.share + 1e-9


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("epsilon", "accuracy"),
    [
        pytest.param(0.25, 0.835, marks=pytest.mark.thorough),
        (1.0, 0.845),
    ],
)
def test_adult_needs_no_encoder_and_no_number(adult, epsilon, accuracy):
    X, y = adult
    clf = DPNewtonClassifier(epsilon=epsilon, random_state=0)
    clf.fit(X[:32561], y[:32561], X_public=PublicData(X[32561:37560]))
    assert clf.score(X[37560:], y[37560:]) > accuracy


@pytest.fixture(scope="module")
def rare(adult):
    """Return Adult with a sixth of the richer people, a share of 5 %."""
    X, y = adult
    poorer = np.flatnonzero(y != ">50K")
    kept = np.sort(np.r_[poorer, np.flatnonzero(y == ">50K")[::6]])
    kept = np.random.RandomState(0).permutation(kept)
    return X.iloc[kept], y.iloc[kept]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "epsilon", [0.5, pytest.param(2.0, marks=pytest.mark.thorough)]
)
@pytest.mark.parametrize("shifted", [False, True])
def test_mean_and_predicted_share_are_those_of_a_rare_class(rare, epsilon, shifted):
    X, y = rare
    public, X_test = X[20_000:25_000], X[25_000:]
    is_rare = y[25_000:].to_numpy() == ">50K"
    if shifted:  # half of the younger people are missing
        young = public["age"].to_numpy() < 35
        public = public[~young | (np.arange(5000) % 2 == 0)]
    clf = DPNewtonClassifier(epsilon=epsilon, random_state=0)
    clf.fit(X[:20_000], y[:20_000], X_public=PublicData(public))
    probabilities = clf.predict_proba(X_test)[:, 1]
    assert abs(probabilities.mean() - is_rare.mean()) < 0.01
    predicted = np.mean(clf.predict(X_test) == ">50K")
    assert is_rare.mean() / 1.5 < predicted < 1.5 * is_rare.mean()
    assert roc_auc_score(is_rare, probabilities) > 0.83


@pytest.mark.thorough
def test_public_rows_of_another_population_are_warned_of(adult):
    X, y = adult
    public = X[32561:37560]
    clf = DPNewtonClassifier(epsilon=2.0, random_state=0)
    women = PublicData(public[public["sex"] == "Female"])
    with pytest.warns(PublicDataWarning, match="unlike them"):
        clf.fit(X[:32561], y[:32561], X_public=women)
    with pytest.warns(UserWarning, match="does not know: .*'sex'"):
        scores = clf.predict_proba(X[37560:])[:, 1]
    assert roc_auc_score(y[37560:], scores) > 0.7


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"representation": None}, "representation=None is not a transformer"),
        ({"representation": PCA}, "representation=<class .*PCA'> is not a transformer"),
        ({"basis": "fourier"}, "basis='fourier' is unknown"),
        ({"max_coordinates": 0}, "max_coordinates=0"),
        (
            {"threshold": 2},
            "threshold=2 must be 'auto', 'balanced', 'accuracy' or a probability",
        ),
        ({"threshold": 0.3}, "threshold=0.3 is for two classes, but there are 3"),
        ({"threshold": "mean"}, "threshold='mean' must be 'auto', 'balanced',"),
        ({"epsilon": None}, "epsilon=None"),
        ({"epsilon": 0}, "epsilon=0"),
        ({"delta": 0}, "delta=0"),
        ({"privacy_unit": "patient"}, "privacy_unit='patient' is unknown"),
        ({"privacy_unit": "group"}, "pass n_groups, a rounded or estimated number"),
        ({"n_groups": 0}, "n_groups=0"),
        ({"public_size": 0.1}, "were both given"),
        ({"ledger": "file"}, "ledger='file' is not a PrivacyLedger"),
        ({"verbose": "loud"}, "verbose='loud'"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused_before_any_noise(
    blobs, monkeypatch, parameters, message
):
    monkeypatch.setattr(StoredSums, "draw", None)
    with pytest.raises(ValueError, match=message):
        fitted(blobs, **parameters)


def test_a_dask_collection_is_refused(blobs):
    X, y, X_public, *_ = blobs
    dask_array = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match=r"dask collection.* pass X\.compute\(\)"):
        DPNewtonClassifier().fit(dask_array.from_array(X), y, X_public=X_public)


def test_too_few_rows_are_warned_of_before_any_charge(blobs, tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=5, delta=1e-5)
    with pytest.raises(PrivacyUtilityWarning, match=r"NewtonSteps\(.*least \d+ rows"):
        fitted(blobs, epsilon=0.05, ledger=ledger)
    assert not ledger.entries()


# Groups


@pytest.mark.thorough
def test_groups_need_their_public_number(blobs):
    X, y, X_public, X_test, y_test = blobs
    groups = np.arange(4000) // 2
    clf = DPNewtonClassifier(epsilon=2.0, privacy_unit="group", random_state=0)
    with pytest.raises(ValueError, match="pass n_groups, a rounded or estimated"):
        clf.fit(X, y, X_public=X_public, groups=groups)
    for n_groups in (1500, 2000, 3000):
        clf.set_params(n_groups=n_groups).fit(X, y, X_public=X_public, groups=groups)
        assert clf.privacy_spent_.relation == "add-remove-or-change"
        assert clf.score(X_test, y_test) > 0.83


def test_the_number_of_groups_changes_nothing_that_is_stated(blobs):
    X, y, X_public, *_ = blobs
    clf = DPNewtonClassifier(
        privacy_unit="group", n_groups=2000, random_state=0, classes=[0, 1, 2]
    )
    plans = [
        clf.plan_privacy(X[:n], y[:n], X_public=X_public, groups=np.arange(n) // 2)
        for n in (4000, 3998)
    ]
    assert plans[0] == plans[1]


@pytest.mark.slow
def test_rows_of_a_table_do_not_depend_on_their_position(adult):
    """Groups are independent only if represented rows are functions of the row."""
    X, _ = adult
    representation = TableRepresentation(n_components=None).fit(X[:3000])
    together = representation.transform(X[3000:3200])
    alone = [representation.transform(X[i : i + 1])[0] for i in range(3000, 3200)]
    assert_array_equal(together, alone)
    shifted = representation.transform(X[3001:3200])
    assert_array_equal(together[1:], shifted)


# Ledger


def test_a_repeated_fit_gets_the_same_function_at_no_cost(blobs, tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=5, delta=1e-5)
    first, second = (fitted(blobs, ledger=ledger) for _ in range(2))
    assert_array_equal(first.coefficients_, second.coefficients_)
    assert len(ledger.entries()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("n_answered", range(5))
def test_a_fit_killed_between_steps_resumes(blobs, tmp_path, monkeypatch, n_answered):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=5, delta=1e-5)
    draw, done = StoredSums.draw, []

    def killed(sums, number, total):
        if number == n_answered:
            raise KeyboardInterrupt
        done.append(draw(sums, number, total))
        return done[-1]

    with monkeypatch.context() as patch:
        patch.setattr(StoredSums, "draw", killed)
        with pytest.raises(KeyboardInterrupt):
            fitted(blobs, ledger=ledger)
    assert len(done) == n_answered
    drawn = []
    release = GaussianSum.release

    def counted(self, sums, noise):
        drawn.append(sums)
        return release(self, sums, noise)

    monkeypatch.setattr(GaussianSum, "release", counted)
    clf = fitted(blobs, ledger=ledger)
    assert len(drawn) == 5 - n_answered
    assert len(ledger.entries()) == 1
    assert_array_equal(clf.coefficients_, fitted(blobs, ledger=ledger).coefficients_)
    assert len(drawn) == 5 - n_answered


def test_a_fit_beyond_the_budget_draws_nothing(blobs, tmp_path, monkeypatch):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=1, delta=1e-5)
    monkeypatch.setattr(GaussianSum, "release", None)
    with pytest.raises(BudgetExceededError, match="epsilon"):
        fitted(blobs, ledger=ledger)
    assert not ledger.entries()


# Data


def test_odd_private_values_neither_raise_nor_warn(blobs):
    X, y, X_public, *_ = blobs
    X = X.copy()
    X[:4] = [[np.nan, 0], [np.inf, 1], [-1e308, 1e308], [1e-320, 0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = DPNewtonClassifier(epsilon=2.0, classes=[0, 1, 2], random_state=0)
        clf.fit(X, y, X_public=X_public)
    assert np.all(np.isfinite(clf.predict_proba(X[4:])))


def test_strings_and_missing_values_need_no_encoder(blobs):
    X, y, X_public, X_test, y_test = blobs

    def frame(X):
        words = np.where(X[:, 0] > 0, "high", "low").astype(object)
        words[::10] = None
        return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": words})

    names = np.array(["dog", "cat", "eel"])
    clf = DPNewtonClassifier(epsilon=2.0, random_state=0)
    clf.fit(frame(X), names[y], X_public=PublicData(frame(X_public.X)))
    assert clf.score(frame(X_test), names[y_test]) > 0.84


def test_sparse_rows(blobs):
    X, y, X_public, X_test, y_test = blobs
    clf = DPNewtonClassifier(epsilon=2.0, random_state=0)
    clf.fit(sp.csr_matrix(X), y, X_public=PublicData(sp.csr_matrix(X_public.X)))
    assert clf.score(sp.csr_matrix(X_test), y_test) > 0.8


@pytest.mark.slow
def test_cross_validation_needs_no_routing(blobs):
    X, y, X_public, *_ = blobs
    clf = DPNewtonClassifier(epsilon=2.0, random_state=0)
    scores = cross_val_score(clf, X, y, cv=3, params={"X_public": X_public})
    assert scores.min() > 0.8


def test_held_out_rows_are_no_landmarks(blobs):
    X, y, *_ = blobs
    with pytest.warns(PublicDataWarning):
        clf = DPNewtonClassifier(public_size=0.1, random_state=0).fit(X, y)
    held_out = clf.representation_.transform(X[clf.public_indices_])
    landmarks = {tuple(row) for row in clf.model_.basis_.landmarks_}
    assert landmarks
    assert not landmarks & {tuple(row) for row in held_out}


@pytest.mark.slow
def test_images():
    X, y = load_digits(return_X_y=True)
    X = X.reshape(-1, 8, 8)
    clf = DPNewtonClassifier(epsilon=8.0, random_state=0)
    clf.fit(X[:1300], y[:1300], X_public=PublicData(X[1300:1600]))
    assert isinstance(clf.representation_, ImageRepresentation)
    assert clf.model_.basis_.landmarks_ is None
    assert clf.score(X[1600:], y[1600:]) > 0.5


def test_rows_without_a_known_label_are_counted_as_problems(blobs):
    clf = fitted(blobs, classes=[0, 1, 5])
    unseen, other = clf.data_problems_
    assert unseen == "No row has the label 5."
    assert re.fullmatch(r"\d+ rows left out: the label 2 is not in classes.", other)


def test_a_pickled_fit_has_nothing_for_the_data_holder_alone(blobs):
    X, y, *_ = blobs
    with pytest.warns(PublicDataWarning):
        clf = DPNewtonClassifier(public_size=0.1, random_state=0).fit(X, y)
    assert len(clf.public_indices_) > 0
    assert clf.data_problems_ == ()
    copy = pickle.loads(pickle.dumps(clf))
    assert not {"data_problems_", "public_indices_"} & vars(copy).keys()
    assert_array_equal(copy.predict_proba(X), clf.predict_proba(X))


@pytest.mark.slow
def test_seeded_noise_gives_equal_models_and_no_privacy(blobs):
    one, other = (equal_noise()(fitted)(blobs) for _ in range(2))
    assert_array_equal(one.coefficients_, other.coefficients_)
    assert np.isinf(one.privacy_spent_.epsilon)
    assert np.any(fitted(blobs).coefficients_ != fitted(blobs).coefficients_)


@pytest.mark.thorough
def test_an_audit_does_not_contradict_an_honest_fit(blobs):
    X, y, X_public, *_ = blobs
    clf = DPNewtonClassifier(delta=0.01, classes=[0, 1, 2], random_state=0)
    changed = X[:500].copy()
    changed[0] += 9
    data_sets = (X[:500], y[:500]), (changed, y[:500])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = audit_neighbours(
            clf,
            *data_sets,
            X_public=X_public,
            statistic=lambda fitted: fitted.coefficients_[0, 0],
            n_runs=20,
        )
    assert not result.contradicted


@pytest.mark.slow
def test_a_private_search_chooses_among_newton_fits(blobs):
    X, y, X_public, X_test, y_test = blobs
    search = PrivateSearchCV(
        DPNewtonClassifier(epsilon=2.0, random_state=0),
        {"basis": ["linear", "rbf"]},
        mean_n_trials=2,
        classes=[0, 1, 2],
        random_state=0,
    ).fit(X, y, X_public=X_public)
    assert isinstance(search.best_estimator_, DPNewtonClassifier)
    assert search.score(X_test, y_test) > 0.7


# Publication


@pytest.mark.slow
def test_a_published_function_predicts_as_before(blobs, tmp_path):
    clf = fitted(blobs)
    clf.publish().save(tmp_path / "model.skops")
    published = PublishedClassifier.load(tmp_path / "model.skops")
    assert_array_equal(published.predict_proba(blobs[3]), clf.predict_proba(blobs[3]))
    assert published.privacy_spent_ == clf.privacy_spent_
    page = PrivacyReport.from_estimator(published).to_html().replace("\n", " ")
    assert "each row contributes one vector of bounded length" in page


def test_a_forged_card_with_less_noise_is_refused(blobs, tmp_path):
    clf = fitted(blobs)
    clf.publish().save(tmp_path / "model.skops")
    [card] = [one for one in tmp_path.iterdir() if one.suffix == ".json"]
    text = card.read_text()
    scale = f"{clf.mechanism_.noise_scale!r}"
    assert scale in text
    card.write_text(text.replace(scale, "9.5"))
    with pytest.raises(ValueError, match="model"):
        PublishedClassifier.load(tmp_path / "model.skops")


@pytest.mark.slow
def test_odd_private_values_of_a_given_representation_do_not_raise(blobs):
    X, y, X_public, *_ = blobs
    X = X.copy()
    X[:3] = [[np.nan, 0], [np.inf, 1], [-1e308, 1e308]]
    clf = DPNewtonClassifier(
        representation=StandardScaler(),
        epsilon=2.0,
        classes=[0, 1, 2],
        random_state=0,
    ).fit(X, y, X_public=X_public)
    assert clf.score(*blobs[3:]) > 0.8
    assert clf.data_problems_ == (
        "Rows that the representation could not transform: 1.",
    )


class Slow(StandardScaler):
    """Takes 20 ms, whatever the number of rows."""

    def transform(self, X):
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        return super().transform(X)


@pytest.mark.thorough
@pytest.mark.parametrize("learner", [DPNewtonClassifier, PrivateKNNClassifier])
def test_a_representation_that_is_slow_for_a_row_is_warned_of(blobs, learner):
    X, y, X_public, *_ = blobs
    clf = learner(representation=Slow(), epsilon=8)
    few = slice(0, 4000, 40)
    with pytest.warns(UserWarning, match=r"Slow\(...\) transforms private rows one"):
        clf.fit(X[few], y[few], X_public=X_public)
