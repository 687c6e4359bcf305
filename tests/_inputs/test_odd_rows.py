"""One odd value in one private row: no fit fails, warns or is stated differently."""

import datetime
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.utils import get_tags

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PublicData,
    StudentWarning,
    TeacherWarning,
)
from sklearn_pate.learners import (
    Clusters,
    DPLinearSVC,
    DPLogisticRegression,
    DPNaiveBayesClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.model_selection import PrivateSearchCV
from tests._inputs.odd_values import NUMBERS, ODD_ROW, WORDS, X_PUBLIC, X, Y, with_value
from tests._teachers.polls import poll_teachers
from tests.private import (
    _predicted_codes,
    as_words,
    cells_of,
    check_features,
    class_indices,
    odd_rows,
    read_like_public,
    read_numbers,
    shard_rows,
    takes_missing,
    without_words,
)

# The student is trained on noisy answers, of which there are few here.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn_pate.StudentWarning")


def pate(teacher, **parameters):
    defaults = {
        "student": GaussianNB(),
        "mechanism": GNMax(sigma=5.0),
        "epsilon": None,
        "n_teachers": 4,
        "n_queries": 5,
        "query_strategy": "random",
        "random_state": 0,
    }
    return PATEClassifier(teacher, **(defaults | parameters))


LEARNERS = {
    "PATE": pate(GaussianNB()),
    "PATE, pipeline": pate(make_pipeline(StandardScaler(), LogisticRegression())),
    "PATE, forest": pate(RandomForestClassifier(2)),
    "PATE, representation": pate(GaussianNB(), representation=PCA(2)),
    "Newton": DPNewtonClassifier(random_state=0),
    "Newton, representation": DPNewtonClassifier(representation=PCA(2), random_state=0),
    "PETDL": PETDLClassifier(
        GaussianNB(),
        GaussianNB(),
        n_teachers=4,
        batches=Clusters(5),
        epsilon=None,
        noise_scale=5.0,
        random_state=0,
    ),
    "neighbours": PrivateKNNClassifier(
        GaussianNB(), n_queries=5, n_neighbors=5, random_state=0
    ),
    "neighbours, representation": PrivateKNNClassifier(
        GaussianNB(),
        n_queries=5,
        n_neighbors=5,
        representation=PCA(2),
        random_state=0,
    ),
    "logistic regression, norm": DPLogisticRegression(data_norm=5),
    "logistic regression, bounds": DPLogisticRegression(feature_bounds=(-5, 5)),
    "Gaussian machine": DPLinearSVC(method="gaussian", data_norm=5),
    "counts": DPNaiveBayesClassifier((-5, 5)),
    "search": PrivateSearchCV(
        DPLogisticRegression(data_norm=5),
        {"intercept_scaling": [1, 2]},
        mean_n_trials=2,
    ),
}
TEACHES = ("PATE", "PETDL", "PrivateKNN", "DPNewton")
SPARSE = {
    "Newton": DPNewtonClassifier(random_state=0),
    "PATE": pate(LogisticRegression(), student=LogisticRegression()),
    "PATE, pipeline": pate(
        make_pipeline(StandardScaler(with_mean=False), LogisticRegression()),
        student=LogisticRegression(),
    ),
}


CONTAINERS = {
    "float64": NUMBERS,
    "float32": NUMBERS,
    "object array": [*NUMBERS, *WORDS],
    "list": [np.inf, None, "much"],
    "pandas": NUMBERS,
    "pandas Float64": [pd.NA, np.inf],
    "pandas object": [*NUMBERS, *WORDS],
    "polars": [np.nan, None, np.inf],
    "sparse": NUMBERS,
}
CASES = [
    (learner, container)
    for container in CONTAINERS
    for learner in (SPARSE if container == "sparse" else LEARNERS)
]
# Every learner reads one container, and two learners read every container.
READ_BY_ALL = {"pandas object", "sparse"}
READ_ALL = {"PATE, pipeline", "counts"}


def fitted(learner, X, container):
    """Return the statement, the warnings and the fitted learner."""
    public = {}
    if learner.__class__.__name__.startswith(TEACHES):
        like = "pandas" if container.startswith("pandas") else container
        rows = with_value(X_PUBLIC, 0.5, "float64" if like == "list" else like)
        public = {"X_public": PublicData(rows)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # These are made of noisy answers alone.
        warnings.simplefilter("ignore", StudentWarning)
        # The last one depends on other fits of this process.
        warnings.filterwarnings(
            "ignore", "The private rows vary|The model|The released|2 fits of the same"
        )
        learner.fit(X, Y, **public)
    spent = learner.privacy_spent_
    stated = (repr(spent), spent.epsilon, spent.mechanism, spent.assumptions)
    return stated, sorted({(one.category, str(one.message)) for one in caught}, key=str)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "container"),
    [
        pytest.param(
            name,
            container,
            marks=()
            if container in READ_BY_ALL or name in READ_ALL
            else pytest.mark.thorough,
        )
        for name, container in CASES
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_one_odd_value_in_a_private_row_has_no_visible_effect(name, container):
    learner = (SPARSE if container == "sparse" else LEARNERS)[name]
    clean = fitted(learner, with_value(X, 0.5, container), container)
    for value in CONTAINERS[container]:
        odd = fitted(learner, with_value(X, value, container), container)
        assert odd == clean, value


@pytest.mark.parametrize(
    "teacher", [GaussianNB(), make_pipeline(StandardScaler(), GaussianNB())]
)
def test_one_odd_row_changes_one_teacher_only(teacher):
    def votes(X):
        votes, problems = poll_teachers(
            teacher, X, Y, shard_rows(120, 4, 0), X_PUBLIC, n_classes=2, seeds=range(4)
        )
        return votes.counts(np.arange(20)), problems

    left_out = np.delete(X, ODD_ROW, axis=0)
    shards = [
        np.where(rows > ODD_ROW, rows - 1, rows)[rows != ODD_ROW]
        for rows in shard_rows(120, 4, 0)
    ]
    without, _ = poll_teachers(
        teacher, left_out, np.delete(Y, ODD_ROW), shards, X_PUBLIC, n_classes=2,
        seeds=range(4),
    )  # fmt: skip
    counts, problems = votes(with_value(X, np.nan, "float64"))
    np.testing.assert_array_equal(counts, without.counts(np.arange(20)))
    assert [n_rows for _, n_rows in problems.dropped] == [1]
    assert not problems, "whether rows were dropped would be seen in a warning"
    clean, _ = votes(X)
    assert np.abs(counts - clean).sum(axis=1).max() <= 2


def test_dropped_rows_are_reported_in_the_sensitive_channel_only():
    clf = pate(GaussianNB())
    with warnings.catch_warnings():
        warnings.simplefilter("error", TeacherWarning)
        clf.fit(with_value(X, np.nan, "float64"), Y, X_public=PublicData(X_PUBLIC))
    [(_, text)] = clf.privacy_analysis_.teacher_warnings
    assert text == "1 row dropped for missing or infinite values"
    assert "dropped" not in repr(clf.privacy_analysis_) + str(clf.privacy_spent_)


WORKERS = ["a", "b", None] * 40


@pytest.mark.slow
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_rows_are_kept_if_the_teacher_takes_them(library):
    def frame(X, jobs):
        return library({"job": jobs, "age": [*X[:-1, 0], None], "pay": X[:, 1]})

    columns = ColumnTransformer(
        [
            ("text", OneHotEncoder(handle_unknown="ignore"), ["job"]),
            ("numbers", SimpleImputer(), ["age", "pay"]),
        ]
    )
    clf = pate(make_pipeline(columns, LogisticRegression()), student=None)
    clf.fit(frame(X, WORKERS), Y, X_public=PublicData(frame(X_PUBLIC, WORKERS[:20])))
    assert clf.privacy_analysis_.teacher_warnings == []
    assert clf.privacy_analysis_.teacher_failures == []


@pytest.mark.parametrize(
    "wrap",
    [
        lambda pipeline: VotingClassifier([("only", pipeline)]),
        lambda pipeline: Wrapped(pipeline),
    ],
    ids=["voting", "own"],
)
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_rows_are_kept_if_the_wrapper_of_the_teacher_takes_them(wrap, library):
    def frame(X):
        missing = np.where(np.arange(len(X)) % 3 == 0, np.nan, X[:, 1])
        return library({"a": X[:, 0], "b": missing})

    columns = ColumnTransformer([("all", SimpleImputer(), ["a", "b"])])
    learner = pate(wrap(make_pipeline(columns, GaussianNB())))
    learner.set_params(student=wrap(make_pipeline(columns, GaussianNB())))
    learner.fit(frame(X), Y, X_public=PublicData(frame(X_PUBLIC)))
    assert learner.privacy_analysis_.teacher_warnings == []


class Wrapped(ClassifierMixin, BaseEstimator):
    def __init__(self, estimator_with_a_name_of_its_own=None):
        self.estimator_with_a_name_of_its_own = estimator_with_a_name_of_its_own

    def fit(self, X, y):
        self.fitted_ = clone(self.estimator_with_a_name_of_its_own).fit(X, y)
        self.classes_ = self.fitted_.classes_
        return self

    def predict(self, X):
        return self.fitted_.predict(X)


NO_TEXT = [5, 2.5, datetime.date(2020, 1, 2), True, [1, 2], (1,), 1j, 10**5000]


@pytest.mark.slow
@pytest.mark.parametrize("value", NO_TEXT, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    "contain", [partial(pd.DataFrame, columns=["a", "b"], dtype=object), np.array]
)
def test_one_value_that_is_no_text_fails_no_teacher(contain, value):
    words = np.array([["red", "big"], ["blue", "small"]], dtype=object)[Y]
    odd = words.copy()
    odd[ODD_ROW, 0] = value
    teacher = make_pipeline(
        OneHotEncoder(handle_unknown="ignore"), LogisticRegression()
    )
    learner = pate(teacher, student=teacher)
    learner.fit(contain(odd), Y, X_public=PublicData(contain(words[:20])))
    assert learner.privacy_analysis_.teacher_failures == []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_in_a_list_have_the_type_of_public_ones(dtype):
    learner = pate(GaussianNB())
    public = check_features(learner, list(X_PUBLIC.astype(dtype)), reset=True)
    rows = check_features(learner, list(X.astype(dtype)), reset=True, private=True)
    assert read_like_public(rows, public).dtype == public.dtype == dtype


def test_numbers_beyond_all_floats_are_read_without_a_warning():
    rows = np.array([[np.longdouble("1e400")], [1.0]], dtype=object)
    assert read_numbers(rows)[1] == 1.0


def test_only_the_kind_of_odd_value_that_is_refused_is_dropped():
    odd = X.copy()
    odd[::3, 1], odd[ODD_ROW, 0] = np.nan, np.inf
    clf = pate(RandomForestClassifier(2)).fit(odd, Y, X_public=PublicData(X_PUBLIC))
    assert [text[:2] for _, text in clf.privacy_analysis_.teacher_warnings] == ["1 "]


@pytest.mark.parametrize("container", ["float64", "pandas", "polars", "object array"])
@pytest.mark.parametrize(
    "teacher", [GaussianNB(), make_pipeline(StandardScaler(), LogisticRegression())]
)
def test_a_column_without_values_is_explained(teacher, container):
    missing = X.copy()
    missing[:, 1] = np.nan
    rows = with_value(missing, np.nan, container)
    public = with_value(X_PUBLIC, 0.5, container)
    with pytest.raises(
        ValueError, match=r"had rows to train on.*Put an imputer inside"
    ):
        pate(teacher).fit(rows, Y, X_public=PublicData(public))


@pytest.mark.parametrize("container", ["float64", "pandas", "polars"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_odd_public_rows_are_refused_before_the_first_query(container, value):
    public = with_value(X_PUBLIC, value, container)
    rows = with_value(X, 0.5, container)
    with pytest.raises(ValueError, match=r"Input X_public contains (NaN|infinity)"):
        pate(GaussianNB()).fit(rows, Y, X_public=PublicData(public))


@pytest.mark.parametrize("container", ["float64", "pandas"])
def test_public_rows_may_miss_values_that_teacher_and_student_take(container):
    imputing = make_pipeline(SimpleImputer(), LogisticRegression())
    public = with_value(X_PUBLIC, np.nan, container)
    clf = pate(imputing, student=imputing)
    clf.fit(with_value(X, 0.5, container), Y, X_public=PublicData(public))
    assert clf.privacy_analysis_.teacher_failures == []
    assert get_tags(clf).input_tags.allow_nan
    with pytest.raises(ValueError, match="X_public contains NaN"):
        pate(imputing, student=GaussianNB()).fit(
            with_value(X, 0.5, container), Y, X_public=PublicData(public)
        )


IMPUTED_COLUMN = ColumnTransformer([("a", SimpleImputer(), [0])])


@pytest.mark.parametrize(
    ("estimator", "takes"),
    [
        (GaussianNB(), False),
        (RandomForestClassifier(), True),
        (make_pipeline(StandardScaler(), GaussianNB()), False),
        (make_pipeline(StandardScaler(), RandomForestClassifier()), True),
        (make_pipeline(StandardScaler(), SimpleImputer(), GaussianNB()), True),
        (make_pipeline(OrdinalEncoder(), GaussianNB()), None),
        (make_pipeline(FunctionTransformer(np.nan_to_num), GaussianNB()), None),
        (make_pipeline(IMPUTED_COLUMN, GaussianNB()), None),
        (BaggingClassifier(make_pipeline(SimpleImputer(), GaussianNB())), True),
        (BaggingClassifier(GaussianNB()), False),
    ],
)  # fmt: skip
def test_support_of_missing_values_is_read_from_the_estimator(estimator, takes):
    assert takes_missing(estimator) is takes


def test_a_pipeline_that_may_take_missing_values_is_tried_with_them():
    teacher = make_pipeline(FunctionTransformer(np.nan_to_num), GaussianNB())
    odd = with_value(X, np.nan, "float64")
    clf = pate(teacher).fit(odd, Y, X_public=PublicData(X_PUBLIC))
    assert clf.privacy_analysis_.teacher_warnings == []


def test_a_representation_that_returns_missing_values_loses_no_teacher():
    odd = with_value(X, np.nan, "float64")
    clf = pate(LogisticRegression(), representation=StandardScaler())
    clf.fit(odd, Y, X_public=PublicData(X_PUBLIC))
    assert [text[:2] for _, text in clf.privacy_analysis_.teacher_warnings] == ["1 "]
    assert clf.privacy_analysis_.teacher_failures == []


# DP-ERM


@pytest.mark.parametrize("bounds", [None, (-5, 5), ([-1, -2, -3], [4, 4, 4])])
def test_a_row_is_brought_within_the_bounds_alone_bit_by_bit(bounds):
    learner = DPLogisticRegression(data_norm=2, feature_bounds=bounds)
    bounds = learner._bounds_of(3, 2.0)
    clean = bounds.rows(X)
    for value in NUMBERS:
        rows = bounds.rows(with_value(X, value, "float64"))
        assert np.all(np.linalg.norm(rows, axis=1) <= 1 + 1e-12)
        np.testing.assert_array_equal(
            np.delete(rows, ODD_ROW, axis=0), np.delete(clean, ODD_ROW, axis=0)
        )


def test_a_missing_value_counts_as_the_middle_of_its_bounds():
    learner = DPLogisticRegression(feature_bounds=(0, 4), epsilon=100).fit(abs(X), Y)
    row = np.array([[1.0, 2.0, 3.0]])
    for value, same in [(np.nan, 2.0), (np.inf, 4.0), (-np.inf, 0.0)]:
        odd, like = row.copy(), row.copy()
        odd[0, 1], like[0, 1] = value, same
        np.testing.assert_array_equal(
            learner.decision_function(odd), learner.decision_function(like)
        )


def test_one_odd_value_removes_no_other_row_from_a_linear_fit():
    # Little noise: whether other rows still count is seen in the weights.
    learner = DPLogisticRegression(data_norm=5, epsilon=1e5, C=1.0)
    clean = learner.fit(X, Y).coef_
    for value in NUMBERS:
        odd = learner.fit(with_value(X, value, "float64"), Y).coef_
        np.testing.assert_allclose(odd, clean, atol=0.2)


# Searches


def test_a_held_out_row_that_cannot_be_predicted_counts_as_wrong():
    class Picky(ClassifierMixin, BaseEstimator):
        def predict(self, X):
            if np.isnan(X).any():
                raise ValueError("Input X contains NaN.")
            return (X[:, 0] > 0).astype(int)

    classes = np.array([0, 1])
    clean = _predicted_codes(Picky(), X, classes)
    odd = _predicted_codes(Picky(), with_value(X, np.nan, "float64"), classes)
    assert odd[ODD_ROW] == -1
    assert np.delete(odd, ODD_ROW).tolist() == np.delete(clean, ODD_ROW).tolist()


DUNDERS = [
    *["__float__", "__index__", "__int__", "__bool__", "__len__", "__iter__"],
    *["__str__", "__repr__", "__format__", "__hash__", "__eq__", "__ne__", "__lt__"],
    *["__gt__", "__abs__"],
]


@pytest.mark.parametrize("error", [RuntimeError, OverflowError, KeyError, OSError])
@pytest.mark.parametrize("dunder", DUNDERS)
def test_no_method_of_a_private_object_raises(dunder, error):
    def fails(self, *_):
        raise error("secret")

    odd = type("Odd", (), {dunder: fails})()
    column = np.array([[odd], [1.0]], dtype=object)
    assert np.isnan(read_numbers(column, refuse=False)[0, 0])
    assert read_numbers(column, refuse=False)[1, 0] == 1
    odd_rows(column)
    assert class_indices(column[:, 0], np.array([0, 1])).tolist() == [-1, 1]
    as_words([odd]), without_words([odd])
    for declared in ([0, 1], (0, 2)):
        cells = cells_of("a", declared, np.dtype(object), 2)
        assert cells.cell_of(column[:, 0])[0] == -1
