"""PATE by its defaults, on tables and images. Writes results/pate_defaults.json.

adult, kddcup99, diabetes, stroke, credit_default, obesity
                                votes and mean scores against epsilon; forests at 1
mnist, svhn, cifar10            the same, of all private images and of a tenth

Takes about two hours. Finished fits are kept in files of lines, so that an interrupted
run resumes. Seeds are those of splits, shards and teachers; the noise is not seeded.
Tables are split anew for each seed, but for Diabetes, whose split is by patients. The
components of images are computed once for each seed; seconds are without them.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import time
import warnings
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.stats import entropy
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from benchmarks.images.sets import IMAGE_SETS
from benchmarks.images.sets import load as load_images
from benchmarks.record import WORK, command, kept_results, save, summary
from benchmarks.tables.files import load_file
from benchmarks.tables.six_tables import FOREST, N_GROUPS, case
from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.students import ImageRepresentation

EPSILONS = (0.5, 1.0, 2.0)
SPLITS = range(10)
#: Fits of many rows are slow, and differ little.
FEW_SPLITS = {
    "adult": range(6),
    "kddcup99": range(3),
    "diabetes": range(1),
    "svhn": range(3),
    "mnist": range(1),
    "cifar10": range(1),
}
N_OF_OTHERS = 1
WITHOUT_OTHERS = ("kddcup99", "diabetes")
#: Public and evaluated rows of the smaller tables.
SIZES = {"stroke": (1000, 1200), "credit_default": (3000, 8000), "obesity": (400, 500)}
MECHANISMS = {"votes": "gnmax", "mean scores": "scores"}
TEACHERS = {"default": None, "forests": FOREST, "LDA": LinearDiscriminantAnalysis()}
N_EVALUATED = 2000


def split(name, seed):
    """Return a table with public, private and evaluated rows drawn by a seed."""
    if name in SIZES:
        return load_file(name, seed, SIZES[name])[0]
    data, _ = case(name)
    if data.groups_train is not None:
        return data
    frame = pd.concat([data.frame_train, data.frame_test])
    y = np.concatenate([data.y_train, data.y_test])
    order = np.random.RandomState(seed).permutation(len(y))
    private, test = np.split(order, [len(data.y_train)])
    return replace(
        data,
        frame_train=frame.iloc[private],
        y_train=y[private],
        frame_test=frame.iloc[test],
        y_test=y[test],
    )


def fit_table(name, teacher, mechanism, epsilon, seed):
    """Fit a table; return the classifier, evaluated rows, their labels and weights."""
    data = split(name, seed)
    clf = PATEClassifier(
        clone(TEACHERS[teacher]) if TEACHERS[teacher] is not None else None,
        mechanism=MECHANISMS[mechanism],
        epsilon=epsilon,
        memory=str(WORK / "votes"),
        random_state=seed,
    )
    groups, weights = {}, np.ones(len(data.y_test))
    if data.groups_train is not None:
        # By the rule for rows, from the public number of patients.
        times = 3 if teacher == "default" else 2
        times = times if mechanism == "mean scores" else 1
        clf.set_params(privacy_unit="group", classes=[0, 1])
        clf.set_params(n_teachers=round(times * N_GROUPS**0.5))
        groups = {"groups": data.groups_train}
        _, group, sizes = np.unique(
            data.groups_test, return_inverse=True, return_counts=True
        )
        weights = 1 / sizes[group]
    X_public = PublicData(data.frame_public)
    clf.fit(data.frame_train, data.y_train, X_public=X_public, **groups)
    return clf, data.frame_test, data.y_test, weights


@cache
def components(name, seed):
    """Fit components on the public images of a seed, and compute those of all images.

    Returns what was fitted, and the components by the bytes of an image.
    """
    images = load_images(IMAGE_SETS[name][0])
    public, _ = images.shuffled(seed)
    fitted = ImageRepresentation(random_state=seed).fit(images.test[0][public])
    found = {}
    for X in (images.private[0], images.test[0]):
        for part in np.array_split(X, max(1, len(X) // 1000)):
            found |= zip(map(_bytes, part), fitted.transform(part), strict=True)
    return fitted, found


def _bytes(image):
    return np.ascontiguousarray(image).tobytes()


def computed_once(name, seed):
    """Let all fits of a seed use the same components, computed once."""
    fitted, found = components(name, seed)

    def fit(self, X, y=None):
        vars(self).update(vars(fitted))
        return self

    def transform(self, X):
        rows = np.array([found[_bytes(image)] for image in X])
        return rows.reshape(len(X), -1)[:, : self.components_.shape[1]]

    return patch.multiple(ImageRepresentation, fit=fit, transform=transform)


def fit_images(name, teacher, mechanism, epsilon, seed, *, share):
    """Fit images, of which a share is private; return the same."""
    title, _ = IMAGE_SETS[name]
    images = load_images(title)
    public, evaluated = images.shuffled(seed)
    n_private = round(share * len(images.private[1]))
    X, y = (one[:n_private] for one in images.private)
    X_test, y_test = (one[evaluated][:N_EVALUATED] for one in images.test)
    clf = PATEClassifier(
        TEACHERS[teacher],
        mechanism=MECHANISMS[mechanism],
        epsilon=epsilon,
        classes=range(10),
        random_state=seed,
    ).fit(X, y, X_public=PublicData(images.test[0][public]))
    return clf, X_test, y_test, np.ones(len(y_test))


def measured(name, teacher, mechanism, epsilon, seed):
    """Fit once, and score the classifier on evaluated rows."""
    name, _, part = name.partition(" ")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if name in IMAGE_SETS:
            share, once = (0.1 if part else 1), computed_once(name, seed)
            fit = partial(fit_images, share=share)
        else:
            fit, once = fit_table, nullcontext()
        start = time.process_time()
        with once:
            clf, X, y, weights = fit(name, teacher, mechanism, epsilon, seed)
            probabilities, predicted = clf.predict_proba(X), clf.predict(X)
    seconds = time.process_time() - start
    warned = {"PrivacyUtilityWarning", "StudentWarning"}
    n_classes = probabilities.shape[1]
    scores = probabilities if n_classes > 2 else probabilities[:, 1]
    weighted = {"sample_weight": weights}
    return {
        "auc": roc_auc_score(y, scores, multi_class="ovr", **weighted),
        "auc_of_rows": roc_auc_score(y, scores, multi_class="ovr"),
        "accuracy": accuracy_score(y, predicted, **weighted),
        "log_loss": log_loss(y, probabilities, labels=range(n_classes), **weighted),
        # Of a constant: the shares of the evaluated rows.
        "constant": entropy(np.bincount(y, weights)),
        "mean": np.average(probabilities[:, -1], weights=weights),
        "share": np.average(y == n_classes - 1, weights=weights),
        "warned": float(any(one.category.__name__ in warned for one in caught)),
        "n_teachers": clf.privacy_spent_.n_teachers,
        "seconds": seconds,
    }


def table(name):
    """Measure both mechanisms on a table or a set of images, and write the results."""
    is_image = name in IMAGE_SETS
    seeds, parts = FEW_SPLITS.get(name, SPLITS), ("", " tenth") if is_image else ("",)
    keys = [
        (name + part, "default", mechanism, epsilon, seed)
        for part in parts
        for seed in (seeds[:1] if part else seeds)
        for mechanism in MECHANISMS
        for epsilon in EPSILONS
    ]
    other = "LDA" if is_image else "forests"
    keys += [
        (name, other, mechanism, 1.0, seed)
        for seed in (() if name in WITHOUT_OTHERS else seeds[:N_OF_OTHERS])
        for mechanism in MECHANISMS
    ]
    save("pate_defaults", name, rows_of(name, keys))


def rows_of(name, keys):
    """Return a row for each setting, of stored fits and new ones."""
    results, rows = kept_results(f"pate_defaults {name}", keys, measured), {}
    for key, result in zip(keys, results, strict=True):
        rows.setdefault(key[:-1], []).append(result)
    return [
        {
            "data": data,
            "teacher": teacher,
            "mechanism": mechanism,
            "epsilon": epsilon,
            **{score: summary([one[score] for one in found]) for score in found[0]},
        }
        for (data, teacher, mechanism, epsilon), found in rows.items()
    ]


NAMES = ("stroke", "obesity", "credit_default", "adult", "diabetes", "kddcup99")
TABLES = {name: partial(table, name) for name in (*NAMES, "mnist", "svhn", "cifar10")}


def main():
    """Measure the named tables, or all."""
    for name in command(__doc__, TABLES).parse_args().tables:
        TABLES[name]()
