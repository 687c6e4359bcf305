"""PETDL on MNIST: accuracy against privacy. Writes results/petdl.json.

reachable    bounds on the claims of the paper, by a calculation
main         accuracy by the number of teachers and publishable epsilon
pate         PATE on the same teachers, with votes on single rows
hints        with and without hints, by the number of distillation epochs
weighted     with and without weights, on the paper's biased shards
sizes        students of several sizes: parameters, time, accuracy
svhn         discriminant teachers on SVHN

CIFAR-10 is measured by image_recipe.py. Outputs of teachers and runs of students are
stored in ``benchmarks/work``: after an interruption, the same command resumes.
Partition, teachers and students are seeded; the noise is not, and differs in each run.
"""

import time
import warnings

import numpy as np
import torch
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

from benchmarks.images.images import fitted_representation
from benchmarks.images.models import distortion
from benchmarks.petdl.petdl_paper import CLAIMS
from benchmarks.petdl.teachers import (
    N_CLASSES,
    WORK,
    ensemble,
    load_images,
    middle_network,
)
from benchmarks.record import Runs, command, save, summaries, summary
from sklearn_pate import PATEClassifier
from sklearn_pate._votes._votes import STEPS
from sklearn_pate.accounting._calibrate import gdp_epsilon, largest_gdp_mu
from sklearn_pate.learners import Clusters, Hint, PETDLClassifier
from sklearn_pate.students import ConvSmall, FixMatchClassifier

SHUFFLES = range(3)
DELTA = 1e-5
BASE = {
    "method": "PETDL",
    "teacher": "network",
    "n_teachers": 250,
    "epsilon": 1.5,
    "batch_size": 128,
    "weighted": False,
    "hint_epochs": 0,
    "distillation_epochs": 10,
    "compression": 1,
}
DISCRIMINANTS = {"teacher": "discriminant"}
#: Numbers of teachers and epsilons, with too much noise and with little.
NOISE_LEVELS = [
    (250, 5.0),
    *((50, epsilon) for epsilon in (1.5, 5.0, 25.0)),
    *((n, epsilon) for n in (10, 4) for epsilon in (1.5, 25.0, 100.0)),
]
SHORT_NAMES = {"MNIST": "mnist", "SVHN (derived grey)": "svhn-derived"}


def prepare(images, setting, seed):
    """Return public and held-out rows, the representation, and the outputs."""
    public, held_out = images.shuffled(seed)
    X_public = images.test[0][public]
    frozen = FrozenEstimator(fitted_representation(images, "both", X_public, seed))
    outputs = ensemble(
        SHORT_NAMES[images.name],
        setting["teacher"],
        setting["n_teachers"],
        frozen,
        public,
    )
    return public, held_out, frozen, outputs


def run(name, setting, seed, key):
    """Release, and train one student; return the key and the results."""
    warnings.simplefilter("ignore")
    images = load_images(SHORT_NAMES[name])
    public, held_out, frozen, outputs = prepare(images, setting, seed)
    X, y = images.test
    start = time.process_time()
    if setting["method"] == "PETDL":
        clf = fitted(images, setting, seed, student(images, setting))
    else:
        clf = PATEClassifier(
            n_queries=len(public) // setting["batch_size"],
            mechanism="gnmax",
            query_strategy="representative",
            student=student(images, setting),
            **common(setting, seed, frozen),
        )
        clf.fit_from_votes(X[public], [p.argmax(axis=1) for p, _ in outputs])
    result = {
        "accuracy": float(clf.score(X[held_out], y[held_out])),
        "epsilon": clf.privacy_spent_.epsilon,
        "cpu_seconds": time.process_time() - start,
        "teachers": float(
            np.mean([np.mean(p.argmax(axis=1) == y[public]) for p, _ in outputs])
        ),
    }
    if setting["method"] == "PETDL":
        result["labels_right"] = labels_right(clf, clf.released_, y[public])
        result["noise_scale"] = clf.mechanism_.noise_scale
    return key, result


def common(setting, seed, frozen):
    """Return the common parameters of PETDL and PATE."""
    return {
        "representation": frozen,
        "epsilon": setting["epsilon"],
        "delta": DELTA,
        "classes": range(N_CLASSES),
        "random_state": seed,
    }


def fitted(images, setting, seed, estimator):
    """Return fitted PETDL with `estimator` as student."""
    public, _, frozen, outputs = prepare(images, setting, seed)
    clf = PETDLClassifier(
        student=estimator,
        batches=Clusters(setting["batch_size"]),
        weighted=setting["weighted"],
        hint=Hint(setting["hint_epochs"]) if setting["hint_epochs"] else None,
        **common(setting, seed, frozen),
    )
    by_teacher = (p if h is None else (p, h) for p, h in outputs)
    return clf.fit_from_outputs(images.test[0][public], by_teacher)


def labels_right(clf, values, y_public):
    """Return the share of right labels among the rows with a label from `values`."""
    labelled = clf.batch_of_row_ >= 0
    labels = values.argmax(axis=1)[clf.batch_of_row_[labelled]]
    return float(np.mean(labels == y_public[labelled]))


def student(images, setting):
    """Return the student of a setting."""
    return make_pipeline(
        images.pixels(),
        FixMatchClassifier(
            ConvSmall(setting["compression"]),
            image_shape=images.shape,
            augmentation=distortion(),
            max_epochs=setting["distillation_epochs"],
            labeled_batch_size=64,
        ),
    )


def reachable(images, runs):
    """Bound the accuracy of labels at the claims of the paper.

    The smallest useful release has one public batch per class, ten in all, and the
    strongest signal is agreement of all teachers. The noise for epsilon is computed
    exactly, and from it the probability that the right class is the largest.
    """
    rows = []
    for n_teachers, *claims in CLAIMS:
        for data, (accuracy, epsilon) in zip(
            ("MNIST", "SVHN", "CIFAR-10"), claims, strict=True
        ):
            noise = np.sqrt(2 * N_CLASSES) / largest_gdp_mu(epsilon, DELTA)
            rows.append(
                {
                    "data": data,
                    "n_teachers": n_teachers,
                    "claimed_accuracy": accuracy,
                    "claimed_epsilon": epsilon,
                    "noise_scale": noise,
                    "right": _largest_is_right(n_teachers / noise),
                    "needed_epsilon": _needed_epsilon(n_teachers),
                    "needed_teachers": int(np.ceil(_SIGNAL * noise)),
                }
            )
    return rows


# Share of public batches in which the right class of ten is the largest.
_RIGHT = 0.99


def _largest_is_right(signal):
    """Probability that a class ahead by `signal` standard deviations is the largest."""
    return quad(
        lambda x: norm.pdf(x - signal) * norm.cdf(x) ** (N_CLASSES - 1), -10, 60
    )[0]


def _find_signal():
    low, high = 0.0, 20.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (
            (low, middle) if _largest_is_right(middle) > _RIGHT else (middle, high)
        )
    return high


_SIGNAL = _find_signal()


def _needed_epsilon(n_teachers):
    return gdp_epsilon(np.sqrt(2 * N_CLASSES) * _SIGNAL / n_teachers, DELTA)


def main_table(images, runs):
    """Accuracy by the number of teachers and epsilon."""
    settings = [BASE | DISCRIMINANTS | {"epsilon": epsilon} for epsilon in (0.5, 1.5)]
    settings += [
        BASE | {"n_teachers": n, "epsilon": epsilon}
        for n, epsilon in [(250, 1.5), *NOISE_LEVELS]
    ]
    return _rows(images, runs, settings)


def pate(images, runs):
    """PATE on the discriminant teachers, with as many queries as public batches."""
    settings = [
        BASE | DISCRIMINANTS | {"epsilon": epsilon, "method": "PATE"}
        for epsilon in (0.5, 1.5)
    ]
    return _rows(images, runs, settings)


def hints(images, runs):
    """With and without the hint, by the number of distillation epochs."""
    return _rows(
        images,
        runs,
        [
            BASE | {"hint_epochs": hint, "distillation_epochs": epochs}
            for epochs in (1, 3, 10)
            for hint in (0, 2)
        ],
    )


def weighted(images, runs):
    """With and without weights on biased shards, also without noise."""
    settings = [
        BASE
        | {
            "teacher": "biased",
            "n_teachers": n,
            "epsilon": epsilon,
            "weighted": is_weighted,
        }
        for n, epsilon in ((10, 1.17), (10, 25.0), (100, 1.5))
        for is_weighted in (False, True)
    ]
    rows = _rows(images, runs, settings)
    for row, setting in zip(rows, settings, strict=True):
        unnoised = [_without_noise(images, setting, seed) for seed in SHUFFLES]
        row["right_without_noise"] = summary(right for right, _ in unnoised)
        row["lead"] = summary(lead for _, lead in unnoised)
    return rows


def _without_noise(images, setting, seed):
    """Return the share of right labels without noise, and the mean relative lead."""
    clf = fitted(images, setting, seed, DummyClassifier())
    values = clf.privacy_analysis_.counts / STEPS
    ranked = np.sort(values, axis=1)
    lead = np.mean(ranked[:, -1] - ranked[:, -2]) / setting["n_teachers"]
    public, _ = images.shuffled(seed)
    return labels_right(clf, values, images.test[1][public]), lead


def sizes(images, runs):
    """Students of several sizes, and a teacher."""
    settings = [BASE | {"compression": by} for by in (1, 2, 3)]
    rows = _rows(images, runs, settings)
    pixels = np.array(images.test[0][:, : images.n_pixels])
    for row in rows:
        module = ConvSmall(row["compression"])((1, *images.shape), N_CLASSES)
        row |= {"network": "student"} | _size(module, pixels)
    teacher = middle_network(images, 4)
    teacher_module = teacher.initialize().module_.layers
    accuracy = rows[0]["teachers"]
    return [
        {"network": "teacher", "accuracy": accuracy, **_size(teacher_module, pixels)},
        *rows,
    ]


def _size(module, pixels):
    """Count parameters, and time predictions by one thread."""
    torch.set_num_threads(1)
    module.eval()
    inputs = torch.from_numpy(pixels)
    seconds = []
    with torch.no_grad():
        for _ in range(7):
            start = time.perf_counter()
            for batch in inputs.split(500):
                module(batch)
            seconds.append(time.perf_counter() - start)
    return {
        "n_parameters": sum(one.numel() for one in module.parameters()),
        "microseconds_per_row": 1e6 * float(np.median(seconds)) / len(inputs),
    }


def svhn(images, runs):
    """Discriminant teachers on SVHN."""
    settings = [
        BASE | DISCRIMINANTS | {"n_teachers": 150, "epsilon": epsilon}
        for epsilon in (1.5, 8.0)
    ]
    return _rows(images, runs, settings, range(2))


def _rows(images, runs, settings, seeds=SHUFFLES):
    return [
        {"data": images.name, **setting, **summaries(results)}
        for setting, results in zip(
            settings, runs(images, settings, seeds), strict=True
        )
    ]


TABLES = {
    "reachable": reachable,
    "main": main_table,
    "pate": pate,
    "weighted": weighted,
    "hints": hints,
    "sizes": sizes,
    "svhn": svhn,
}


def main():
    """Measure the named tables, or all."""
    tables = command(__doc__, TABLES).parse_args().tables
    WORK.mkdir(exist_ok=True)
    runs = Runs(WORK / "petdl-runs.jsonl", run, prepare)
    for table in tables:
        images = load_images("svhn-derived" if table == "svhn" else "mnist")
        save("petdl", table, TABLES[table](images, runs), shuffles=list(SHUFFLES))
