"""Learners on one representation of images. Writes results/image_recipe.json.

mnist, svhn, svhn-grey, cifar10
                        learners on one representation, at equal replace-one epsilon
scattering              some of them on scattering features of CIFAR-10
network                 MNIST with a network as student, at small epsilon
limits, limits-grey     teachers' votes on SVHN, by the number of teachers

DPNewton is ``DPNewtonClassifier().fit`` on arrays of images: an ImageRepresentation of
public images, and a logistic regression by noisy Newton steps. Nothing is set for a
data set. All learners get the same components; a network as student gets pixels.

Takes some hours. ``--data svhn-official`` takes the official files of SVHN in place of
the first 16,419 test digits. SCATTERING_PYTHON is the Python of the environment of
``peer_scattering.py``. Components and finished runs are stored in ``benchmarks/work``:
after an interruption, the same command resumes. The noise is not seeded.
"""

import os

# Two runs at a time, with one thread each.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import subprocess
import time
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
from joblib import Parallel, delayed
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    StandardScaler,
    normalize,
)

from benchmarks.images.models import vote_figures
from benchmarks.images.sets import IMAGE_SETS, load
from benchmarks.learners.settings import (
    DELTA,
    N_TEACHERS,
    VOTES,
    dp_sgd,
    gaussian_svc,
    logistic,
    own_epsilon,
    replace_one_epsilon,
)
from benchmarks.record import WORK, Runs, command, save, summaries
from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate._teachers._shards import shard_rows
from sklearn_pate._teachers._training import VoteForm, collect
from sklearn_pate._votes._votes import Votes
from sklearn_pate.accounting._calibrate import gdp_epsilon, largest_gdp_mu
from sklearn_pate.learners import (
    DPNewtonClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.students import (
    DistillationClassifier,
    FixMatchClassifier,
    GraphSelfTrainingClassifier,
    ImageAugmentation,
    ImageRepresentation,
)

SHUFFLES = range(5)
PACKAGES = ("torch", "skorch", "opacus")
N_COMPONENTS = 1000
#: The epsilon for replacing a row at which DP-SGD with epsilon 3 for adding or removing
#: one has the same noise: that of the published 69.3 % on CIFAR-10.
OF_THREE = gdp_epsilon(2 * largest_gdp_mu(3.0, DELTA), DELTA)
EPSILONS = (1.0, 2.5, 5.5, 8.0, OF_THREE)
SMALL_EPSILONS = (0.1, 0.25, 0.5)
NOT_PRIVATE = "not private, logistic"
#: C of logistic regression without privacy, by representation, in its favour.
C = {"components": 0.01, "scattering": 0.001}


class Components:
    """Components of the images of a shuffle, by public images alone."""

    def __init__(self, images, seed, kind):
        self.public, self.held_out = images.shuffled(seed)
        self.representation, self.train, test, self.seconds = joblib.load(
            components_file(images, seed, kind), mmap_mode="r"
        )
        self.y_train = images.private[1]
        self.of_public, self.test = test[self.public], test[self.held_out]
        self.y_test = images.test[1][self.held_out]


class ScaledComponents(PCA):
    """Principal components, each divided by the square root of its deviation."""

    def transform(self, X):
        """Transform rows."""
        return super().transform(X) / self.explained_variance_**0.25


def components_file(images, seed, kind):
    """Return the file of the components of a shuffle."""
    return WORK / f"{kind}-{images.name}-{seed}.joblib"


def store_components(images, seed, kind, path):
    """Compute the components of a shuffle, once."""
    if path.exists():
        return
    start = time.process_time()
    features, make = REPRESENTATIONS[kind]
    private, test = features(images.private[0]), features(images.test[0])
    public, _ = images.shuffled(seed)
    representation = make(seed).fit(test[public])
    parts = [
        np.vstack([representation.transform(part) for part in np.array_split(one, 20)])
        for one in (private, test)
    ]
    unfinished = path.with_suffix(".unfinished")
    joblib.dump((representation, *parts, time.process_time() - start), unfinished)
    unfinished.rename(path)


def flat(images):
    """Return pixels in rows."""
    return images.reshape(len(images), -1).astype(np.float32)


def scattering(images):
    """Return scattering features, computed in another environment."""
    features = WORK / f"scattering-{len(images)}.npy"
    if not features.exists():
        pixels = WORK / "scattered.npy"
        np.save(pixels, images)
        script = Path(__file__).with_name("peer_scattering.py")
        python = os.environ["SCATTERING_PYTHON"]
        subprocess.run([python, script, pixels, features], check=True)
    return np.load(features, mmap_mode="r")


def components(seed):
    """Return the representation of all learners."""
    return ImageRepresentation(n_components=N_COMPONENTS, random_state=seed)


def principal(seed):
    """Return principal components of pixels."""
    return PCA(N_COMPONENTS, random_state=seed)


def scattering_components(seed):
    """Return components of standardized scattering features.

    Their scale is the one that linear private learners are most accurate with, out of
    deviations, their square roots and 1.
    """
    return make_pipeline(
        FunctionTransformer(partial(np.asarray, dtype=np.float32)),
        StandardScaler(),
        ScaledComponents(N_COMPONENTS, random_state=seed),
    )


#: Features of images, and what is fitted on those of public images.
REPRESENTATIONS = {
    "components": (np.asarray, components),
    "pixels": (flat, principal),
    "scattering": (scattering, scattering_components),
}


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


def newton(data, epsilon, seed, call="fit"):
    """Fit noisy Newton steps, on components in place of images."""
    classifier = DPNewtonClassifier(
        representation=FunctionTransformer(), max_coordinates=N_COMPONENTS
    )
    return _on_components(classifier, data, epsilon, seed, call)


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


def large_batches(data, epsilon, seed, call="fit"):
    """Fit DP-SGD with large batches and short gradients (Tramer, Boneh 2021).

    Epochs and learning rates were chosen by evaluated digits of SVHN, in its favour.
    """
    return dp_sgd(
        data,
        epsilon,
        seed,
        call,
        max_grad_norm=0.1,
        lr=400.0 if epsilon > 1 else 160.0,
        batch_size=len(data.X_train) // 6,
        max_epochs=20,
    )


def _teacher():
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.3)


LEARNERS = {
    "DPNewton": newton,
    "PATE, votes": votes,
    "PETDL": petdl,
    "Private-kNN": private_knn,
    "DP-SGD, linear": large_batches,
    "Gaussian objective perturbation": gaussian_svc,
}
QUICK = ("DPNewton", NOT_PRIVATE)
#: Learners of rows of length 1, whose statement is for adding or removing a row.
LINEAR = ("DP-SGD, linear", "Gaussian objective perturbation")
OF_OTHER_RELATION = (*LINEAR, "Private-kNN")


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


def run(name, setting, seed, key):
    """Fit one learner; return the key, and its results."""
    warnings.simplefilter("ignore")
    images = load(name)
    data = Components(images, seed, _kind(setting))
    start = time.process_time()
    result = MEASURES[setting["measure"]](images, data, setting, seed)
    seconds = time.process_time() - start
    return key, {
        **result,
        "cpu_seconds": seconds,
        "representation_seconds": data.seconds,
    }


def _kind(setting):
    return setting.get("representation", "components")


def measure_learner(images, data, setting, seed):
    """Fit one learner at an epsilon for replacing one image."""
    learner, epsilon = setting["learner"], setting["target"]
    if epsilon is None:
        fitted = logistic(C[_kind(setting)]).fit(data.train, data.y_train)
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
    """Train a network on the class probabilities of DPNewton."""
    fitted = newton(data, setting["target"], seed)
    X, y = images.test
    student = network_student(data.representation, seed)
    student.fit(X[data.public], fitted.predict_proba(data.of_public))
    return {
        "accuracy": student.score(X[data.held_out], data.y_test),
        "of_function": fitted.score(data.test, data.y_test),
        "labels_right": np.mean(student.transduction_ == y[data.public]),
        "epsilon": fitted.privacy_spent_.epsilon,
    }


def measure_teachers(images, data, setting, seed):
    """Poll teachers on evaluated images, and compare their votes with the labels."""
    n_rows, n_teachers = len(data.train), setting["n_teachers"]
    votes, _ = collect(
        _teacher(),
        data.train,
        data.y_train,
        shard_rows(n_rows, n_teachers, seed),
        data.test,
        form=VoteForm(10),
        aggregate=partial(Votes, n_public=len(data.test), n_classes=10),
        seeds=[seed] * n_teachers,
    )
    counts = votes.counts(np.arange(len(data.test)))
    return {
        "rows_of_teacher": n_rows // n_teachers,
        **vote_figures(counts, data.y_test, n_teachers),
    }


MEASURES = {
    "learner": measure_learner,
    "network": measure_network,
    "teachers": measure_teachers,
}


def comparison(
    images, runs, epsilons=None, n_shuffles=(3, 2), learners=None, **options
):
    """Measure learners at every epsilon; DPNewton on more shuffles than others."""
    settings = [
        {"learner": NOT_PRIVATE, "target": None},
        *(
            {"learner": learner, "target": epsilon}
            for learner in learners or LEARNERS
            for epsilon in epsilons or EPSILONS
        ),
    ]
    quick = [one | options for one in settings if one["learner"] in QUICK]
    slow = [one | options for one in settings if one["learner"] not in QUICK]
    return [
        *_rows(images, runs, quick, "learner", n_shuffles[0]),
        *_rows(images, runs, slow, "learner", n_shuffles[1]),
    ]


def network(images, runs):
    """Measure a network as student."""
    settings = [{"target": one} for one in SMALL_EPSILONS]
    return _rows(images, runs, settings, "network", len(SHUFFLES))


def limits(images, runs):
    """Measure votes of teachers, by their number, with and without representation."""
    settings = [
        {"representation": representation, "n_teachers": n_teachers}
        for representation in ("components", "pixels")
        for n_teachers in (10, 50, 250)
    ]
    return _rows(images, runs, settings, "teachers", 2)


def _rows(images, runs, settings, measure, n_shuffles):
    shuffles = SHUFFLES[:n_shuffles]
    kinds = set(map(_kind, settings))
    if "scattering" in kinds:  # once, before two jobs read it
        scattering(images.private[0]), scattering(images.test[0])
    Parallel(runs.n_jobs)(
        delayed(store_components)(
            images, seed, kind, components_file(images, seed, kind)
        )
        for kind in kinds
        for seed in shuffles
    )
    settings = [{"measure": measure, **one} for one in settings]
    results = runs(images, settings, shuffles)
    return [
        {"data": images.name, **setting, **summaries(one)}
        for setting, one in zip(settings, results, strict=True)
    ]


#: Images and rows of each table.
TABLES = {
    "mnist": ("mnist", partial(comparison, epsilons=(0.1, 0.5, 1.0))),
    "svhn": ("svhn", partial(comparison, n_shuffles=(5, 3))),
    "svhn-grey": ("svhn-grey", comparison),
    "cifar10": ("cifar10", comparison),
    "scattering": (
        "cifar10",
        partial(
            comparison,
            epsilons=(1.0, OF_THREE, 8.0),
            n_shuffles=(1, 1),
            learners=["DPNewton", *LINEAR],
            representation="scattering",
        ),
    ),
    "network": ("mnist", network),
    "limits": ("svhn", limits),
    "limits-grey": ("svhn-grey", limits),
}


def main():
    """Measure the named tables, or all."""
    parser = command(__doc__, TABLES)
    parser.add_argument("--data", choices=["svhn", "svhn-official"], default="svhn")
    given = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    runs = Runs(WORK / "image-recipe.jsonl", run)
    for table in given.tables:
        name, measure = TABLES[table]
        images = load(IMAGE_SETS[given.data if name == "svhn" else name][0])
        rows = measure(images, runs)
        save("image_recipe", table, rows, packages=PACKAGES)
