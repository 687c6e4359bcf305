"""PETDL on components of images: the parameters that its 2019 paper varies.

Writes the table components of results/petdl.json. Teachers are linear discriminants in
place of networks, on 60 principal components (MNIST) or on the first 100 components of
an ImageRepresentation of public images (CIFAR-10, SVHN). The student is a logistic
regression, and with hints a small network.

The scale is reduced: one split of the images, the first 20,000 private images of
CIFAR-10, and 5000 public images of each data set. SVHN has the first 16,419 test digits
only. One parameter is varied at a time. Noise comes from the operating system, and
differs in each run.

Components and finished runs are stored in ``benchmarks/work``: after an interruption,
the same command resumes.
"""

import time
import warnings
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from benchmarks.images.image_recipe import Components, components_file, store_components
from benchmarks.images.sets import load_cifar10, load_svhn_part
from benchmarks.learners.dpsgd import N_PUBLIC, load_components
from benchmarks.petdl.teachers import N_CLASSES, WORK, biased_shards
from benchmarks.record import Runs, command, save, summaries
from sklearn_pate import PublicData
from sklearn_pate._teachers._shards import shard_rows
from sklearn_pate.learners import Clusters, Hint, PETDLClassifier
from sklearn_pate.students import DistillationClassifier, FixMatchClassifier

SEEDS = range(2)
# Weights make a small difference.
MORE_SEEDS = range(8)
DELTA = 1e-5
N_PRIVATE = 20_000
KIND = "components"
N_KEPT = 100
#: Without `distillation_epochs`, the student is a logistic regression.
BASE = {
    "n_teachers": 50,
    "is_biased": False,
    "target": 8.0,
    "noise": None,
    "batch_size": 64,
    "weighted": False,
    "hint_epochs": 0,
    "distillation_epochs": None,
}
WITHOUT_TARGET = BASE | {"target": None, "noise": 5.0}
BATCH_SIZES = (16, 32, 64, 128, 192, 256)
SETTINGS = {
    "batch_size": [WITHOUT_TARGET | {"batch_size": n} for n in BATCH_SIZES],
    "batch_size at one epsilon": [BASE | {"batch_size": n} for n in BATCH_SIZES],
    "noise": [WITHOUT_TARGET | {"noise": one} for one in (1.0, 5.0, 10.0, 20.0, 40.0)],
    "hint_epochs": [
        BASE | {"distillation_epochs": epochs, "hint_epochs": hint}
        for epochs in (1, 3, 10)
        for hint in (0, 2)
    ],
    "weighted": [
        BASE
        | {"n_teachers": 10, "is_biased": True, "target": epsilon, "weighted": weighted}
        for epsilon in (2.5, 25.0, 100.0)
        for weighted in (False, True)
    ],
}


@dataclass(frozen=True)
class Rows:
    """Components of private, public and evaluated images, with labels."""

    private: tuple[np.ndarray, np.ndarray]
    public: tuple[np.ndarray, np.ndarray]
    evaluated: tuple[np.ndarray, np.ndarray]


def mnist():
    """Return 60 principal components of pixels."""
    parts = [load_components(one, 60) for one in ("train", "public", "test")]
    return Rows(*parts)


def of_images(images):
    """Return components of an ImageRepresentation."""
    store_components(images, 0, KIND, components_file(images, 0, KIND))
    data = Components(images, 0, KIND)
    return Rows(
        (data.train[:, :N_KEPT], data.y_train),
        (data.of_public[:, :N_KEPT], images.test[1][data.public]),
        (data.test[:, :N_KEPT], data.y_test),
    )


def cifar10():
    """Return components of a part of CIFAR-10."""
    images = load_cifar10()
    X, y = images.private
    return of_images(
        replace(
            images,
            name="CIFAR-10, 20,000 private images",
            private=(X[:N_PRIVATE], y[:N_PRIVATE]),
            n_public=N_PUBLIC,
        )
    )


DATA = {
    "MNIST": mnist,
    "CIFAR-10": cifar10,
    "SVHN": lambda: of_images(load_svhn_part()),
}


@cache
def load(name):
    """Load a data set once."""
    return DATA[name]()


@cache
def outputs(name, n_teachers, is_biased):
    """Return the teachers' probabilities of public rows, and their mean accuracy."""
    rows = load(name)
    X, y = rows.private
    shards = biased_shards(y, n_teachers) if is_biased else None
    if shards is None:
        shards = shard_rows(len(y), n_teachers, 0)
    equal = np.full(N_CLASSES, 1 / N_CLASSES)
    probabilities, accuracy = [], []
    for shard in shards:
        teacher = LinearDiscriminantAnalysis("lsqr", shrinkage=0.3, priors=equal)
        teacher.fit(X[shard], y[shard])
        probabilities.append(teacher.predict_proba(rows.public[0]))
        accuracy.append(teacher.score(*rows.evaluated))
    return probabilities, float(np.mean(accuracy))


def student(setting):
    """Return the student of a setting."""
    epochs = setting["distillation_epochs"]
    if epochs is not None:
        return FixMatchClassifier(max_epochs=epochs, labeled_batch_size=64)
    return DistillationClassifier(LogisticRegression(max_iter=2000))


def run(name, setting, seed, key):
    """Release, and train one student; return the key and the results."""
    warnings.simplefilter("ignore")
    rows = load(name)
    start = time.process_time()
    X_public, y_public = rows.public
    probabilities, teachers = outputs(name, setting["n_teachers"], setting["is_biased"])
    clf = PETDLClassifier(
        student=student(setting),
        batches=Clusters(setting["batch_size"]),
        weighted=setting["weighted"],
        hint=Hint(setting["hint_epochs"]) if setting["hint_epochs"] else None,
        epsilon=setting["target"],
        noise_scale=setting["noise"],
        delta=DELTA,
        classes=range(N_CLASSES),
        random_state=seed,
    )
    clf.fit_from_outputs(PublicData(X_public), probabilities)
    labelled = clf.batch_of_row_ >= 0
    labels = clf.released_.argmax(axis=1)[clf.batch_of_row_[labelled]]
    return key, {
        "accuracy": float(clf.score(*rows.evaluated)),
        "teachers": teachers,
        "labels_right": float(np.mean(labels == y_public[labelled])),
        "noise_scale": clf.mechanism_.noise_scale,
        "epsilon": clf.privacy_spent_.epsilon,
        "cpu_seconds": time.process_time() - start,
    }


def main():
    """Make the missing runs, and write the table."""
    command(__doc__).parse_args()
    WORK.mkdir(exist_ok=True)
    runs = Runs(WORK / "petdl-components.jsonl", run, n_jobs=1)
    rows = [
        {"data": name, "varied": varied, **setting, **summaries(results)}
        for name in DATA
        for varied, settings in SETTINGS.items()
        for setting in settings
        for seeds in [MORE_SEEDS if varied == "weighted" else SEEDS]
        for results in runs(SimpleNamespace(name=name), [setting], seeds)
    ]
    save("petdl", "components", rows, packages=("torch", "skorch"), seeds=list(SEEDS))
