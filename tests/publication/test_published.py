"""What is published: a student that predicts as before, its statement, and no more."""

import hashlib
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
import skops.io
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from sklearn_pate import (
    PATEClassifier,
    PrivacyLeakWarning,
    PublicData,
    PublicDataWarning,
    StudentWarning,
    students,
)
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.publication import PublishedClassifier, publish
from sklearn_pate.students import DistillationClassifier, GraphSelfTrainingClassifier

TREE = "sklearn.tree._tree.Tree"
PLANTED_FEATURE = 98765.4321
PLANTED_GROUP = "patient 31415926"
PLANTED_SEED = 1234567891


def fit(X, y, student, X_public, **parameters):
    pate = PATEClassifier(
        GaussianNB(),
        student,
        **{
            "n_teachers": 20,
            "mechanism": GNMax(sigma=1),
            "epsilon": None,
            "random_state": 0,
        }
        | parameters,
    )
    return pate.fit(X, y, X_public=PublicData(X_public))


@pytest.fixture(scope="module")
def fitted(digits):
    """A logistic pipeline on digits, with text for labels."""
    X, y = digits
    names = np.array(list("abcdefghij"))[y]
    student = make_pipeline(StandardScaler(), LogisticRegression())
    return fit(X[:900], names[:900], student, X[900:1400], n_queries=500)


@pytest.fixture(scope="module")
def published(fitted):
    return publish(fitted)


@pytest.fixture
def saved(published, tmp_path):
    path = tmp_path / "model.skops"
    published.save(path)
    return path


def card_of(path):
    return path.with_suffix(".json")


def rewrite_card(path, **changes):
    card = json.loads(card_of(path).read_text()) | changes
    card_of(path).write_text(json.dumps(card))


def rewrite_model(path, change):
    """Change members of the model file, and make the sha256 on the card fit."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    rewrite_card(path, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


def assert_same(one, other, X):
    predicted = one.predict(X)
    np.testing.assert_array_equal(predicted, other.predict(X))
    assert predicted.dtype == other.predict(X).dtype
    np.testing.assert_array_equal(one.classes_, other.classes_)
    for method in ("predict_proba", "decision_function"):
        assert hasattr(one, method) == hasattr(other, method)
        if hasattr(one, method):
            np.testing.assert_array_equal(
                getattr(one, method)(X), getattr(other, method)(X)
            )


# Prediction.


def test_it_predicts_as_the_fit_did(fitted, published, digits):
    X, y = digits
    assert_same(published, fitted, X[1400:])
    names = np.array(list("abcdefghij"))[y[1400:]]
    assert published.score(X[1400:], names) == fitted.score(X[1400:], names) > 0.5
    assert published.n_features_in_ == 64
    with pytest.raises(ValueError, match="63 features"):
        published.predict(X[:, 1:])


def test_it_carries_the_statement(fitted, published):
    assert tuple(published.privacy_spent_) == tuple(fitted.privacy_spent_)
    assert str(published.privacy_spent_) == str(fitted.privacy_spent_)


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
    with pytest.raises(ValueError, match=rf"estimator is a {name}, and .* pass a"):
        publish(estimator)


def test_it_stays_as_it_is_when_the_estimator_is_fitted_again(digits):
    X, y = digits
    pate = fit(X[:900], y[:900], GaussianNB(), X[900:1400])
    published = publish(pate)
    before = published.predict_proba(X[1400:])
    pate.student_.theta_[:] = 0
    np.testing.assert_array_equal(published.predict_proba(X[1400:]), before)


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
    assert card["private"] is True
    assert card["statement"] == str(spent)
    for name, value in spent.to_dict().items():
        assert card[name] == value
    assert card["classes"] == list("abcdefghij")
    assert card["n_features"] == 64
    assert card["feature_names"] is None
    assert card["student"] == "sklearn.pipeline.Pipeline"
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


@pytest.fixture(scope="module")
def void(blobs):
    X, y, X_public, _ = blobs
    with pytest.warns(PrivacyLeakWarning):
        pate = fit(
            X,
            y,
            GaussianNB(),
            X_public,
            mechanism=GNMax(sigma=2),
            noise_seed=PLANTED_SEED,
        )
    with pytest.warns(PrivacyLeakWarning, match="no privacy guarantee") as caught:
        published = publish(pate)
    assert len(caught) == 1
    return published


def test_a_void_statement_is_published_as_void(void, tmp_path, blobs):
    assert void.card["private"] is False
    assert void.card["epsilon"] is None
    assert "no privacy guarantee" in void.card["statement"]
    void.save(tmp_path / "void.skops")
    text = (tmp_path / "void.json").read_text()
    assert '"private": false' in text
    assert '"epsilon": null' in text
    loaded = PublishedClassifier.load(tmp_path / "void.skops")
    assert np.isinf(loaded.privacy_spent_.epsilon)
    assert_same(loaded, void, blobs[0])


def test_the_seed_of_the_noise_is_not_published(void):
    assert str(PLANTED_SEED) not in str(void.privacy_spent_) + json.dumps(void.card)
    packed = pickle.dumps(void)
    assert struct.pack("<I", PLANTED_SEED) not in packed
    assert str(PLANTED_SEED).encode() not in packed


# Saving and loading.


def test_a_pipeline_comes_back_as_it_was(published, saved, digits):
    loaded = PublishedClassifier.load(saved)
    assert_same(loaded, published, digits[0])
    assert loaded.card == published.card
    spent = loaded.privacy_spent_
    assert spent.to_dict() == published.privacy_spent_.to_dict()
    assert (spent.curve + spent.curve).to_epsilon(1e-5) > spent.epsilon
    assert "LogisticRegression" in repr(loaded)
    assert_same(pickle.loads(pickle.dumps(loaded)), published, digits[0])


def test_the_files_are_the_model_and_the_card(saved, published):
    assert sorted(os.listdir(saved.parent)) == ["model.json", "model.skops"]
    card = json.loads(card_of(saved).read_text())
    assert card.pop("sha256") == hashlib.sha256(saved.read_bytes()).hexdigest()
    assert card == published.card


def test_a_pair_of_files_may_be_moved_and_saved_again(saved, published, digits):
    (saved.parent / "there").mkdir()
    moved = saved.parent / "there" / "other name.skops"
    saved.rename(moved)
    card_of(saved).rename(card_of(moved))
    loaded = PublishedClassifier.load(str(moved))
    loaded.save(moved, overwrite=True)
    assert_same(PublishedClassifier.load(moved), published, digits[0])


def test_a_forest_comes_back_once_its_trees_are_trusted(digits, tmp_path):
    X, y = digits
    student = RandomForestClassifier(n_estimators=10)
    published = publish(fit(X[:900], y[:900], student, X[900:1400]))
    path = tmp_path / "forest.skops"
    published.save(path)
    if skops.io.get_untrusted_types(file=path):  # by skops 0.16 and later
        with pytest.raises(ValueError, match=rf"trusted=\['{TREE}'\]"):
            PublishedClassifier.load(path)
    loaded = PublishedClassifier.load(path, trusted=[TREE])
    assert_same(loaded, published, X[1400:])


def test_a_frame_with_named_columns_comes_back(tmp_path):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    y = np.array(["malignant", "benign"])[y]
    columns = ["mean radius", "mean texture"]
    student = make_pipeline(
        make_column_transformer((StandardScaler(), columns)), LogisticRegression()
    )
    published = publish(fit(X[:400], y[:400], student, X[400:500]))
    assert published.card["feature_names"] == list(X.columns)
    path = tmp_path / "model.skops"
    published.save(path)
    # What scikit-learn 1.6 keeps beside the columns; plain numbers.
    names = ["sklearn.compose._column_transformer._RemainderColsList"]
    loaded = PublishedClassifier.load(path, trusted=names)
    assert_same(loaded, published, X[500:])
    np.testing.assert_array_equal(loaded.feature_names_in_, X.columns)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(X[X.columns[::-1]])


@pytest.mark.parametrize(
    "student",
    [
        DistillationClassifier(make_pipeline(StandardScaler(), LogisticRegression())),
        GraphSelfTrainingClassifier(GaussianNB()),
    ],
    ids=lambda student: type(student).__name__,
)
def test_our_own_students_need_no_trust(student, digits, tmp_path):
    X, y = digits
    published = publish(fit(X[:900], y[:900], student, X[900:1400], n_queries=200))
    published.save(tmp_path / "model.skops")
    loaded = PublishedClassifier.load(tmp_path / "model.skops")
    assert_same(loaded, published, X[1400:])


@pytest.mark.parametrize("image_shape", [None, (8, 8)])
@pytest.mark.parametrize(
    "name", ["FixMatchClassifier", "GANClassifier", "VATClassifier"]
)
def test_our_own_networks_need_no_trust(name, image_shape, digits, tmp_path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("skorch")
    X, y = digits
    student = getattr(students, name)(image_shape=image_shape, max_epochs=1)
    published = publish(fit(X[:900], y[:900], student, X[900:1100]))
    assert published.card["versions"]["torch"] == torch.__version__
    published.save(tmp_path / "model.skops")
    state = torch.random.get_rng_state()
    loaded = PublishedClassifier.load(tmp_path / "model.skops")
    assert torch.equal(torch.random.get_rng_state(), state)
    assert_same(loaded, published, X[1400:])
    assert_same(pickle.loads(pickle.dumps(loaded)), published, X[1400:])
    loaded.save(tmp_path / "again.skops")


def test_an_augmentation_of_ours_needs_no_trust(digits, tmp_path):
    pytest.importorskip("skorch")
    X, y = digits
    student = students.FixMatchClassifier(
        augmentation=students.TabularAugmentation(), max_epochs=1
    )
    published = publish(fit(X[:900], y[:900], student, X[900:1100]))
    published.save(tmp_path / "model.skops")
    loaded = PublishedClassifier.load(tmp_path / "model.skops")
    assert_same(loaded, published, X[1400:])


class InsistsOnContiguousClasses(GaussianNB):
    def fit(self, X, y):
        if len(np.unique(y)) < np.max(y) + 1:
            raise ValueError("gap")
        return super().fit(X, y)


def test_students_that_never_saw_a_class_come_back(blobs, tmp_path):
    X, y, X_public, _ = blobs
    common = {"classes": [0, 1, 2, 3], "n_queries": 100}
    y = np.where(y == 2, 3, y)
    gappy = publish(fit(X, y, InsistsOnContiguousClasses(), X_public, **common))
    gappy.save(tmp_path / "gappy.skops")
    loaded = PublishedClassifier.load(
        tmp_path / "gappy.skops", trusted=[InsistsOnContiguousClasses]
    )
    assert_same(loaded, gappy, X)
    with pytest.warns(StudentWarning):
        pate = fit(X, np.where(y < 9, 0, y), GaussianNB(), X_public, **common)
    constant = publish(pate)
    constant.save(tmp_path / "constant.skops")
    assert_same(PublishedClassifier.load(tmp_path / "constant.skops"), constant, X)
    np.testing.assert_array_equal(constant.predict(X), 0)


class OwnStudent(ClassifierMixin, BaseEstimator):
    """What a user might write."""

    def fit(self, X, y):
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        self.means_ = np.array([X[y == k].mean(axis=0) for k in self.classes_])
        return self

    def predict(self, X):
        distances = ((np.asarray(X)[:, None] - self.means_) ** 2).sum(axis=2)
        return self.classes_[distances.argmin(axis=1)]


def test_a_student_class_of_ones_own_is_loaded_once_it_is_trusted(blobs, tmp_path):
    X, y, X_public, _ = blobs
    published = publish(fit(X, y, OwnStudent(), X_public))
    path = tmp_path / "own.skops"
    published.save(path)
    name = f"{__name__}.OwnStudent"
    with pytest.raises(ValueError, match=name):
        PublishedClassifier.load(path)
    for trusted in ([name], {OwnStudent}, (OwnStudent, TREE)):
        loaded = PublishedClassifier.load(path, trusted=trusted)
        assert_same(loaded, published, X)


@pytest.mark.parametrize("trusted", [True, "sklearn.tree._tree.Tree", [3], None])
def test_trusted_is_a_list_of_types(saved, trusted):
    with pytest.raises(ValueError, match="trusted="):
        PublishedClassifier.load(saved, trusted=trusted)


def test_another_version_of_scikit_learn_is_warned_about_once(
    published, tmp_path, monkeypatch, digits
):
    path = tmp_path / "model.skops"
    # scikit-learn and skops write the version that they find here.
    with monkeypatch.context() as patch:
        patch.setattr(sklearn.base, "__version__", "1.5.1")
        patch.setattr(sklearn, "__version__", "1.5.1")
        older = publish(
            fit(digits[0][:900], digits[1][:900], GaussianNB(), digits[0][900:])
        )
        older.save(path)
    with pytest.warns(InconsistentVersionWarning, match=r"1\.5\.1") as caught:
        loaded = PublishedClassifier.load(path)
    assert len(caught) == 1
    assert_same(loaded, older, digits[0])


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
        "classes_",
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


# Damaged and edited files.


def test_a_missing_file_is_named(saved):
    content = card_of(saved).read_bytes()
    card_of(saved).unlink()
    with pytest.raises(FileNotFoundError, match=r"model\.json is missing"):
        PublishedClassifier.load(saved)
    card_of(saved).write_bytes(content)
    saved.unlink()
    with pytest.raises(FileNotFoundError, match=r"model\.skops is missing"):
        PublishedClassifier.load(saved)


@pytest.mark.parametrize("length", [0, 10, 1000, -1])
def test_a_truncated_model_is_refused(saved, length):
    saved.write_bytes(saved.read_bytes()[:length])
    with pytest.raises(ValueError, match=r"model\.skops .*damaged"):
        PublishedClassifier.load(saved)


def test_files_of_two_models_are_not_mixed(saved, void):
    other = saved.with_name("other.skops")
    void.save(other)
    os.replace(other, saved)
    with pytest.raises(ValueError, match="belongs to another model"):
        PublishedClassifier.load(saved)


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0.1},
        {"private": 1},
        {"delta": 1e-9},
        {"n_queries": 200.0},
        {"assumptions": []},
        {"statement": "This fit is private."},
        {"classes": list("jihgfedcba")},
        {"remark": "approved"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_an_edited_card_is_refused(saved, changes):
    rewrite_card(saved, **changes)
    with pytest.raises(ValueError, match=r"model\.json differs .* was edited"):
        PublishedClassifier.load(saved)


@pytest.mark.parametrize("version", [0, 1, 2, 4, "3", None])
def test_an_unknown_format_is_refused(saved, version):
    rewrite_card(saved, format_version=version)
    with pytest.raises(ValueError, match="format_version"):
        PublishedClassifier.load(saved)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no.* strict JSON"),
        ("{", "strict JSON"),
        ("[]", "is no sklearn_pate privacy card"),
        ("{}", "is no sklearn_pate privacy card"),
        ('{"epsilon": NaN}', "NaN"),
        ('{"epsilon": 1, "epsilon": 2}', "twice"),
        ("[" * 100_000, "strict JSON"),
        ("\udcff", "strict JSON"),
        (
            '{"format": "sklearn_pate privacy card", "format_version": 3}',
            "has no sha256",
        ),
    ],
)
def test_what_is_no_card_is_refused(saved, text, message):
    card_of(saved).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=rf"model\.json .*{message}"):
        PublishedClassifier.load(saved)


def test_a_forged_pair_without_a_copy_of_the_card_is_refused(saved):
    rewrite_model(saved, lambda members: members.pop("privacy_card.json"))
    with pytest.raises(ValueError, match="no copy of its privacy card"):
        PublishedClassifier.load(saved)


def test_a_file_of_something_else_is_refused(saved):
    saved.write_bytes(pickle.dumps(GaussianNB()))
    rewrite_card(saved, sha256=hashlib.sha256(saved.read_bytes()).hexdigest())
    with pytest.raises(ValueError, match=r"model\.skops holds no copy"):
        PublishedClassifier.load(saved)


@pytest.mark.parametrize(
    "content",
    [
        {"student": GaussianNB()},
        {"student": 3, "classes": np.array(list("abcdefghij"))},
        {"student": GaussianNB(), "classes": np.arange(10)},
        [GaussianNB()],
    ],
)
def test_a_forged_model_that_lacks_its_parts_is_refused(saved, content):
    def change(members):
        card = members["privacy_card.json"]
        members.clear()
        with zipfile.ZipFile(io.BytesIO(skops.io.dumps(content))) as archive:
            members |= {name: archive.read(name) for name in archive.namelist()}
        members["privacy_card.json"] = card

    rewrite_model(saved, change)
    with pytest.raises(ValueError, match=r"model\.skops cannot be loaded"):
        PublishedClassifier.load(saved)


def test_a_forged_model_runs_no_function_that_our_modules_import(saved, tmp_path):
    """sklearn_pate.students.import_module("...") would run a module."""

    def change(members):
        schema = json.loads(members["schema.json"])
        schema["content"]["student"] = {
            "__class__": "import_module",
            "__module__": "sklearn_pate.students",
            "__loader__": "ConstructorFromReduceNode",
            "content": {
                "__class__": "tuple",
                "__module__": "builtins",
                "__loader__": "TupleNode",
                "content": [
                    {
                        "__class__": "str",
                        "__module__": "builtins",
                        "__loader__": "JsonNode",
                        "content": '"this"',
                        "is_json": True,
                    }
                ],
            },
        }
        members["schema.json"] = json.dumps(schema).encode()
        for name in [*members]:  # without the parts of the student that was there
            if name.endswith(".npy") and name.encode() not in members["schema.json"]:
                del members[name]

    rewrite_model(saved, change)
    with pytest.raises(ValueError, match=r"sklearn_pate\.students\.import_module"):
        PublishedClassifier.load(saved)
    assert "this" not in sys.modules


@pytest.mark.parametrize("which", ["model", "card"])
@pytest.mark.parametrize("how", ["flip a bit", "cut out", "insert"])
def test_no_damage_gives_another_answer(saved, published, digits, which, how):
    X = digits[0][::50]
    path = saved if which == "model" else card_of(saved)
    intact = path.read_bytes()
    expected = published.predict_proba(X)
    rng = np.random.default_rng(0)
    positions = rng.integers(len(intact), size=60 if which == "model" else 250)
    survived = 0
    for at in positions.tolist():
        damaged = bytearray(intact)
        if how == "flip a bit":
            damaged[at] ^= 1 << int(rng.integers(8))
        elif how == "cut out":
            del damaged[at : at + int(rng.integers(1, 9))]
        else:
            damaged[at:at] = rng.bytes(1)
        path.write_bytes(damaged)
        try:
            loaded = PublishedClassifier.load(saved)
        except ValueError:
            continue
        survived += 1
        assert loaded.card == published.card
        np.testing.assert_array_equal(loaded.predict_proba(X), expected)
    assert survived < len(positions) / 4, "blanks between the fields of the card"


# Wrong calls, and students that cannot be saved.


@pytest.mark.parametrize("path", ["model", "model.pkl", "model.skops.gz", 3, None])
def test_a_model_file_ends_in_skops(published, path):
    with pytest.raises(ValueError, match=r"skops"):
        published.save(path)
    with pytest.raises(ValueError, match=r"skops"):
        PublishedClassifier.load(path)


def test_nothing_is_overwritten_unless_asked_for(saved, void, published, digits):
    before = saved.read_bytes(), card_of(saved).read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        void.save(saved)
    assert (saved.read_bytes(), card_of(saved).read_bytes()) == before
    saved.unlink()
    with pytest.raises(FileExistsError, match=r"model\.json"):
        void.save(saved)
    void.save(saved, overwrite=True)
    assert PublishedClassifier.load(saved).card == void.card


def test_a_missing_folder_is_named(published, tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder"):
        published.save(tmp_path / "nowhere" / "model.skops")


def test_a_save_that_fails_leaves_nothing_behind(void, tmp_path):
    path = tmp_path / "model.skops"
    path.mkdir()  # a folder cannot be replaced by a file
    with pytest.raises(OSError, match="skops"):
        void.save(path, overwrite=True)
    assert os.listdir(tmp_path) == ["model.skops"]


def test_files_have_the_usual_permissions(saved):
    plain = saved.with_name("plain")
    plain.touch()
    assert saved.stat().st_mode == card_of(saved).stat().st_mode == plain.stat().st_mode


def test_a_student_that_skops_cannot_save_is_named(blobs, tmp_path):
    class Local(OwnStudent):
        pass

    X, y, X_public, _ = blobs
    published = publish(fit(X, y, OwnStudent(), X_public))
    published.student_.__class__ = Local
    with pytest.raises(ValueError, match="a Local, cannot be saved"):
        published.save(tmp_path / "model.skops")
    assert os.listdir(tmp_path) == []


def test_networks_are_pickled_without_their_training_log(digits, tmp_path):
    torch = pytest.importorskip("torch")
    skorch = pytest.importorskip("skorch")
    torch.set_num_threads(1)
    X, y = digits
    X = (X / 16).astype(np.float32)
    net = skorch.NeuralNetClassifier(
        torch.nn.Linear,
        module__in_features=64,
        module__out_features=10,
        criterion=torch.nn.CrossEntropyLoss,
        max_epochs=20,
        lr=1.0,
        verbose=0,
        train_split=None,
        callbacks=[skorch.callbacks.Checkpoint(monitor=None, dirname=str(tmp_path))],
    )
    published = publish(fit(X[:900], y[:900], net, X[900:1400]))
    assert published.card["versions"]["torch"] == torch.__version__
    with pytest.raises(ValueError, match=r"torch modules.*Pickle"):
        published.save(tmp_path / "model.skops")
    packed = pickle.dumps(published)
    assert str(tmp_path).encode() not in packed
    assert_same(pickle.loads(packed), published, X[1400:])
    assert published.score(X[1400:], y[1400:]) > 0.5


def test_skops_is_asked_for_only_to_save_and_load(tmp_path):
    code = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "skops":
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Absent())
from sklearn.naive_bayes import GaussianNB
from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.publication import PublishedClassifier, publish
X, y = [[0.0], [1.0]] * 40, [0, 1] * 40
pate = PATEClassifier(GaussianNB(), n_teachers=20, epsilon=20.0, n_queries=10)
published = publish(pate.fit(X, y, X_public=PublicData(X[:20])))
for call in (published.save, PublishedClassifier.load):
    try:
        call({str(tmp_path / "model.skops")!r})
    except ImportError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("pip install 'sklearn-pate[publish]'") == 2


def test_a_skops_that_runs_hidden_code_is_not_used(published, tmp_path, monkeypatch):
    monkeypatch.setattr(skops, "__version__", "0.11.0")
    with pytest.raises(ImportError, match=r"0\.11\.0"):
        published.save(tmp_path / "model.skops")
