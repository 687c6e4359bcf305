"""How many trials there were, and their scores, are nowhere to be found."""

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
from tests.model_selection.learners import FITS, Says

X = np.arange(60.0)[:, np.newaxis]
Y = np.array([0, 1, 1] * 20)
LAWS = ("logarithmic", "geometric", "poisson", "disjoint")
# A score of 7777 hundredths, say, or 41 fits would be a number in some attribute.
PUBLISHED = {
    "best_params_",
    "best_estimator_",
    "classes_",
    "mechanism_",
    "privacy_spent_",
    "n_features_in_",
}


@pytest.fixture(autouse=True)
def _no_fits_yet():
    FITS.clear()


def search(**parameters):
    return PrivateSearchCV(Says(), {"answer": [0, 1]}, **parameters)


@pytest.mark.parametrize("distribution", LAWS)
def test_a_fitted_search_has_no_other_attributes(distribution):
    searched = search(n_trials_distribution=distribution, noise_seed=None).fit(X, Y)
    assert {*vars(searched)} == {*searched.get_params(deep=False)} | PUBLISHED


def state_without_winner(searched):
    """Return all that is left of a search if its winner is taken away."""
    state = dict(vars(searched))
    for name in ("best_params_", "best_estimator_"):
        state.pop(name)
    return state


def test_what_is_left_is_the_same_however_many_trials_there_were():
    searched = search(mean_n_trials=5, random_state=0)
    left, n_fits = set(), set()
    for _ in range(20):
        FITS.clear()
        left.add(joblib.hash(state_without_winner(searched.fit(X, Y))))
        n_fits.add(len(FITS))
    # The numbers are many; what is left is one.
    assert len(n_fits) > 1
    assert len(left) == 1


def test_winners_are_the_same_however_many_trials_there_were():
    searched = search(mean_n_trials=5, random_state=0)
    winners, n_fits = set(), set()
    for _ in range(30):
        FITS.clear()
        winner = searched.fit(X, Y).best_estimator_
        n_fits.add(len(FITS))
        # But for its seed, which is a random number.
        winners.add(joblib.hash((winner.answer, vars(winner) | {"random_state": 0})))
    assert len(n_fits) > 1
    assert len(winners) <= 2


def test_a_pickle_is_as_long_however_many_trials_there_were():
    searched = search(mean_n_trials=5, random_state=0)
    lengths, n_fits = set(), set()
    for _ in range(20):
        FITS.clear()
        searched.fit(X, Y).best_estimator_.set_params(random_state=0)
        n_fits.add(len(FITS))
        lengths.add(len(pickle.dumps(searched)))
    assert len(n_fits) > 1
    assert len(lengths) == 1


def test_what_was_fitted_before_stays_out_of_the_winner_and_of_pickles():
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
    searched = PrivateSearchCV(Says().fit(X, Y), {"answer": [0]})
    assert not hasattr(pickle.loads(pickle.dumps(searched)).estimator, "classes_")


@pytest.mark.parametrize("distribution", LAWS)
@pytest.mark.parametrize("loud", [{"loud": True}, {"verbose": 3}])
def test_trials_are_silent(distribution, loud, capfd):
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            searched = PrivateSearchCV(
                Says(**loud),
                {"answer": [0, 1]},
                n_trials_distribution=distribution,
                mean_n_trials=3,
            ).fit(X, Y)
        logging.getLogger("a test").critical("said afterwards")
    finally:
        logging.getLogger().removeHandler(handler)
    assert len(FITS) > 0
    assert caught == []
    assert tuple(capfd.readouterr()) == ("", "")
    assert log.getvalue() == "said afterwards\n"
    assert "a fit" not in repr(searched)


def test_callbacks_are_not_told_of_trials():
    callbacks = pytest.importorskip("sklearn.callback")
    told = []

    class Tells(callbacks.ProgressBar):
        def setup(self, estimator, context):
            told.append(estimator)

        def teardown(self, estimator, context):
            told.append(estimator)

    rng = np.random.default_rng(0)
    X, X_public = rng.normal(size=(400, 2)), rng.normal(size=(50, 2))
    pate = PATEClassifier(GaussianNB(), n_teachers=5, epsilon=4)
    pate.set_callbacks(Tells())
    PrivateSearchCV(pate, {"n_queries": [5]}, mean_n_trials=2).fit(
        X, (X[:, 0] > 0).astype(int), X_public=PublicData(X_public)
    )
    assert told == []
    assert pate._skl_callbacks != []


def test_what_is_printed_shows_no_scores():
    searched = search(mean_n_trials=5, random_state=0).fit(X, Y)
    shown = repr(searched) + estimator_html_repr(searched)
    assert not re.search(r"score_|scores_|n_trials|cv_results", shown)


def test_an_error_in_a_trial_is_not_heard_of():
    one_fails = PrivateSearchCV(
        Says(), [{"fails": [True]}, {"answer": [1]}], n_trials_distribution="disjoint"
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
