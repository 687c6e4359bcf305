"""Searches that cannot work are refused in one sentence, before any fit or charge."""
# ruff: noqa: E501 (a table, one wrong search a line)

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.random_projection import GaussianRandomProjection

from sklearn_pate import PATEClassifier, PrivacyLedger, PublicData
from sklearn_pate.learners import PrivateKNNClassifier
from sklearn_pate.model_selection import PrivateSearchCV
from tests.model_selection.learners import FITS, Constant, NoisyMeans
from tests.sampler import Sampler

X = np.arange(120.0).reshape(60, 2)
Y = np.array([0, 1, 1] * 20)
LEDGER = "a ledger of its own"


def pipeline(*steps):
    return {"estimator": make_pipeline(*steps, Constant()), "param_grid": {}}


WRONG = {
    "an unknown law": ({"n_trials_distribution": "uniform"}, r"n_trials_distribution='uniform' is unknown; use one of \['logarithmic'"),
    "one trial": ({"mean_n_trials": 1}, r"mean_n_trials=1 must be more than 1"),
    "no trials": ({"n_trials_distribution": "poisson", "mean_n_trials": 0}, r"mean_n_trials=0 must be a positive"),
    "all rows for scores": ({"test_size": 1.0}, r"test_size=1.0 must be a number strictly between 0 and 1"),
    "a number of rows for scores": ({"test_size": 100}, r"test_size=100 must be a number strictly between 0 and 1"),
    "a delta of one": ({"delta": 1}, r"delta=1 must be a number strictly between 0 and 0.1"),
    "no ledger": ({"ledger": "patients.sqlite"}, r"ledger='patients.sqlite' is not a PrivacyLedger"),
    "one class": ({"classes": ["a"]}, r"classes=\['a'\] must list at least two"),
    "no private classifier": ({"estimator": LogisticRegression(), "param_grid": {"C": [1]}}, r"estimator=LogisticRegression\(.*\) cannot state its privacy cost before a fit; pass a private classifier"),
    "a search without privacy": ({"estimator": GridSearchCV(Constant(), {"answer": [0]}), "param_grid": {"cv": [2]}}, r"GridSearchCV\(.*cannot state its privacy cost before a fit"),
    "a pipeline without a private end": ({"estimator": make_pipeline(LogisticRegression()), "param_grid": {}}, r"cannot state its privacy cost before a fit"),
    "a scaler": (pipeline(StandardScaler()), r"standardscaler \(StandardScaler\) is fitted on private rows.* Leave it out, or fit it on public rows: FrozenEstimator"),
    "a sampler": (pipeline(Sampler()), r"sampler \(Sampler\) repeats, mixes or drops private rows.* is void\. Resample inside estimator="),
    "rows that are transformed together": ({"estimator": make_pipeline(FrozenEstimator(PCA(2).fit(np.eye(3))), PrivateKNNClassifier()), "param_grid": {}}, r"frozenestimator \(FrozenEstimator\) transforms all private rows in one call.* Pass it as representation="),
    "principal components": (pipeline(PCA()), r"pca \(PCA\) is fitted on private rows"),
    "kernels of rows": (pipeline(Nystroem()), r"nystroem \(Nystroem\) is fitted on private rows"),
    "a width of the data": (pipeline(RBFSampler(gamma="scale")), r"rbfsampler \(RBFSampler\) is fitted on private rows"),
    "a size of the number of rows": (pipeline(GaussianRandomProjection()), r"gaussianrandomprojection .* is fitted on private rows"),
    "a function of all rows": (pipeline(FunctionTransformer(lambda X: X - X.mean(axis=0))), r"functiontransformer \(FunctionTransformer\) may combine private rows"),
    "a scaler in a pipeline inside": ({"estimator": make_pipeline(RBFSampler(), make_pipeline(StandardScaler(), Constant())), "param_grid": {}}, r"standardscaler \(StandardScaler\) is fitted"),
    "a scaler in the grid": ({"estimator": make_pipeline(RBFSampler(), Constant()), "param_grid": {"rbfsampler": [StandardScaler()]}}, r"rbfsampler \(StandardScaler\) is fitted"),
    "columns that vary": (pipeline(make_column_transformer(("passthrough", lambda X: X.var(axis=0) > 1))), r"columntransformer \(ColumnTransformer\) is fitted on private rows in front"),
    "no candidates": ({"param_grid": []}, r"param_grid=\[\] has no candidate; list at least one"),
    "a seed in the grid": ({"param_grid": {"random_state": [None, 7]}}, r"random_state=7 in param_grid would be replaced by a secret seed .*leave it out"),
    "a seed in an estimator of the grid": ({"estimator": PATEClassifier(), "param_grid": {"estimator": [RandomForestClassifier(random_state=7)]}}, r"estimator__random_state=7 in param_grid"),
    "a seed in a pipeline": ({"estimator": make_pipeline(RBFSampler(), Constant()), "param_grid": {"rbfsampler__random_state": [7]}}, r"rbfsampler__random_state=7 in param_grid"),
    "a ledger of a candidate": ({"estimator": Constant(ledger=LEDGER)}, r"ledger='a ledger of its own' of the estimator would be charged for every trial.* give the ledger to PrivateSearchCV"),
    "a ledger in the grid": ({"param_grid": {"ledger": [None, LEDGER]}}, r"ledger='a ledger of its own' of the estimator"),
    "a ledger in a pipeline": ({"estimator": make_pipeline(Constant(ledger=LEDGER)), "param_grid": {}}, r"constant__ledger='a ledger of its own' of the estimator"),
    "a folder of trials": ({"estimator": Constant(memory="votes")}, r"memory='votes' of the estimator would keep results of every trial"),
    "rows that are public by chance": ({"estimator": PATEClassifier(public_size=0.2), "param_grid": {"n_queries": [5]}}, r"public_size=0.2 of the estimator would make other rows public in every trial.*X_public="),
    "two relations": ({"param_grid": {"relation": ["replace-one", "add-remove"]}}, r"relation='replace-one', and unit='row' with relation='add-remove', whose"),
    "two units": ({"param_grid": [{}, {"unit": ["group"], "relation": ["add-remove"]}]}, r"unit='row' with relation='replace-one', and unit='group' with"),
    "a candidate that cannot work": ({"estimator": NoisyMeans(), "param_grid": {"radius": [10, 0.5]}}, r"radius=0.5 must be at least 1"),
    "a parameter that is not there": ({"param_grid": {"answers": [0, 1]}}, r"Invalid parameter 'answers'"),
    "more candidates than rows": ({"param_grid": {"answer": list(range(60))}, "n_trials_distribution": "disjoint"}, r"n_samples=60 rows cannot be split into 60 training parts"),
    "candidates for few rows": ({"param_grid": {"answer": list(range(50))}, "n_trials_distribution": "disjoint"}, r"With 50 training parts, a part has no row"),
    "noise that cannot be drawn": ({"estimator": Constant(epsilon=1e-7)}, r"Scores would need noise of scale 1e\+07"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_search_is_refused_before_any_fit_or_charge(name, tmp_path):
    wrong, message = WRONG[name]
    ledger = PrivacyLedger(tmp_path / "patients.sqlite", epsilon=10, delta=1e-6)
    parameters = {
        "estimator": Constant(),
        "param_grid": {"answer": [0, 1]},
        "ledger": ledger,
    }
    search = PrivateSearchCV(**(parameters | wrong))
    FITS.clear()
    for method in (search.plan_privacy, search.fit):
        with pytest.raises(ValueError, match=message):
            method(X, Y)
    assert FITS == []
    assert ledger.entries() == []
    assert not hasattr(search, "privacy_spent_")


WRONG_DATA = {
    "no labels": (X, None, {}, ValueError, r"requires y to be passed"),
    "labels of one class": (X, np.zeros(60), {}, ValueError, r"y holds one class only"),
    "too few labels": (X, Y[:50], {}, ValueError, r"inconsistent numbers of samples"),
    "a row": (X[:1], Y[:1], {}, ValueError, r"y holds one class only"),
    "an argument that fit does not have": (X, Y, {"weights": Y}, TypeError, r"weights"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_DATA)
def test_wrong_data_are_refused_before_any_fit(name):
    X, y, params, error, message = WRONG_DATA[name]
    search = PrivateSearchCV(Constant(), {"answer": [0, 1]})
    FITS.clear()
    with pytest.raises(error, match=message):
        search.fit(X, y, **params)
    assert FITS == []


def test_missing_groups_raise_the_error_of_the_estimator():
    pate = PATEClassifier(privacy_unit="group", n_teachers=3)
    search = PrivateSearchCV(pate, {"n_queries": [5]})
    with pytest.raises(ValueError, match="privacy_unit='group' needs groups in fit"):
        search.fit(X, Y, X_public=PublicData(X))
