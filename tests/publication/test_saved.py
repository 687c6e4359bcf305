"""Published models that are saved come back as they were."""

import hashlib
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import sklearn
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pate import (
    StudentWarning,
    students,
)
from sklearn_pate.publication import PublishedClassifier, publish
from sklearn_pate.students import DistillationClassifier, GraphSelfTrainingClassifier
from tests.publication.saving import (
    TREE,
    OwnStudent,
    assert_same,
    card_of,
    fit,
)

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


@pytest.mark.slow
def test_a_forest_comes_back_once_its_trees_are_trusted(digits, tmp_path):
    X, y = digits
    student = RandomForestClassifier(n_estimators=10)
    published = publish(fit(X[:900], y[:900], student, X[900:1400]))
    path = tmp_path / "forest.skops"
    named = published.save(path)
    assert named == skops.io.get_untrusted_types(file=path)
    if skops.io.get_untrusted_types(file=path):  # by skops 0.16 and later
        with pytest.raises(ValueError, match=rf"trusted=\['{TREE}'\]"):
            PublishedClassifier.load(path)
    loaded = PublishedClassifier.load(path, trusted=[TREE])
    assert_same(loaded, published, X[1400:])


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("image_shape", [None, (8, 8)])
@pytest.mark.parametrize("name", ["FixMatchClassifier", "GANClassifier"])
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


@pytest.mark.slow
def test_an_augmentation_of_ours_needs_no_trust(digits, tmp_path):
    pytest.importorskip("skorch")
    X, y = digits
    student = students.FixMatchClassifier(
        image_shape=(8, 8), augmentation=students.ImageAugmentation(), max_epochs=1
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


@pytest.mark.slow
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


def test_a_student_class_of_ones_own_is_loaded_once_it_is_trusted(blobs, tmp_path):
    X, y, X_public, _ = blobs
    published = publish(fit(X, y, OwnStudent(), X_public))
    path = tmp_path / "own.skops"
    published.save(path)
    name = f"{OwnStudent.__module__}.OwnStudent"
    with pytest.raises(ValueError, match=name):
        PublishedClassifier.load(path)
    for trusted in ([name], {OwnStudent}, (OwnStudent, TREE)):
        loaded = PublishedClassifier.load(path, trusted=trusted)
        assert_same(loaded, published, X)


@pytest.mark.parametrize("trusted", [True, "sklearn.tree._tree.Tree", [3], None])
def test_trusted_is_a_list_of_types(saved, trusted):
    with pytest.raises(ValueError, match="trusted="):
        PublishedClassifier.load(saved, trusted=trusted)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.thorough
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
    assert done.stdout.count("pip install skops.") == 2


def test_a_skops_that_runs_hidden_code_is_not_used(published, tmp_path, monkeypatch):
    monkeypatch.setattr(skops, "__version__", "0.11.0")
    with pytest.raises(ImportError, match=r"0\.11\.0.*pip install --upgrade skops"):
        published.save(tmp_path / "model.skops")
