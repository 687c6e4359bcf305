"""One recipe for images on three data sets. Writes results/image_recipe.json.

mnist, svhn, svhn-grey, cifar10
                        learners on one representation, at equal replace-one epsilon
network                 MNIST with a network as student, at small epsilon
limits, limits-grey     teachers' votes on SVHN, by the number of teachers

The recipe is ``PATEClassifier().fit`` on arrays of images: an ImageRepresentation of
public images, and a logistic regression released in steps. Nothing is set for a data
set. All learners get its components; a network as student gets pixels.

Run some tables with ``python benchmarks/image_recipe.py cifar10``, all of them without
a name: some hours. ``--data svhn-official`` takes the official files of SVHN in place
of the first 16,419 test digits. Components and finished runs are stored in
``benchmarks/work``: after an interruption, the same command resumes. The noise is not
seeded.
"""

import os

# Two runs at a time, with one thread each.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
import warnings
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
from image_sets import IMAGE_SETS
from learners import DELTA, N_TEACHERS, VOTES, dp_sgd, gaussian_svc, logistic
from record import save
from replace_one import own_epsilon, replace_one_epsilon
from runs import Runs, summaries
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, normalize
from vote_figures import vote_figures

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate._teachers import poll_teachers, shard_rows
from sklearn_pate.accounting._gdp import gdp_epsilon, largest_gdp_mu
from sklearn_pate.baselines import PETDLClassifier, PrivateKNNClassifier
from sklearn_pate.mechanisms import ScoreSteps
from sklearn_pate.students import (
    DistillationClassifier,
    FixMatchClassifier,
    GraphSelfTrainingClassifier,
    ImageAugmentation,
    ImageRepresentation,
)

WORK = Path(__file__).parent / "work"
SHUFFLES = range(5)
PACKAGES = ("torch", "skorch", "opacus")
N_COMPONENTS = 1000
#: The epsilon for replacing a row at which DP-SGD with epsilon 3 for adding or removing
#: one has the same noise: that of the published 69.3 % on CIFAR-10.
OF_THREE = gdp_epsilon(2 * largest_gdp_mu(3.0, DELTA), DELTA)
EPSILONS = (1.0, 2.5, 5.5, 8.0, OF_THREE)
OF_NETWORK = (0.1, 0.25, 0.5)
#: C of logistic regression, which is no private learner.
NOT_PRIVATE = {"not private, logistic": 0.01}


class Components:
    """Components of the images of a shuffle, by public images alone."""

    def __init__(self, images, seed):
        kept = WORK / f"components-{images.name}-{seed}.joblib"
        if not kept.exists():
            joblib.dump(_components(images, seed), kept)
        parts = joblib.load(kept, mmap_mode="r")
        self.public, self.held_out = images.shuffled(seed)
        self.representation, self.train, test, self.seconds = parts
        self.y_train = images.private[1]
        self.of_public, self.test = test[self.public], test[self.held_out]
        self.y_test = images.test[1][self.held_out]


def _components(images, seed):
    start = time.perf_counter()
    representation = ImageRepresentation(n_components=N_COMPONENTS, random_state=seed)
    public, _ = images.shuffled(seed)
    representation.fit(images.test[0][public])
    train = representation.transform(images.private[0])
    test = representation.transform(images.test[0])
    return representation, train, test, time.perf_counter() - start


def _on_components(classifier, data, epsilon, seed, call):
    """Fit, or plan, a learner that takes public rows, on components of images."""
    classifier.set_params(
        epsilon=epsilon,
        delta=DELTA,
        classes=np.unique(data.y_train),
        random_state=seed,
    )
    public = PublicData(data.of_public)
    return getattr(classifier, call)(data.train, data.y_train, X_public=public)


def steps(data, epsilon, seed, call="fit"):
    """Fit PATE as the recipe does, on components in place of images."""
    pate = PATEClassifier(
        mechanism=ScoreSteps(max_coordinates=N_COMPONENTS),
        representation=FunctionTransformer(),
    )
    return _on_components(pate, data, epsilon, seed, call)


def votes(data, epsilon, seed, call="fit"):
    """Fit PATE with votes of linear discriminants, and a logistic student."""
    pate = PATEClassifier(
        _teacher(),
        logistic(),
        mechanism="gnmax",
        n_teachers=N_TEACHERS,
        representation=FunctionTransformer(),
        memory=VOTES,
    )
    return _on_components(pate, data, epsilon, seed, call)


def mean_scores(data, epsilon, seed, call="fit"):
    """Fit PATE with the mean scores of linear discriminants."""
    pate = PATEClassifier(
        _teacher(),
        mechanism="scores",
        n_teachers=N_TEACHERS,
        representation=FunctionTransformer(),
    )
    return _on_components(pate, data, epsilon, seed, call)


def private_knn(data, epsilon, seed, call="fit"):
    """Fit Private-kNN with a logistic student."""
    classifier = PrivateKNNClassifier(logistic(), representation=FunctionTransformer())
    return _on_components(classifier, data, epsilon, seed, call)


def petdl(data, epsilon, seed, call="fit"):
    """Fit PETDL with linear discriminants and a logistic student."""
    classifier = PETDLClassifier(
        _teacher(),
        DistillationClassifier(logistic()),
        n_teachers=N_TEACHERS,
        memory=VOTES,
    )
    return _on_components(classifier, data, epsilon, seed, call)


def _teacher():
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.3)


LEARNERS = {
    "PATE, steps (the recipe)": steps,
    "PATE, mean scores": mean_scores,
    "PATE, votes": votes,
    "PETDL": petdl,
    "Private-kNN": private_knn,
    "DP-SGD, logistic": dp_sgd,
    "Gaussian objective perturbation, Huber SVM": gaussian_svc,
}
#: Learners of rows of length 1, whose statement is for adding or removing a row.
LINEAR = {"DP-SGD, logistic", "Gaussian objective perturbation, Huber SVM"}
OF_OTHER_RELATION = LINEAR | {"Private-kNN"}


def network_student(representation, seed):
    """Return a network, trained on labels that neighbouring public images agree on."""
    augmentation = ImageAugmentation(shear=0.25, elastic=0.03, contrast=0.5)
    return GraphSelfTrainingClassifier(
        FixMatchClassifier(augmentation=augmentation, labeled_batch_size=64),
        make_pipeline(FrozenEstimator(representation), Normalizer()),
        n_neighbors=5,
        share=0.95,
        random_state=seed,
    )


def prepare(images, setting, seed):
    """Compute the components of a shuffle."""
    Components(images, seed)


def run(name, setting, seed, key):
    """Fit one learner; return the key, and its results."""
    warnings.simplefilter("ignore")
    images = load(name)
    data = Components(images, seed)
    start = time.process_time()
    result = MEASURES[setting["measure"]](images, data, setting, seed)
    seconds = time.process_time() - start
    return key, {
        **result,
        "cpu_seconds": seconds,
        "representation_seconds": data.seconds,
    }


def measure_learner(images, data, setting, seed):
    """Fit one learner at an epsilon for replacing one image."""
    learner, epsilon = setting["learner"], setting["target"]
    if epsilon is None:
        fitted = logistic(C=NOT_PRIVATE[learner]).fit(data.train, data.y_train)
        return {"accuracy": fitted.score(data.test, data.y_test)}
    rows, X = data, data.test
    if learner in LINEAR:
        rows = SimpleNamespace(X_train=normalize(data.train), y_train=data.y_train)
        X = normalize(X)
    fit = partial(LEARNERS[learner], rows, seed=seed)
    if learner in OF_OTHER_RELATION:
        epsilon = own_epsilon(partial(fit, call="plan_privacy"), epsilon)
    fitted = fit(epsilon)
    return {
        "accuracy": fitted.score(X, data.y_test),
        "epsilon": fitted.privacy_spent_.epsilon,
        "replace_one_epsilon": replace_one_epsilon(fitted.privacy_spent_),
    }


def measure_network(images, data, setting, seed):
    """Train a network on the function that the recipe releases."""
    fitted = steps(data, setting["target"], seed)
    X, y = images.test
    student = network_student(data.representation, seed)
    student.fit(X[data.public], fitted.soft_answers_)
    return {
        "accuracy": student.score(X[data.held_out], data.y_test),
        "of_function": fitted.score(data.test, data.y_test),
        "labels_right": np.mean(student.transduction_ == y[data.public]),
        "epsilon": fitted.privacy_spent_.epsilon,
    }


def measure_teachers(images, data, setting, seed):
    """Poll teachers on evaluated images, and compare their votes with the labels."""
    rows, X = data.train, data.test
    if setting["representation"] == "pixels":
        pixels = PCA(N_COMPONENTS, random_state=seed)
        pixels.fit(_flat(images.test[0][data.public]))
        rows = pixels.transform(_flat(images.private[0]))
        X = pixels.transform(_flat(images.test[0][data.held_out]))
    n_teachers = setting["n_teachers"]
    votes, _ = poll_teachers(
        _teacher(),
        rows,
        data.y_train,
        shard_rows(len(rows), n_teachers, seed),
        X,
        n_classes=10,
        seeds=[seed] * n_teachers,
    )
    counts = votes.counts(np.arange(len(X)))
    return {
        "rows_of_teacher": len(rows) // n_teachers,
        **vote_figures(counts, data.y_test, n_teachers),
    }


def _flat(images):
    return images.reshape(len(images), -1).astype(np.float32)


MEASURES = {
    "learner": measure_learner,
    "network": measure_network,
    "teachers": measure_teachers,
}


def comparison(images, runs):
    """Measure all learners at every epsilon."""
    settings = [
        *({"learner": learner, "target": None} for learner in NOT_PRIVATE),
        *(
            {"learner": learner, "target": epsilon}
            for learner in LEARNERS
            for epsilon in EPSILONS
        ),
    ]
    return _rows(images, runs, settings, "learner")


def network(images, runs):
    """Measure a network as student."""
    return _rows(images, runs, [{"target": one} for one in OF_NETWORK], "network")


def limits(images, runs):
    """Measure votes of teachers, by their number, with and without representation."""
    settings = [
        {"representation": representation, "n_teachers": n_teachers}
        for representation in ("components", "pixels")
        for n_teachers in (10, 25, 50, 100, 250)
    ]
    return _rows(images, runs, settings, "teachers")


def _rows(images, runs, settings, measure):
    settings = [{"measure": measure, **one} for one in settings]
    results = runs(images, settings, SHUFFLES)
    return [
        {"data": images.name, **setting, **summaries(one)}
        for setting, one in zip(settings, results, strict=True)
    ]


#: Images and rows of each table.
TABLES = {
    "mnist": ("mnist", comparison),
    "svhn": ("svhn", comparison),
    "svhn-grey": ("svhn-grey", comparison),
    "cifar10": ("cifar10", comparison),
    "network": ("mnist", network),
    "limits": ("svhn", limits),
    "limits-grey": ("svhn-grey", limits),
}


@cache
def load(name):
    """Load images by the name of the set."""
    return next(make() for title, make in IMAGE_SETS.values() if title == name)


def main():
    """Measure the named tables, or all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], metavar="table")
    parser.add_argument("--data", choices=["svhn", "svhn-official"], default="svhn")
    given = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    runs = Runs(WORK / "image-recipe.jsonl", run, prepare)
    for table in given.tables or TABLES:
        name, measure = TABLES[table]
        images = load(IMAGE_SETS[given.data if name == "svhn" else name][0])
        rows = measure(images, runs)
        save("image_recipe", {table: rows}, packages=PACKAGES, shuffles=len(SHUFFLES))


if __name__ == "__main__":
    main()
