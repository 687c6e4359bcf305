"""A student of every class of scikit-learn."""

import inspect
import warnings

from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils import all_estimators

_OF_SEVERAL_TARGETS = "ClassifierChain", "MultiOutputClassifier"
_INNER = {"estimator": LogisticRegression(), "param_grid": {"C": [0.1, 1.0]}}
_INNER["param_distributions"] = _INNER["param_grid"]
_INNER["estimators"] = [("nb", GaussianNB()), ("svc", LinearSVC())]
_FAST = {"n_estimators": 5, "max_iter": 30, "n_iter": 2, "cv": 2, "n_restarts": 0}


def students_of_scikit_learn():
    """Return a small student of every class, with inner estimators as needed."""
    found = {}
    search = ("GridSearchCV", GridSearchCV)
    for name, kind in [*all_estimators(type_filter="classifier"), search]:
        parameters = inspect.signature(kind).parameters
        needed = {one.name for one in parameters.values() if one.default is one.empty}
        if not needed <= {*_INNER} or name in _OF_SEVERAL_TARGETS:
            continue
        fast = {one: value for one, value in _FAST.items() if one in parameters}
        if name in ("LinearSVC", "SVC", "NuSVC"):
            fast = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # deprecated ones, too
            found[name] = kind(**{one: _INNER[one] for one in needed}, **fast)
    # Trees draw rows whatever their weights, in bagging before scikit-learn 1.7.
    for name in ("BaggingClassifier", "RandomForestClassifier"):
        found[name].set_params(n_estimators=40)
    found["SelfTrainingClassifier"].set_params(estimator=LogisticRegression())
    scaled = make_pipeline(StandardScaler(), LogisticRegression())
    found["a pipeline"] = scaled
    found["calibrated pipeline"] = CalibratedClassifierCV(scaled, cv=3)
    found["calibrated model"] = CalibratedClassifierCV(LogisticRegression(), cv=3)
    found["pipeline of a stack"] = make_pipeline(
        StandardScaler(), StackingClassifier([("nb", GaussianNB())], cv=2)
    )
    return found
