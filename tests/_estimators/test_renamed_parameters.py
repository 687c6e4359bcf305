"""Former names of parameters warn, and all else is as with the new name."""

import pickle
import warnings

import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.private import renamed_parameters


@renamed_parameters(n_parts="n_teachers", model="teacher")
class Renamed(ClassifierMixin, BaseEstimator):
    """Estimator of which two parameters had other names."""

    def __init__(self, teacher=None, n_teachers=250, epsilon=1.0):
        self.teacher = teacher
        self.n_teachers = n_teachers
        self.epsilon = epsilon


def warns_of(name):
    return pytest.warns(FutureWarning, match=f"^n_parts is now called {name}; use")


def test_a_former_name_in_the_constructor_warns_at_the_line_of_the_user():
    with warns_of("n_teachers") as caught:
        clf = Renamed(n_parts=7)
    assert caught[0].filename == __file__
    assert clf.n_teachers == 7
    assert clf.get_params() == {"teacher": None, "n_teachers": 7, "epsilon": 1.0}
    assert repr(clone(clf)) == "Renamed(n_teachers=7)"


def test_a_former_name_in_set_params_warns_inside_a_pipeline_too():
    pipeline = make_pipeline(StandardScaler(), Renamed(LogisticRegression()))
    with warns_of("n_teachers"):
        pipeline.set_params(renamed__n_parts=5)
    with pytest.warns(FutureWarning, match="^model__C is now called teacher__C"):
        pipeline.set_params(renamed__model__C=0.1)
    clf = clone(pipeline)[-1]
    assert (clf.n_teachers, clf.teacher.C) == (5, 0.1)


def test_new_names_and_files_of_an_earlier_version_give_no_warning():
    clf = Renamed(DummyClassifier(), n_teachers=3)
    clf.set_params(epsilon=2.0, n_teachers=4)
    vars(clf)["n_parts"] = vars(clf).pop("n_teachers")  # as earlier versions wrote it
    saved = pickle.dumps(clf)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = pickle.loads(saved)
    assert (loaded.n_teachers, loaded.epsilon) == (4, 2.0)
    assert not hasattr(loaded, "n_parts")


def test_both_names_together_are_refused():
    with pytest.raises(TypeError, match="n_parts is the former name of n_teachers"):
        Renamed(n_parts=2, n_teachers=3)
