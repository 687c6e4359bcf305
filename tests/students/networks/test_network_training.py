"""Common behaviour of students made of networks."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.students import FixMatchClassifier
from tests.private import accepts_unlabeled

QUICK = {"max_epochs": 3, "random_state": 0}
STUDENT = FixMatchClassifier(**QUICK)
N_PUBLIC = 400


@pytest.fixture
def student():
    return clone(STUDENT)


def linear(input_shape, n_classes):
    return torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(int(np.prod(input_shape)), n_classes)
    )


@pytest.fixture(scope="module")
def public(digits):
    """Rows with 60 answers, and their true labels."""
    X, y = digits
    answers = y[:N_PUBLIC].copy()
    answers[60:] = -1
    return X[:N_PUBLIC], answers, y[:N_PUBLIC]


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "student",
    [
        FixMatchClassifier(linear, max_epochs=5, lr=0.03),
        pytest.param(FixMatchClassifier(max_epochs=5), marks=pytest.mark.thorough),
    ],
)
def test_check_estimator_has_no_failures(student):
    results = check_estimator(
        student,
        on_fail=None,
        on_skip=None,
        # It asks for seven digits; the test below for six.
        expected_failed_checks={"check_methods_subset_invariance": "single precision"},
    )
    failed = {
        result["check_name"]: result["exception"]
        for result in results
        if result["status"] not in ("passed", "skipped", "xfail")
    }
    assert failed == {}
    assert len(results) > 45


@pytest.mark.slow
def test_rows_do_not_change_the_probabilities_of_others(public):
    X, answers, _ = public
    fitted = FixMatchClassifier(max_epochs=5, random_state=0).fit(X, answers)
    one_by_one = np.vstack([fitted.predict_proba(row[np.newaxis]) for row in X[:50]])
    np.testing.assert_allclose(fitted.predict_proba(X)[:50], one_by_one, atol=1e-6)


def test_students_declare_what_they_accept(student):
    assert accepts_unlabeled(student)
    assert accepts_unlabeled(make_pipeline(StandardScaler(), student))
    assert student.accepts_soft_labels


def test_minus_one_marks_rows_without_a_label(student, public):
    X, answers, _ = public
    fitted = clone(student).fit(X, answers)
    np.testing.assert_array_equal(fitted.classes_, np.arange(10))
    assert fitted.predict_proba(X).shape == (N_PUBLIC, 10)
    assert -1 not in fitted.predict(X)


@pytest.mark.parametrize("dtype", [int, float])
def test_beside_a_single_label_minus_one_is_a_class(public, dtype):
    X, _, y = public
    binary = np.where(y < 5, -1, 1).astype(dtype)
    fitted = clone(STUDENT).fit(X, binary)
    assert fitted.classes_.tolist() == [-1, 1]
    assert fitted.score(X, binary) > 0.8


def test_text_labels_have_no_marker(public):
    X, _, y = public
    names = np.array(["even", "odd"])[y % 2]
    fitted = clone(STUDENT).fit(X, names)
    assert fitted.classes_.tolist() == ["even", "odd"]


def test_distributions_over_classes_teach_like_labels(public):
    X, answers, _ = public
    hard = clone(STUDENT).fit(X, answers)
    one_hot = np.eye(11)[answers][:, :10]  # -1 is the last row: all zeros
    np.testing.assert_array_equal(one_hot.sum(axis=1), answers >= 0)
    soft = clone(STUDENT).fit(X, 3 * one_hot)
    np.testing.assert_array_equal(soft.predict_proba(X), hard.predict_proba(X))
    one_hot[answers < 0] = np.nan
    missing = clone(STUDENT).fit(X, one_hot)
    np.testing.assert_array_equal(missing.predict_proba(X), hard.predict_proba(X))


def test_uncertain_distributions_make_less_certain_students(public):
    X, _, y = public
    certain = np.eye(10)[y]
    uncertain = 0.5 * certain + 0.05
    student = clone(STUDENT).set_params(unlabeled_weight=0)
    confidence = [
        student.fit(X, targets).predict_proba(X).max(axis=1).mean()
        for targets in (certain, uncertain)
    ]
    assert confidence[0] > confidence[1] + 0.1


def test_equal_seeds_give_equal_students_and_leave_the_global_generators_alone(
    student, public
):
    X, answers, _ = public
    states = torch.random.get_rng_state(), np.random.get_state()[1].copy()
    one = clone(student).fit(X, answers).predict_proba(X)
    torch.rand(3)  # whatever was drawn in between
    other = clone(student).fit(X, answers).predict_proba(X)
    np.testing.assert_array_equal(one, other)
    another = clone(student).set_params(random_state=1).fit(X, answers)
    assert not np.array_equal(one, another.predict_proba(X))
    torch.random.set_rng_state(states[0])
    clone(student).fit(X, answers)
    assert torch.equal(torch.random.get_rng_state(), states[0])
    np.testing.assert_array_equal(np.random.get_state()[1], states[1])


def test_a_pickled_student_predicts_the_same_and_holds_no_rows(student, public):
    X, answers, _ = public
    fitted = clone(student).fit(X, answers)
    pickled = pickle.dumps(fitted)
    np.testing.assert_array_equal(
        pickle.loads(pickled).predict_proba(X), fitted.predict_proba(X)
    )
    n_weights = sum(weights.numel() for weights in fitted.module_.parameters())
    assert len(pickled) < 4 * n_weights + 30_000 < X.astype("f4").nbytes + 170_000


@pytest.mark.thorough
def test_flat_rows_and_images_are_the_same_to_a_student(public):
    X, answers, _ = public
    flat = clone(STUDENT).set_params(image_shape=(8, 8)).fit(X, answers)
    images = clone(STUDENT).fit(X.reshape(-1, 8, 8), answers)
    channels = clone(STUDENT).fit(X.reshape(-1, 1, 8, 8), answers)
    assert flat.input_shape_ == images.input_shape_ == channels.input_shape_
    expected = flat.predict_proba(X)
    for fitted in (images, channels):
        assert fitted.n_features_in_ == 64
        np.testing.assert_array_equal(fitted.predict_proba(X), expected)
        np.testing.assert_array_equal(
            fitted.predict_proba(X.reshape(-1, 8, 8)), expected
        )


def test_single_and_double_precision_give_nearly_the_same_student(public):
    X, answers, _ = public
    double = clone(STUDENT).fit(X.astype(np.float64), answers)
    single = clone(STUDENT).fit(X.astype(np.float32), answers)
    assert np.mean(single.predict(X) == double.predict(X)) > 0.97


@pytest.mark.thorough
def test_the_scale_of_rows_does_not_matter(public):
    X, answers, _ = public
    for image_shape in (None, (8, 8)):
        student = clone(STUDENT).set_params(image_shape=image_shape)
        expected = student.fit(X, answers).predict_proba(X)
        moved = student.fit(1024 * X - 4096, answers).predict_proba(1024 * X - 4096)
        np.testing.assert_allclose(moved, expected, atol=0.02)


@pytest.mark.slow
def test_a_module_can_be_given(student, public):
    X, answers, y = public
    made = clone(student).set_params(module=linear, max_epochs=20).fit(X, answers)
    assert made.score(X, y) > 0.8
    module = linear((64,), 10)
    before = module[1].weight.clone()
    own = clone(student).set_params(module=module).fit(X, answers)
    assert torch.equal(module[1].weight, before)  # a copy was trained
    assert not torch.equal(own.module_[1].weight, before)


def test_training_stops_when_predictions_have_settled(public):
    X, answers, _ = public
    student = clone(STUDENT).set_params(max_epochs=50, patience=2, tol=0.02)
    fitted = student.fit(X, answers)
    changed = [epoch["changed"] for epoch in fitted.history_]
    assert 3 <= fitted.n_iter_ == len(changed) < 50
    assert max(changed[-2:]) <= 0.02
    never = clone(STUDENT).fit(X, answers)
    assert never.n_iter_ == 3


def test_progress_is_printed_on_request(public, capsys):
    X, answers, _ = public
    clone(STUDENT).fit(X, answers)
    assert capsys.readouterr().out == ""
    clone(STUDENT).set_params(verbose=1).fit(X, answers)
    assert "train_loss" in capsys.readouterr().out


def test_an_interrupt_from_the_keyboard_ends_the_fit(public):
    X, answers, _ = public

    class Interrupted(torch.nn.Linear):
        def forward(self, X):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clone(STUDENT).set_params(module=Interrupted(64, 10)).fit(X, answers)


@pytest.mark.thorough
def test_a_grid_search_finds_parameters(public):
    X, _, y = public
    search = GridSearchCV(clone(STUDENT), {"lr": [1e-6, 3e-3]}, cv=2).fit(X, y)
    assert search.best_params_ == {"lr": 3e-3}


def test_pate_trains_the_student_on_all_public_rows(student, digits):
    X, y = digits
    pate = PATEClassifier(
        LogisticRegression(max_iter=2000),
        clone(student).set_params(max_epochs=10),
        n_teachers=10,
        mechanism=GNMax(sigma=0.5),
        epsilon=None,
        random_state=0,
    ).fit(X[:1000], y[:1000], X_public=PublicData(X[1000:1600]))
    assert len(pate.queried_indices_) < 600
    assert pate.score(X[1600:], y[1600:]) > 0.75


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_epochs": 0}, "max_epochs=0 must be"),
        ({"batch_size": 1.5}, "batch_size=1.5 must be"),
        ({"labeled_batch_size": True}, "labeled_batch_size=True must be"),
        ({"patience": 0}, "patience=0 must be"),
        ({"lr": -1}, "lr=-1 must be"),
        ({"tol": "small"}, "tol='small' must be"),
        ({"device": "abacus"}, "device='abacus' is unknown"),
        ({"module": "resnet"}, "module='resnet' must be"),
        ({"image_shape": (9, 9)}, "the 64 values"),
        ({"image_shape": (64,)}, "must be .height, width."),
    ],
)
def test_bad_parameters_are_named(student, parameters, message, public):
    X, answers, _ = public
    with pytest.raises(ValueError, match=message):
        clone(student).set_params(**parameters).fit(X, answers)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_reported(public):
    X, answers, _ = public
    with pytest.raises(ValueError, match="needs a GPU and torch finds none"):
        clone(STUDENT).set_params(device="cuda").fit(X, answers)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_student_from_a_gpu_predicts_without_one(student, public):
    X, answers, _ = public
    fitted = clone(student).set_params(device="cuda").fit(X, answers)
    assert next(fitted.module_.parameters()).is_cuda
    moved = pickle.loads(pickle.dumps(fitted))
    assert not next(moved.module_.parameters()).is_cuda
    np.testing.assert_allclose(
        moved.predict_proba(X), fitted.predict_proba(X), atol=1e-3
    )


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        (np.full(N_PUBLIC, -1), "one class only"),
        (np.full(N_PUBLIC, 3), "one class only"),
        (np.zeros((N_PUBLIC, 3)), "No row of y is labelled"),
        (np.full((N_PUBLIC, 3), -0.5), "must hold probabilities"),
        (np.linspace(0, 1, N_PUBLIC), "continuous|Unknown label type"),
        (np.arange(10) % 3, "each row needs a label"),
    ],
)
def test_invalid_labels_are_refused(y, message, public):
    X, _, _ = public
    with pytest.raises(ValueError, match=message):
        clone(STUDENT).fit(X, y)


def test_sparse_rows_are_refused_clearly(public):
    X, answers, _ = public
    with pytest.raises(TypeError, match=r"[Ss]parse data was passed"):
        clone(STUDENT).fit(sp.csr_array(X), answers)


@pytest.mark.thorough
def test_without_torch_the_error_names_the_packages_to_install():
    code = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Absent())
from sklearn_pate import students
assert "FixMatchClassifier" in dir(students)
try:
    students.FixMatchClassifier
except ImportError as error:
    assert "pip install torch skorch" in str(error), error
else:
    raise AssertionError("no error")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
