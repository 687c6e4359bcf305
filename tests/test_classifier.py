import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sklearn_pate import (
    PATEClassifier,
    PrivacyLeakWarning,
    PublicData,
    PublicDataWarning,
    StudentWarning,
)
from sklearn_pate.mechanisms import ConfidentGNMax, GNMax, LNMax
from tests.seeding import equal_noise

QUIET = GNMax(sigma=1.0)


def make(estimator=None, student=None, **parameters):
    defaults = {
        "n_teachers": 20,
        "mechanism": QUIET,
        "epsilon": None,
        "random_state": 0,
    }
    return PATEClassifier(
        DecisionTreeClassifier() if estimator is None else estimator,
        student,
        **(defaults | parameters),
    )


# The main job, on real data


@pytest.mark.slow
@pytest.mark.parametrize(
    "epsilon", [1.0, pytest.param(2.0, marks=pytest.mark.thorough)]
)
def test_adult_student_is_accurate_at_a_publishable_epsilon(data_set, epsilon):
    X, y = data_set("adult", return_X_y=True)
    pate = PATEClassifier(
        RandomForestClassifier(5, max_features=0.5),
        RandomForestClassifier(30, min_samples_leaf=20),
        n_teachers=200,
        mechanism="gnmax",
        epsilon=epsilon,
        random_state=0,
        n_jobs=2,
    ).fit(X[:32561], y[:32561], X_public=PublicData(X[32561:37560]))
    assert pate.privacy_spent_.epsilon <= epsilon
    assert pate.privacy_spent_.n_queries == 2000
    assert pate.score(X[37560:], y[37560:]) > 0.79  # always "<=50K": 0.764


@pytest.mark.thorough
def test_patients_with_many_stays_are_protected_as_a_whole(data_set):
    diabetes = data_set("diabetes130", as_frame=True)
    few = slice(12_000)
    X = diabetes.data[few].select_dtypes("int64")
    y = np.where(diabetes.target[few] == "NO", "stays away", "comes back")
    patients = diabetes.groups[few]
    pate = PATEClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()),
        n_teachers=50,
        epsilon=1.0,
        privacy_unit="group",
        public_size=0.3,
        random_state=0,
    )
    with pytest.warns(PublicDataWarning):
        pate.fit(X, y, groups=patients)
    public = set(patients[pate.public_indices_])
    private = set(np.delete(patients, pate.public_indices_))
    assert public.isdisjoint(private)
    assert pate.privacy_spent_.unit == "group"
    assert "add or remove one group" in pate.privacy_spent_.neighbours
    assert set(pate.predict(X)) <= {"stays away", "comes back"}


# The statement


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("mechanism", "epsilon"),
    [
        ("gnmax", 0.3),
        pytest.param("lnmax", 3.0, marks=pytest.mark.thorough),
        ("confident", 0.3),
        pytest.param("gnmax", 3.0, marks=pytest.mark.thorough),
        pytest.param("lnmax", 0.3, marks=pytest.mark.thorough),
        pytest.param("confident", 3.0, marks=pytest.mark.thorough),
    ],
)
def test_a_target_epsilon_is_met_and_used_up(blobs, mechanism, epsilon):
    X, y, X_public, _ = blobs
    pate = make(mechanism=mechanism, epsilon=epsilon, student=DecisionTreeClassifier())
    pate.fit(X, y, X_public=PublicData(X_public))
    spent, delta = pate.privacy_spent_
    assert 0.999 * epsilon < spent <= epsilon
    assert delta == 1e-5
    assert pate.privacy_spent_.curve.to_epsilon(delta) >= spent


@pytest.mark.thorough
def test_the_statement_is_a_text_and_a_dictionary(blobs):
    X, y, X_public, _ = blobs
    spent = (
        make(epsilon=1.0, mechanism="gnmax")
        .fit(X, y, X_public=PublicData(X_public))
        .privacy_spent_
    )
    assert repr(spent) == "PrivacySpent(epsilon=1.000, delta=1e-05)"
    sentence = spent.in_one_line()
    for part in (
        "epsilon=1.000, delta=1e-05",
        "Replace one row",
        "300 queries to 20 teachers",
        "GNMax(sigma=",
        "This fit alone",
        "which was read from the training data",
        "Everybody may see the public rows, and ",
    ):
        assert part in sentence
    facts = spent.to_dict()
    assert facts["epsilon"] == spent.epsilon
    assert facts["n_queries"] == 300
    assert json.loads(json.dumps(facts)) == facts


def test_numbers_of_numpy_are_stated_as_plain_ones(blobs):
    X, y, X_public, _ = blobs
    clf = make(n_teachers=np.int64(20), n_queries=np.int64(50))
    spent = clf.plan_privacy(X, y, X_public=PublicData(X_public))
    assert json.loads(json.dumps(spent.to_dict()))["n_queries"] == 50


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn_pate.StudentWarning")  # few answers
def test_the_statement_does_not_depend_on_private_values(blobs):
    X, y, X_public, _ = blobs
    other_X, other_y = X[::-1] * 3, np.roll(y, 1)
    statements = [
        make(mechanism=ConfidentGNMax(0.9, 5, 5))
        .fit(X, y, X_public=PublicData(X_public))
        .privacy_spent_
        for X, y in ((X, y), (other_X, other_y))
    ]
    assert statements[0] == statements[1]


def test_confident_pays_for_its_cap_however_few_were_answered(blobs):
    X, y, X_public, _ = blobs
    mechanism = ConfidentGNMax(1000, 5, 5, max_answers=10)  # no count reaches 1000
    with pytest.warns(StudentWarning, match="No query was answered"):
        pate = make(mechanism=mechanism).fit(X, y, X_public=PublicData(X_public))
    assert pate.privacy_spent_.curve == mechanism.cost(300, 3).curve


@pytest.mark.slow
def test_seeded_noise_voids_the_statement_and_repeats(blobs):
    X, y, X_public, _ = blobs

    def fit():
        pate = make(mechanism=GNMax(sigma=30))
        with equal_noise():
            return pate.fit(X, y, X_public=PublicData(X_public))

    one, other = fit(), fit()
    assert one.privacy_spent_.epsilon == np.inf
    assert (one.privacy_spent_.curve * 2).to_epsilon(0.1) == np.inf
    assert "no privacy guarantee" in str(one.privacy_spent_)
    np.testing.assert_array_equal(one.answers_, other.answers_)


@pytest.mark.slow
def test_random_state_fixes_everything_but_the_noise(blobs):
    X, y, X_public, _ = blobs

    def fit(sigma):
        pate = make(RandomForestClassifier(3), mechanism=GNMax(sigma=sigma))
        return pate.fit(X, y, X_public=PublicData(X_public))

    one, other = fit(100), fit(100)
    np.testing.assert_array_equal(one.queried_indices_, other.queried_indices_)
    np.testing.assert_array_equal(
        one.privacy_analysis_.plurality, other.privacy_analysis_.plurality
    )
    assert not np.array_equal(one.answers_, other.answers_)


def test_each_public_row_is_asked_at_most_once(blobs):
    X, y, X_public, _ = blobs
    pate = make(n_queries=300).fit(X, y, X_public=PublicData(X_public))
    assert len(set(pate.queried_indices_)) == len(pate.answers_) == 300


def test_a_delta_of_one_over_n_rows_warns(blobs):
    X, y, X_public, _ = blobs
    with pytest.warns(PrivacyLeakWarning, match="1 / 600"):
        make(delta=1 / 600).fit(X, y, X_public=PublicData(X_public))


# Labels, classes and answers


@pytest.mark.slow
@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes", "perhaps"]),
        np.array(["no", "yes", "perhaps"], dtype=object),
        np.array([-1, 5, 7], dtype=np.int8),
        np.array([0.0, 1.0, 2.0], dtype=np.float32),
        np.array([0.0, 1.0, 2.0], dtype=np.float16),
    ],
)
def test_labels_of_any_type_come_back_as_they_were(blobs, labels):
    X, y, X_public, y_public = blobs
    pate = make().fit(X, labels[y], X_public=PublicData(X_public))
    np.testing.assert_array_equal(pate.classes_, np.unique(labels))
    assert pate.predict(X).dtype == labels.dtype
    assert pate.score(X_public, labels[y_public]) > 0.9


def test_boolean_labels(blobs):
    X, y, X_public, _ = blobs
    pate = make().fit(X, y == 0, X_public=PublicData(X_public))
    assert pate.predict(X).dtype == bool


def test_classes_are_not_read_from_y_if_they_are_given(blobs):
    X, y, X_public, _ = blobs
    pate = make(classes=["a", "b", "c", "never seen"])
    pate.fit(X, np.array(["a", "b", "c"])[y], X_public=PublicData(X_public))
    assert pate.classes_.tolist() == ["a", "b", "c", "never seen"]
    probabilities = pate.predict_proba(X_public)
    assert probabilities.shape == (300, 4)
    assert np.all(probabilities[:, 3] == 0)
    assert "read from" not in pate.privacy_spent_.in_one_line()


def test_a_row_with_a_label_outside_classes_is_dropped(blobs):
    X, y, X_public, _ = blobs
    pate = make(classes=[0, 1]).fit(X, y, X_public=PublicData(X_public))
    assert set(pate.predict(X)) <= {0, 1}
    assert pate.n_features_in_ == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "odd", ["other", 0.5, None, np.nan, pd.NA, 10**30, (1, 2), ["unhashable"]]
)
def test_one_odd_label_is_dropped_and_moves_no_other_row(blobs, odd):
    X, y, X_public, y_public = blobs
    labels = np.array(y, dtype=object)
    labels[3] = odd

    def plurality(labels):
        pate = make(classes=[0, 1, 2]).fit(X, labels, X_public=PublicData(X_public))
        assert pate.score(X_public, y_public) > 0.9
        return pate.privacy_analysis_.plurality

    clean = plurality(y)
    assert np.mean(plurality(labels) == clean) > 0.98
    assert np.mean(plurality(labels.tolist()) == clean) > 0.98


def test_one_class_in_y_is_enough_if_classes_are_given(blobs):
    X, _, X_public, _ = blobs
    with pytest.warns(StudentWarning, match="one class"):
        pate = make(classes=["ill", "well"]).fit(
            X, ["well"] * len(X), X_public=PublicData(X_public)
        )
    assert set(pate.predict(X)) == {"well"}
    np.testing.assert_array_equal(pate.predict_proba(X[:1]), [[0, 1]])


def test_without_answers_the_student_predicts_all_classes_alike(blobs):
    X, y, X_public, _ = blobs
    with pytest.warns(StudentWarning, match="No query was answered"):
        pate = make(mechanism=ConfidentGNMax(1000, 1, 1)).fit(
            X, y, X_public=PublicData(X_public)
        )
    assert set(pate.answers_) == {-1}
    np.testing.assert_allclose(pate.predict_proba(X[:2]), np.full((2, 3), 1 / 3))


# Containers


def test_float32_reaches_the_student_as_float32(blobs):
    X, y, X_public, _ = blobs
    seen = []

    class Student(DecisionTreeClassifier):
        def fit(self, X, y):
            seen.append((X.dtype, y.dtype))
            return super().fit(X, y)

    make(student=Student()).fit(
        X.astype(np.float32), y, X_public=PublicData(X_public.astype(np.float32))
    )
    assert set(seen) == {(np.dtype(np.float32), np.dtype(np.int64))}


@pytest.mark.slow
@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_sparse_rows(blobs, container):
    X, y, X_public, y_public = blobs
    pate = make(LogisticRegression()).fit(
        container(X), y, X_public=PublicData(container(X_public))
    )
    assert pate.score(container(X_public), y_public) > 0.9


def test_images_keep_their_dimensions(digits):
    X, y = digits

    class OnImages(DecisionTreeClassifier):
        def fit(self, X, y):
            assert X.shape[1:] == (8, 8)
            return super().fit(X.reshape(len(X), -1), y)

        def predict(self, X):
            return super().predict(X.reshape(len(X), -1))

    images = X.reshape(-1, 8, 8)
    student = OnImages(max_depth=8)
    pate = make(OnImages(), student).fit(
        images[:1000], y[:1000], X_public=images[1000:1500]
    )
    assert pate.score(images[1500:], y[1500:]) > 0.4


def by_name():
    encoder = ColumnTransformer(
        [
            ("sex", OneHotEncoder(handle_unknown="ignore"), ["sex", "race"]),
            ("numbers", StandardScaler(), ["age", "education-num", "hours-per-week"]),
        ]
    )
    return make_pipeline(encoder, LogisticRegression())


@pytest.mark.thorough
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_column_transformer_inside_the_teacher_finds_columns_by_name(
    data_set, library
):
    X, y = data_set("adult", as_frame=True, return_X_y=True)
    X = X.astype({"sex": str, "race": str})
    X = X[["age", "sex", "race", "education-num", "hours-per-week"]]
    if library == "polars":
        X = pl.DataFrame({name: X[name].to_numpy() for name in X})
    pate = make(by_name(), n_teachers=50, n_jobs=2)
    pate.fit(X[:8000], y[:8000], X_public=PublicData(X[8000:9000]))
    assert pate.feature_names_in_.tolist() == list(X.columns)
    assert pate.score(X[9000:12_000], y[9000:12_000]) > 0.77
    reversed_columns = X[list(X.columns)[::-1]]
    with pytest.raises(ValueError, match="feature names"):
        pate.predict(reversed_columns)


def test_public_rows_must_be_a_frame_if_private_rows_are(blobs):
    X, y, X_public, _ = blobs
    with pytest.raises(ValueError, match="dataframes with the same columns for both"):
        make().fit(pd.DataFrame(X, columns=["a", "b"]), y, X_public=X_public)


def test_a_student_that_scales_in_place_leaves_public_rows_alone(blobs):
    X, y, X_public, _ = blobs
    public = PublicData(X_public.copy())
    student = make_pipeline(StandardScaler(copy=False), LabelSpreading())
    make(student=student).fit(X, y, X_public=public)
    np.testing.assert_array_equal(public.X, X_public)


@pytest.mark.slow
def test_missing_values_reach_teachers_that_take_them(blobs):
    X, y, X_public, _ = blobs
    X = X.copy()
    X[::5, 0] = np.nan
    for teacher, n_dropped in [
        (RandomForestClassifier(3), 0),
        (make_pipeline(SimpleImputer(), LogisticRegression()), 0),
        (LogisticRegression(), 0),  # behind a TableRepresentation
        (GaussianNB(), len(X[::5])),
    ]:
        pate = make(teacher).fit(X, y, X_public=PublicData(X_public))
        texts = [text for _, text in pate.privacy_analysis_.teacher_warnings]
        assert sum(int(text.split()[0]) for text in texts) == n_dropped


# Prediction


def test_a_student_without_probabilities_offers_scores_only(blobs):
    X, y, X_public, y_public = blobs
    pate = make(student=LinearSVC()).fit(X, y, X_public=PublicData(X_public))
    assert not hasattr(pate, "predict_proba")
    assert pate.decision_function(X_public).shape == (300, 3)
    assert pate.score(X_public, y_public) > 0.9


@pytest.mark.parametrize(
    ("classes", "shape"), [([0, 1], (300,)), ([0, 1, 2], (300, 3))]
)
def test_scores_have_a_column_for_every_class(blobs, classes, shape):
    X, y, X_public, _ = blobs
    two = y < 2
    pate = make(student=LinearSVC(), classes=classes)
    pate.fit(X[two], y[two], X_public=PublicData(X_public))
    scores = pate.decision_function(X_public)
    assert scores.shape == shape
    if len(classes) == 3:
        assert np.all(scores[:, 2] < scores[:, :2].min())
        assert np.all(np.isfinite(scores))
        np.testing.assert_array_equal(scores.argmax(axis=1), pate.predict(X_public))


@pytest.mark.slow
def test_one_against_one_scores_pass_through_or_are_refused(blobs, digits):
    X, y = digits
    ovo = SVC(decision_function_shape="ovo")
    pate = make(student=ovo).fit(X[:900], y[:900], X_public=X[900:1300])
    assert pate.decision_function(X[:5]).shape == (5, 45)
    seen = y < 4
    pate = make(student=ovo, classes=range(10))
    pate.fit(X[:900][seen[:900]], y[:900][seen[:900]], X_public=X[900:1300])
    with pytest.raises(ValueError, match="SVC learned 4 of 10 classes"):
        pate.decision_function(X[:5])


# Defaults


def test_auto_teachers_are_the_root_of_the_private_rows(blobs):
    X, y, X_public, _ = blobs
    pate = make(n_teachers="auto").fit(X, y, X_public=PublicData(X_public))
    assert pate.privacy_spent_.n_teachers == 24  # of 600 rows


@pytest.mark.slow
def test_public_size_holds_out_rows_once(blobs):
    X, y, _, _ = blobs
    with pytest.warns(PublicDataWarning, match="120 private rows"):
        pate = make(public_size=0.2).fit(X, y)
    assert len(pate.public_indices_) == 120
    assert pate.queried_indices_.max() < 120
    assert "held out as public rows" in pate.privacy_spent_.in_one_line()
    X_public = PublicData(X[:50].copy())
    refitted = pate.set_params(public_size=None).fit(X, y, X_public=X_public)
    assert not hasattr(refitted, "public_indices_")


@pytest.mark.slow
def test_lnmax_analysis_gives_the_papers_figure_below_the_worst_case(blobs):
    X, y, X_public, _ = blobs
    pate = make(n_teachers=60, mechanism=LNMax(0.2), n_queries=50)
    pate.fit(X, y, X_public=PublicData(X_public))
    analysis = pate.privacy_analysis_
    assert analysis.epsilon < pate.privacy_spent_.epsilon
    assert analysis.epsilon <= analysis.optimal_epsilon <= analysis.paper_epsilon
