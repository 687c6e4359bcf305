"""Published model: a student that predicts as before, and its statement only."""

import json
import pickle
import struct
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sklearn_pate import (
    PATEClassifier,
    PublicData,
    PublicDataWarning,
)
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.publication import PublishedClassifier, publish
from sklearn_pate.students import ReweightedClassifier
from tests.publication.saving import PLANTED_SEED, assert_same, card_of, fit

PLANTED_FEATURE = 98765.4321
PLANTED_GROUP = "patient 31415926"


# Prediction.


def test_it_predicts_as_the_fit_did(fitted, published, digits):
    X, y = digits
    assert_same(published, fitted, X[1400:])
    names = np.array(list("abcdefghij"))[y[1400:]]
    assert published.score(X[1400:], names) == fitted.score(X[1400:], names) > 0.5
    assert published.n_features_in_ == 64
    with pytest.raises(ValueError, match="63 features"):
        published.predict(X[:, 1:])


@pytest.mark.thorough
def test_it_is_of_the_kind_of_the_student_that_is_weighted(digits):
    X, y = digits
    private, X_public = (X[:1200], y[:1200]), X[1200:1400]
    clf = fit(*private, GaussianNB(), X_public, mechanism="gnmax", epsilon=8.0)
    published = clf.publish()
    assert isinstance(published.student_, ReweightedClassifier)
    assert published.card["model"] == "sklearn.naive_bayes.GaussianNB"
    assert not get_tags(published).input_tags.allow_nan
    with pytest.raises(ValueError, match="PublishedClassifier does not accept missing"):
        published.predict(X[:1] * np.nan)


def test_it_carries_the_statement(fitted, published):
    assert tuple(published.privacy_spent_) == tuple(fitted.privacy_spent_)
    assert str(published.privacy_spent_) == str(fitted.privacy_spent_)


@pytest.mark.slow
def test_it_works_in_tools_that_take_fitted_estimators(published, digits):
    X, y = digits
    X, y = X[1400:], np.array(list("abcdefghij"))[y[1400:]]
    check_is_fitted(published)
    frozen = FrozenEstimator(published)
    calibrated = CalibratedClassifierCV(frozen).fit(X, y)
    assert calibrated.score(X, y) > 0.5
    importance = permutation_importance(
        published, X[:50], y[:50], n_repeats=1, random_state=0
    )
    assert importance.importances_mean.shape == (64,)
    scores = cross_val_score(frozen, X, y, cv=3)
    assert np.mean(scores) == pytest.approx(published.score(X, y), abs=0.01)


def test_it_is_never_trained_again(published, digits):
    X, y = digits
    with pytest.raises(TypeError, match="cannot be fitted"):
        published.fit(X, y)
    assert clone(published) is published


def test_a_fit_that_did_not_happen_is_not_published():
    with pytest.raises(NotFittedError):
        publish(PATEClassifier())
    with pytest.raises(NotFittedError):
        PublishedClassifier().predict([[0.0]])
    with pytest.raises(NotFittedError):
        PublishedClassifier().save("model.skops")
    with pytest.raises(NotFittedError):
        _ = PublishedClassifier().card
    assert repr(PublishedClassifier()) == "PublishedClassifier()"
    assert not hasattr(PublishedClassifier(), "predict_proba")


@pytest.mark.parametrize(
    "estimator",
    [
        GaussianNB().fit([[0.0], [1.0]], [0, 1]),
        make_pipeline(StandardScaler(), PATEClassifier()),
        PublishedClassifier(),
        "model.skops",
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_what_is_no_private_classifier_is_not_published(estimator):
    name = type(estimator).__name__
    with pytest.raises(
        ValueError, match=rf"estimator is of type {name}, which .* pass a"
    ):
        publish(estimator)


def test_it_stays_as_it_is_when_the_estimator_is_fitted_again(digits):
    X, y = digits
    pate = fit(X[:900], y[:900], GaussianNB(), X[900:1400])
    published = publish(pate)
    before = published.predict_proba(X[1400:])
    pate.student_.theta_[:] = 0
    np.testing.assert_array_equal(published.predict_proba(X[1400:]), before)


@pytest.mark.slow
def test_sparse_rows_are_taken_where_the_student_takes_them(fitted, published, digits):
    X = sp.csr_matrix(digits[0][1400:])
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        publish(
            fit(digits[0][:900], digits[1][:900], GaussianNB(), digits[0][900:])
        ).predict(X)
    pate = fit(
        digits[0][:900], digits[1][:900], KNeighborsClassifier(), digits[0][900:]
    )
    np.testing.assert_array_equal(
        publish(pate).predict(X), publish(pate).predict(X.toarray())
    )


def test_printing_shows_the_student_and_the_statement(published):
    for shown in (repr(published), published._repr_html_()):
        assert "StandardScaler" in shown
        assert "LogisticRegression" in shown
        assert "GaussianNB" not in shown, "the teacher"
    assert repr(published.privacy_spent_) in repr(published)
    assert str(published.privacy_spent_) in published._repr_html_()
    assert set(published._repr_mimebundle_()) == {"text/plain", "text/html"}


# The card.


def test_the_card_agrees_with_the_statement(fitted, published):
    card, spent = published.card, fitted.privacy_spent_
    assert card["statement"] == spent.in_one_line()
    stated = spent.to_dict()
    for name in ("epsilon", "delta", "unit", "relation", "n_teachers", "n_queries"):
        assert card[name] == stated[name]
    assert card["assumptions"] == stated["assumptions"]
    assert card["mechanism"] == {"class": "GNMax", "parameters": {"sigma": 1}}
    assert card["classes"] == list("abcdefghij")
    assert card["n_features"] == 64
    assert card["feature_names"] is None
    assert card["model"] == "sklearn.pipeline.Pipeline"
    assert card["versions"]["scikit-learn"] == sklearn.__version__
    assert card["versions"]["numpy"] == np.__version__
    assert {"python", "sklearn_pate", "scipy"} - {"scipy"} <= set(card["versions"])
    assert len(card["date"]) == len("2026-01-31")


def test_the_card_is_strict_json_without_numpy(published):
    def refuse(constant):
        raise AssertionError(constant)

    text = json.dumps(published.card, allow_nan=False)
    assert json.loads(text, parse_constant=refuse) == published.card


def test_the_card_cannot_be_edited_through_the_classifier(published):
    published.card["epsilon"] = 0.1
    assert published.card["epsilon"] > 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labels", "written"),
    [
        (np.array([3, 7, 11]), [3, 7, 11]),
        (np.array([0.5, 1.5, 2.5]).round(), [0, 2]),
        (np.array([-1.0, 0.0, 4.0]), [-1.0, 0.0, 4.0]),
        (np.array(["x", "y", "z"], dtype=object), ["x", "y", "z"]),
        (np.array([False, True, True]), [False, True]),
    ],
)
def test_labels_of_any_type_come_back_as_they_were(blobs, tmp_path, labels, written):
    X, y, X_public, _ = blobs
    published = publish(fit(X, labels[y], GaussianNB(), X_public))
    assert published.card["classes"] == written
    assert [type(one) for one in published.card["classes"]] == [
        type(one) for one in published.classes_.tolist()
    ]
    published.save(tmp_path / "model.skops")
    loaded = PublishedClassifier.load(tmp_path / "model.skops")
    assert_same(loaded, published, X)


def test_a_void_statement_is_published_as_void(void, tmp_path, blobs):
    assert void.card["epsilon"] is None
    assert "no privacy guarantee" in void.card["statement"]
    void.save(tmp_path / "void.skops")
    text = (tmp_path / "void.json").read_text()
    assert '"epsilon": null' in text
    loaded = PublishedClassifier.load(tmp_path / "void.skops")
    assert np.isinf(loaded.privacy_spent_.epsilon)
    assert_same(loaded, void, blobs[0])


def test_the_seed_of_the_noise_is_not_published(void):
    assert str(PLANTED_SEED) not in str(void.privacy_spent_) + json.dumps(void.card)
    packed = pickle.dumps(void)
    assert struct.pack("<I", PLANTED_SEED) not in packed
    assert str(PLANTED_SEED).encode() not in packed


# Content that must not be published.


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A fit with secrets in every place where one might be."""
    folder = tmp_path_factory.mktemp("a folder with a telling name")
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=900)
    X = rng.normal(size=(900, 4)) + 3 * y[:, None]
    X[::7, 0] = PLANTED_FEATURE
    groups = np.array([f"patient {one}" for one in range(900)])
    groups[5] = PLANTED_GROUP
    X[groups == PLANTED_GROUP, 1] = -PLANTED_FEATURE
    teacher = make_pipeline(
        StandardScaler(), DecisionTreeClassifier(), memory=str(folder / "teachers")
    )
    student = make_pipeline(
        StandardScaler(), DecisionTreeClassifier(), memory=str(folder / "students")
    )
    pate = PATEClassifier(
        teacher,
        student,
        n_teachers=40,
        mechanism=GNMax(sigma=2),
        epsilon=None,
        privacy_unit="group",
        memory=folder / "votes",
        random_state=PLANTED_SEED,
    )
    X_public = rng.normal(size=(60, 4)) + rng.uniform(0, 6, size=(60, 1))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("USER", "LOGNAME", "USERNAME"):
            patch.setenv(name, "planted user")
        patch.setenv("HOSTNAME", "planted host")
        pate.fit(X, y, X_public=PublicData(X_public), groups=groups)
    teacher.fit(X, y)  # to compare with, as one does
    analysis = pate.privacy_analysis_
    figures = (PLANTED_FEATURE, -PLANTED_FEATURE, analysis.epsilon)
    secrets = [
        *(struct.pack(form, figure) for figure in figures for form in ("<d", ">d")),
        *(struct.pack("<f", figure) for figure in figures[:2]),
        *(repr(figure).encode() for figure in figures),
        analysis.counts.tobytes(),
        analysis.plurality.tobytes(),
        PLANTED_GROUP.encode(),
        str(PLANTED_SEED).encode(),
        struct.pack("<i", PLANTED_SEED),
        b"telling name",
        b"planted user",
        b"planted host",
        pate.queried_indices_.tobytes(),
    ]
    return pate, X, secrets


def unpacked(path):
    """The bytes of a model file and its card, compressed members too."""
    with zipfile.ZipFile(path) as archive:
        members = [archive.read(name) for name in archive.namelist()]
        stamps = {member.date_time for member in archive.infolist()}
    assert stamps == {(1980, 1, 1, 0, 0, 0)}, "the time of day, and the time zone"
    return b"\n".join([path.read_bytes(), card_of(path).read_bytes(), *members])


@pytest.fixture(params=["pickle", "files"])
def artefact(request, planted, tmp_path):
    published = publish(planted[0])
    if request.param == "pickle":
        return pickle.dumps(published)
    published.save(tmp_path / "model.skops")
    return unpacked(tmp_path / "model.skops")


def test_the_secrets_are_there_to_be_found(planted):
    pate, X, secrets = planted
    leaky = pickle.dumps([X, pate, pate.get_params(), pate.privacy_analysis_.__dict__])
    leaky += PLANTED_GROUP.encode()
    assert sum(secret in leaky for secret in secrets) >= 7


def test_what_is_published_holds_no_secret(planted, artefact):
    assert [secret for secret in planted[2] if secret in artefact] == []


def test_it_holds_the_student_and_the_statement_only(planted):
    assert sorted(vars(publish(planted[0]))) == [
        "_card",
        "_known_columns",
        "classes_",
        "model_privacy_spent_",
        "n_features_in_",
        "privacy_spent_",
        "student_",
    ]
    assert publish(planted[0]).get_params() == {}


def test_which_rows_were_public_is_not_published(blobs):
    X, y, _, _ = blobs
    pate = PATEClassifier(
        GaussianNB(), n_teachers=20, public_size=0.2, epsilon=5.0, random_state=0
    )
    with pytest.warns(PublicDataWarning):
        pate.fit(X, y)
    assert pate.public_indices_.tobytes() not in pickle.dumps(publish(pate))
