"""Students of published vote counts. Writes results/paper_students.json.

teachers      accuracy and agreement of the teachers, and of answered queries
queries       the rows to query first, by student, batches and labels
distillation  students of labels and of probabilities, without noise
baseline      one network of all rows of MNIST
students      semi-supervised students of 100 to 1000 answers
interactive   answers of Confident-GNMax and of Interactive-GNMax

The votes are those of 250 teachers, which the 2018 paper published, for test rows of
MNIST, SVHN and Adult. Only `distillation` also trains teachers, on MNIST. Rows,
students and teachers are seeded; the noise is not. Runs of `queries` are stored in
``benchmarks/work``: after an interruption, the same command resumes.
"""

import warnings
from collections import defaultdict
from functools import cache
from types import SimpleNamespace

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer
from skorch import NeuralNetClassifier
from torch import nn

from benchmarks.accounting.accounting import published
from benchmarks.images.models import (
    GAMMA,
    Network,
    answers_at_scale_20,
    discriminant,
    vote_figures,
)
from benchmarks.images.pixels import DATA
from benchmarks.images.sets import read_svhn_grey
from benchmarks.record import WORK, Runs, command, save, summaries, summary
from sklearn_pate.datasets import fetch_adult
from sklearn_pate.mechanisms import ConfidentGNMax, GNMax, InteractiveGNMax, LNMax
from sklearn_pate.mechanisms._noise import NoiseSource
from sklearn_pate.students import GraphSelfTrainingClassifier, QuerySession
from sklearn_pate.students._queries import OneExpertPerClass
from sklearn_pate.students._train_student import soften

SEEDS = range(5)
N_TEACHERS = 250
DELTA = 1e-5
# Threshold and both scales of noise of Confident-GNMax in the 2018 paper.
CONFIDENT = {
    "MNIST": (200, 150.0, 40.0),
    "SVHN": (300, 200.0, 40.0),
    "Adult": (300, 200.0, 40.0),
}


@cache
def load(data):
    """Load the rows of a data set."""
    return DATA[{"MNIST": "mnist", "SVHN": "svhn-part"}[data]](WORK)


def divided(data, seed):
    """Return the images, public rows that have votes, and held-out rows.

    On SVHN, the public rows are those of the paper. On MNIST, 1000 test rows have no
    votes: they and 1000 random others are held out.
    """
    images = load(data)
    order = np.arange(len(images.test[1]))
    if data == "MNIST":
        with_votes = np.random.RandomState(seed).permutation(9000)
        order = np.concatenate([with_votes, order[9000:]])
        return images, order[:8000], order[8000:]
    return images, order[: images.n_public], order[images.n_public :]


def plain_network(side):
    """Return the layers of a teacher, for images that are not moved in training."""
    return nn.Sequential(nn.Unflatten(1, (1, side, side)), Network(side).layers)


class SoftCrossEntropy(nn.CrossEntropyLoss):
    """Cross-entropy of labels or probabilities, with the logits divided by T."""

    def __init__(self, temperature=1.0):
        super().__init__()
        self.temperature = temperature

    def forward(self, logits, target):
        """Return the loss; the factor keeps the size of its gradients."""
        loss = super().forward(logits / self.temperature, target)
        return loss * self.temperature**2


def network(side, n_epochs=40, temperature=1.0):
    """Return the network as a classifier."""
    return NeuralNetClassifier(
        plain_network,
        module__side=side,
        criterion=SoftCrossEntropy,
        criterion__temperature=temperature,
        optimizer=torch.optim.SGD,
        optimizer__momentum=0.9,
        lr=0.005,
        batch_size=24,
        max_epochs=n_epochs,
        iterator_train__shuffle=True,
        train_split=None,
        verbose=0,
    )


def standardized(X):
    """Return images with mean 0 and deviation 1."""
    X = np.asarray(X)
    return (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)


@cache
def pixels(data):
    """Return the standardized pixels of the test rows."""
    images = load(data)
    return standardized(images.test[0][:, : images.n_pixels])


@cache
def gradients(data, seed):
    """Return components of gradients, fitted on public rows."""
    images, public, _ = divided(data, seed)
    X = images.test[0]
    return images.gradients().fit(X[public]).transform(X)


def labels_of(kind, counts, truth, n_queries):
    """Return the labels that queries would get."""
    if kind == "true":
        return truth
    if kind == "plurality":
        return counts.argmax(axis=1)
    if kind == "GNMax":
        return GNMax(_sigma_of_equal_cost(n_queries)).answer(counts)
    return LNMax(gamma=GAMMA).answer(counts)


@cache
def _sigma_of_equal_cost(n_queries):
    """Return the noise of GNMax at the worst-case cost of LNMax."""
    epsilon = LNMax(gamma=GAMMA).cost(n_queries, 10).epsilon(DELTA)
    return brentq(
        lambda sigma: GNMax(sigma).cost(n_queries, 10).epsilon(DELTA) - epsilon,
        5,
        200,
        xtol=0.1,
    )


def unsure(criterion, session):
    """Return values of the public rows; the smallest are queried first."""
    if criterion == "experts":
        # Papernot et al. 2017: a candidate below 0.9, and 4 others above 0.1.
        scores = session.probabilities(OneExpertPerClass(session.student))
        best = scores.max(axis=1)
        disputed = (best < 0.9) & (np.sum(scores > 0.1, axis=1) >= 5)
        return np.where(disputed, -1, best)
    ranked = np.sort(session.probabilities(), axis=1)
    if criterion == "margin":
        return ranked[:, -1] - ranked[:, -2]
    return ranked[:, -1]


def run_queries(data, setting, seed, key):
    """Query in batches, and train one student; return the key and the results."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    images, public, held_out = divided(data, seed)
    counts, truth = published(data)[public], images.test[1][public]
    is_network = setting["student"] == "network"
    X = pixels(data) if is_network else gradients(data, seed)
    student = (
        network(images.shape[0])
        if is_network
        else LogisticRegression(C=100, max_iter=1000)
    )
    n_queries, n_batches = setting["n_queries"], setting["n_batches"]
    labels = labels_of(setting["labels"], counts, truth, n_queries)
    session = QuerySession(
        lambda rows, probabilities: labels[rows],
        X[public],
        student,
        n_classes=10,
        n_queries=n_queries,
        seed=seed,
    )
    n_first = setting["n_first"]
    later = np.array_split(np.arange(n_queries - n_first), n_batches)
    session.query(session.new_rows()[:n_first])
    for batch in later:
        rows = session.new_rows()
        if setting["criterion"] != "random":
            values = unsure(setting["criterion"], session)[rows]
            rows = rows[np.argsort(values, kind="stable")]
        session.query(rows[: len(batch)])
    student.fit(X[public][session.queried], session.answers)
    return key, {
        "accuracy": float(student.score(X[held_out], images.test[1][held_out])),
        "right": float(np.mean(session.answers == truth[session.queried])),
    }


#: Criterion, share of the queries in the random first batch, number of later batches.
BATCHES = {
    "random": ("random", 1, 1),
    "least confident, 1 batch": ("confidence", 1 / 2, 1),
    "least confident, 4 batches": ("confidence", 1 / 5, 4),
    "least confident, 24 batches": ("confidence", 1 / 25, 24),
    "least margin, 4 batches": ("margin", 1 / 5, 4),
    "experts, 1 batch": ("experts", 1 / 2, 1),
}
#: The size of the first batch of the 2017 paper, before 500 queries by experts.
FIRST_OF_2200 = 1700
#: Names of settings in BATCHES, by data, student and number of queries.
QUERIES = {
    ("MNIST", "logistic", 50): [*BATCHES],
    ("MNIST", "logistic", 100): [*BATCHES],
    ("MNIST", "logistic", 300): [*BATCHES],
    ("SVHN", "logistic", 500): [*BATCHES],
    ("SVHN", "logistic", 2200): [
        "random",
        "least confident, 1 batch",
        "experts, 1 batch",
    ],
    ("MNIST", "network", 100): [*BATCHES][:2],
    ("MNIST", "network", 1000): [*BATCHES][:2],
    ("SVHN", "network", 2200): [*BATCHES][:2],
}
#: Labels, where they are not the true ones and those of LNMax.
LABELS = {
    ("MNIST", "logistic", 100): ["true", "LNMax", "GNMax", "plurality"],
    ("SVHN", "network", 2200): ["LNMax"],
}


def queries(runs):
    """Compare random queries with those of which the student is least sure."""
    rows = []
    for (data, student, n_queries), names in QUERIES.items():
        for labels in LABELS.get((data, student, n_queries), ["true", "LNMax"]):
            settings = []
            for name in names:
                criterion, share, n_batches = BATCHES[name]
                n_first = round(share * n_queries)
                if n_queries == 2200 and name != "random":
                    n_first = FIRST_OF_2200
                settings.append(
                    {
                        "student": student,
                        "n_queries": n_queries,
                        "labels": labels,
                        "criterion": criterion,
                        "n_first": n_first,
                        "n_batches": n_batches,
                    }
                )
            random, *_ = measured = runs(SimpleNamespace(name=data), settings, SEEDS)
            for name, results in zip(names, measured, strict=True):
                gains = [
                    one["accuracy"] - other["accuracy"]
                    for one, other in zip(results, random, strict=True)
                ]
                rows.append(
                    {
                        "data": data,
                        "student": student,
                        "n_queries": n_queries,
                        "labels": labels,
                        "queries": name,
                        **summaries(results),
                        "gain": summary(gains),
                    }
                )
    return rows


def teachers(runs):
    """Measure the teachers whose votes are published, and Confident-GNMax's answers."""
    rows = []
    for data, truth in {
        "MNIST": load("MNIST").test[1][:9000],
        "SVHN": read_svhn_grey()[1],
        "Adult": np.unique(fetch_adult(subset="test").target, return_inverse=True)[1],
    }.items():
        counts = published(data)
        right = counts.argmax(axis=1) == truth
        answers = ConfidentGNMax(*CONFIDENT[data]).answer(counts)
        answered = answers >= 0
        rows.append(
            {
                "data": data,
                "n_rows": len(truth),
                **vote_figures(counts, truth, N_TEACHERS),
                "scale_20": answers_at_scale_20(counts, truth),
                "answered": float(answered.mean()),
                "right_answered": float(right[answered].mean()),
                "right_refused": float(right[~answered].mean()),
            }
        )
        print(rows[-1], flush=True)
    return rows


def distillation(runs):
    """Compare hard labels with probabilities at two temperatures, without noise.

    On MNIST, 50 networks return probabilities. On SVHN, they are shares of votes.
    """
    rows = []
    for data, sizes in {"MNIST": (100, 1000), "SVHN": (1000,)}.items():
        side = load(data).shape[0]
        y, X = load(data).test[1], pixels(data)
        by_temperature = dict(zip((1, 5), _probabilities(data), strict=True))
        for n_queries in sizes:
            measured = defaultdict(list)
            for seed in SEEDS:
                _, public, held_out = divided(data, seed)
                queried = np.random.RandomState(seed).permutation(public)[:n_queries]
                for way, temperature in (("labels", 1), ("T = 1", 1), ("T = 5", 5)):
                    targets = by_temperature[temperature][queried].astype(np.float32)
                    if way == "labels":
                        targets = targets.argmax(axis=1)
                    torch.manual_seed(seed)
                    student = network(side, temperature=temperature)
                    predicted = student.fit(X[queried], targets).predict(X[held_out])
                    measured[way].append(np.mean(predicted == y[held_out]))
            for way, values in measured.items():
                rows.append(
                    {
                        "data": data,
                        "n_queries": n_queries,
                        "way": way,
                        "accuracy": summary(values),
                        "gain": summary(np.subtract(values, measured["labels"])),
                    }
                )
                print(rows[-1], flush=True)
    return rows


def _probabilities(data):
    """Return mean probabilities of the teachers on the test rows, at T = 1 and 5."""
    if data == "SVHN":
        counts = published(data)
        return counts / N_TEACHERS, soften(counts, 5)
    images, X_test = load(data), pixels(data)
    X, y = images.private
    X = standardized(X[:, : images.n_pixels])
    sums = np.zeros((2, len(X_test), 10))
    for shard in np.array_split(np.random.RandomState(0).permutation(len(y)), 50):
        torch.manual_seed(0)
        teacher = network(images.shape[0], n_epochs=8).fit(X[shard], y[shard])
        logits = teacher.forward(X_test).numpy()
        sums += softmax([logits, logits / 5], axis=2)
    print("teachers", np.mean(sums[0].argmax(axis=1) == images.test[1]), flush=True)
    return sums / 50


def baseline(runs):
    """Train a network on all private rows of MNIST."""
    images, X_test = load("MNIST"), pixels("MNIST")
    X, y = images.private
    torch.manual_seed(0)
    model = network(images.shape[0], n_epochs=4)
    model.fit(standardized(X[:, : images.n_pixels]), y)
    accuracy = model.score(X_test, images.test[1])
    return [{"data": "MNIST", "accuracy": summary([accuracy])}]


def students(runs):
    """Measure a semi-supervised student of noisy labels, beside the plurality."""
    rows = []
    for data, sizes in {"MNIST": (100, 1000), "SVHN": (500, 1000)}.items():
        for n_queries in sizes:
            measured = defaultdict(list)
            for seed in SEEDS:
                images, public, held_out = divided(data, seed)
                X, y = gradients(data, seed), images.test[1]
                counts = published(data)[public]
                labels = np.full(len(public), -1)
                queried = np.random.RandomState(seed).permutation(len(public))
                queried = queried[:n_queries]
                labels[queried] = LNMax(gamma=GAMMA).answer(counts[queried])
                student = GraphSelfTrainingClassifier(
                    discriminant(images, None),
                    FunctionTransformer(),
                    n_neighbors=5,
                    share=1.0,
                ).fit(X[public], labels)
                measured["accuracy"].append(student.score(X[held_out], y[held_out]))
                measured["plurality"].append(
                    np.mean(counts.argmax(axis=1) == y[public])
                )
            rows.append(
                {
                    "data": data,
                    "n_queries": n_queries,
                    **{name: summary(values) for name, values in measured.items()},
                }
            )
            print(rows[-1], flush=True)
    return rows


def interactive(runs):
    """Count answers of the teachers for students of 640 queries.

    Both thresholds are the same for a student without an answer so far, for whom the
    expectation is 25 votes.
    """
    _, *scales = CONFIDENT["MNIST"]
    rows = []
    for name, mechanism in {
        "Confident-GNMax": ConfidentGNMax(125, *scales),
        "Interactive-GNMax": InteractiveGNMax(100, *scales, n_teachers=N_TEACHERS),
    }.items():
        results = [_ten_batches(mechanism, 640, seed) for seed in SEEDS]
        rows.append({"mechanism": name, "n_queries": 640, **summaries(results)})
        print(rows[-1], flush=True)
    return rows


def _ten_batches(mechanism, n_queries, seed):
    """Train a student of random queries, whose probabilities go with later ones."""
    images, public, held_out = divided("MNIST", seed)
    X, y = gradients("MNIST", seed), images.test[1]
    counts, n_given = published("MNIST")[public], []

    def answer(rows, probabilities):
        response = mechanism.respond(
            counts[rows], NoiseSource(), n_queries, probabilities=probabilities
        )
        n_given.append(response.n_given)
        return response.answers

    student = LogisticRegression(C=100, max_iter=1000)
    session = QuerySession(
        answer, X[public], student, n_classes=10, n_queries=n_queries, seed=seed
    )
    for batch in np.array_split(session.new_rows()[:n_queries], 10):
        session.query(batch, session.probabilities()[batch])
    labelled = session.answers >= 0
    queried = public[session.queried[labelled]]
    student.fit(X[queried], session.answers[labelled])
    capped = clone(mechanism).set_params(max_answers=sum(n_given))
    return {
        "n_given": sum(n_given),
        "n_labels": int(labelled.sum()),
        "right": np.mean(session.answers[labelled] == y[queried]),
        "epsilon": capped.cost(n_queries, 10).epsilon(DELTA),
        "accuracy": student.score(X[held_out], y[held_out]),
    }


TABLES = {
    "teachers": teachers,
    "queries": queries,
    "distillation": distillation,
    "baseline": baseline,
    "students": students,
    "interactive": interactive,
}
WITHOUT_SEEDS = ("teachers", "baseline")


def main():
    """Measure the named tables, or all."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    given = command(__doc__, TABLES).parse_args()
    WORK.mkdir(exist_ok=True)
    runs = Runs(WORK / "paper-students.jsonl", run_queries, n_jobs=1)
    for table in given.tables:
        facts = {} if table in WITHOUT_SEEDS else {"seeds": list(SEEDS)}
        save("paper_students", table, TABLES[table](runs), **facts)
