"""The number of trials and their scores appear in no output."""

import io
import logging
import pickle
import re
import warnings

import joblib
import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import estimator_html_repr

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.model_selection import PrivateSearchCV
from tests.model_selection.learners import FITS, Constant

X = np.arange(60.0)[:, np.newaxis]
Y = np.array([0, 1, 1] * 20)
LAWS = ("logarithmic", "geometric", "poisson", "disjoint")
# A score of 7777 hundredths, say, or 41 fits would be a number in some attribute.
PUBLISHED = {
    "best_params_",
    "best_estimator_",
    "classes_",
    "data_problems_",
    "mechanism_",
    "privacy_spent_",
    "n_features_in_",
}


def search(**parameters):
    return PrivateSearchCV(Constant(), {"answer": [0, 1]}, **parameters)


@pytest.mark.parametrize("distribution", LAWS)
def test_a_fitted_search_has_no_other_attributes(distribution):
    searched = search(n_trials_distribution=distribution).fit(X, Y)
    assert {*vars(searched)} == {*searched.get_params(deep=False)} | PUBLISHED


def state_without_best(searched):
    """Return the state of a search without its best estimator and sensitive text."""
    state = dict(vars(searched))
    for name in ("best_params_", "best_estimator_", "data_problems_"):
        state.pop(name)
    return state


@pytest.mark.slow
def test_the_state_does_not_depend_on_the_number_of_trials():
    searched = search(mean_n_trials=5, random_state=0)
    left, n_fits = set(), set()
    for _ in range(20):
        FITS.clear()
        left.add(joblib.hash(state_without_best(searched.fit(X, Y))))
        n_fits.add(len(FITS))
    assert len(n_fits) > 1
    assert len(left) == 1


@pytest.mark.slow
def test_the_best_estimator_does_not_depend_on_the_number_of_trials():
    searched = search(mean_n_trials=5, random_state=0)
    found, n_fits = set(), set()
    for _ in range(30):
        FITS.clear()
        best = searched.fit(X, Y).best_estimator_
        n_fits.add(len(FITS))
        # Without its seed, which is random.
        found.add(joblib.hash((best.answer, vars(best) | {"random_state": 0})))
    assert len(n_fits) > 1
    assert len(found) <= 2


@pytest.mark.slow
def test_the_length_of_a_pickle_does_not_depend_on_the_number_of_trials():
    searched = search(mean_n_trials=5, random_state=0)
    lengths, n_fits = set(), set()
    for _ in range(20):
        FITS.clear()
        searched.fit(X, Y).best_estimator_.set_params(random_state=0)
        n_fits.add(len(FITS))
        lengths.add(len(pickle.dumps(searched)))
    assert len(n_fits) > 1
    assert len(lengths) == 1


@pytest.mark.slow
def test_earlier_fits_are_not_in_the_best_estimator_or_in_pickles():
    rng = np.random.default_rng(0)
    X, X_public = rng.normal(size=(400, 2)), rng.normal(size=(50, 2))
    y = (X[:, 0] > 0).astype(int)
    fitted = GaussianNB().fit(X, y)
    secret = fitted.theta_.tobytes()
    assert secret in pickle.dumps(fitted)
    pate = PATEClassifier(n_teachers=5, n_queries=5, epsilon=4)
    searched = PrivateSearchCV(
        pate, [{"estimator": [fitted]}, {"student": [fitted]}], mean_n_trials=2
    ).fit(X, y, X_public=PublicData(X_public))
    [best] = searched.best_params_.values()
    assert not hasattr(best, "theta_")
    assert secret not in pickle.dumps(searched)
    best.fit(X, y)  # by whoever publishes it
    again = pickle.loads(pickle.dumps(searched))
    assert not any(hasattr(one, "theta_") for one in again.best_params_.values())
    np.testing.assert_array_equal(again.predict(X), searched.predict(X))
    assert hasattr(fitted, "theta_")


def test_a_pickle_holds_no_fit_of_the_estimator():
    searched = PrivateSearchCV(Constant().fit(X, Y), {"answer": [0]})
    assert not hasattr(pickle.loads(pickle.dumps(searched)).estimator, "classes_")


@pytest.mark.parametrize("distribution", LAWS)
@pytest.mark.parametrize("output", [{"prints": True}, {"verbose": 3}])
def test_trials_have_no_output(distribution, output, capfd):
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            searched = PrivateSearchCV(
                Constant(**output),
                {"answer": [0, 1]},
                n_trials_distribution=distribution,
                mean_n_trials=3,
            ).fit(X, Y)
        logging.getLogger("a test").critical("logged afterwards")
    finally:
        logging.getLogger().removeHandler(handler)
    assert len(FITS) > 0
    assert caught == []
    assert tuple(capfd.readouterr()) == ("", "")
    assert log.getvalue() == "logged afterwards\n"
    assert "a fit" not in repr(searched)


@pytest.mark.slow
def test_callbacks_do_not_run_in_trials():
    callbacks = pytest.importorskip("sklearn.callback")
    calls = []

    class Recorder(callbacks.ProgressBar):
        def setup(self, estimator, context):
            calls.append(estimator)

        def teardown(self, estimator, context):
            calls.append(estimator)

    rng = np.random.default_rng(0)
    X, X_public = rng.normal(size=(400, 2)), rng.normal(size=(50, 2))
    pate = PATEClassifier(GaussianNB(), n_teachers=5, epsilon=4)
    pate.set_callbacks(Recorder())
    PrivateSearchCV(pate, {"n_queries": [5]}, mean_n_trials=2).fit(
        X, (X[:, 0] > 0).astype(int), X_public=PublicData(X_public)
    )
    assert calls == []
    assert pate._skl_callbacks != []


def test_what_is_printed_shows_no_scores():
    searched = search(mean_n_trials=5, random_state=0).fit(X, Y)
    shown = repr(searched) + estimator_html_repr(searched)
    assert not re.search(r"score_|scores_|\bn_trials_?\b|cv_results", shown)


@pytest.mark.slow
def test_the_error_of_a_trial_is_not_shown():
    one_fails = PrivateSearchCV(
        Constant(),
        [{"fails": [True]}, {"answer": [1]}],
        n_trials_distribution="disjoint",
    )
    # Scores of 0 and 8 of 12, at epsilon 1: e^-4 that the failure is chosen.
    errors = []
    for _ in range(20):
        try:
            one_fails.fit(X, Y)
        except RuntimeError as error:
            errors.append(error)
    assert not any("secret" in str(one) or one.__context__ for one in errors)
    assert one_fails.best_params_ == {"answer": 1}
