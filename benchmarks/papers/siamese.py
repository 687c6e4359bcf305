"""Networks trained on pairs of images, on MNIST. Writes results/siamese.json.

teachers  teachers trained on pairs of rows (same label, other label), which vote by the
          nearest class mean of their embedding, and the same networks trained on labels
student   what the 2017 paper tried: labels of public images without an answer, from the
          answered image that a network trained on pairs matches best

Takes fifteen minutes on one core. Learning rates and the margin were chosen on a few
hundred training rows, scored on other training rows. Polls are stored in
``benchmarks/work``: after an interruption, the same command resumes. Shards and
networks are seeded; the noise is not.
"""

import time
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import torch
from joblib import Memory
from sklearn.base import TransformerMixin
from sklearn.neighbors import NearestCentroid, NearestNeighbors
from sklearn.pipeline import make_pipeline
from skorch import NeuralNet
from torch import nn
from torch.nn import functional

from benchmarks.images.models import Network, answers_at_scale_20, network, vote_figures
from benchmarks.learners.dpsgd import load_pixels
from benchmarks.record import WORK, command, save, summary
from sklearn_pate._estimators._isolation import seeded_globals
from sklearn_pate._teachers._shards import shard_rows
from sklearn_pate._teachers._training import VoteForm, collect
from sklearn_pate._votes._votes import Votes

MNIST = SimpleNamespace(shape=(28, 28))
N_QUERIES = 2000
#: Number of teachers: epochs of each, about the same number of batches.
SIZES = {250: 30, 50: 8}
SEEDS = range(3)
N_PUBLIC = 9000
#: Number of answers of the student: epochs.
ANSWERS = {100: 60, 1000: 30}
CONFIDENT = (0.1, 0.5, 1.0)


class Still(Network):
    """The network without augmentation."""

    def forward(self, X):
        """Return logits."""
        return self.layers(X.reshape(-1, 1, self.side, self.side))


class ContrastiveLoss(nn.Module):
    """Loss of Hadsell, Chopra and LeCun (2006) over all pairs of rows of a batch.

    Pairs of equal labels and pairs of different labels have the same total weight.
    """

    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin

    def forward(self, embedded, y):
        """Return the mean loss of similar pairs plus that of other pairs."""
        first, second = torch.triu_indices(len(y), len(y), offset=1)
        squares = (embedded[first] - embedded[second]).square().sum(dim=1)
        distances = (squares + 1e-12).sqrt()  # its gradient is finite at 0
        too_near = functional.relu(self.margin - distances).square()
        similar = y[first] == y[second]
        return _mean(squares[similar]) + _mean(too_near[~similar])


def _mean(losses):
    return losses.sum() / max(len(losses), 1)


class PairEmbedding(TransformerMixin, NeuralNet):
    """Embedding by a network that is trained on pairs of rows."""

    def transform(self, X):
        """Return the outputs of the network."""
        return self.predict(X)


def on_labels(module, n_epochs):
    """Return the network, trained on labels by cross-entropy."""
    return network(MNIST, None).set_params(
        module=module, lr=0.1, batch_size=60, max_epochs=n_epochs
    )


def on_pairs(module, n_epochs):
    """Return the same network, trained on pairs; its ten outputs are an embedding."""
    return PairEmbedding(
        module,
        criterion=ContrastiveLoss,
        optimizer=torch.optim.SGD,
        optimizer__momentum=0.9,
        lr=0.05,
        batch_size=60,
        max_epochs=n_epochs,
        iterator_train__shuffle=True,
        train_split=None,
        verbose=0,
    )


def teacher(way, module, n_epochs):
    """Return a teacher; both are pipelines, so that both are trained one by one."""
    if way == "labels":
        return make_pipeline(on_labels(module, n_epochs))
    return make_pipeline(on_pairs(module, n_epochs), NearestCentroid())


@Memory(WORK / "siamese", verbose=0).cache
def poll(way, augmented, n_teachers):
    """Return vote counts, CPU seconds per teacher and the number of failed teachers."""
    X, y = load_pixels("train")
    start = time.process_time()
    votes, problems = collect(
        teacher(way, Network if augmented else Still, SIZES[n_teachers]),
        X,
        y,
        shard_rows(len(X), n_teachers, 0),
        load_pixels("test")[0][:N_QUERIES],
        form=VoteForm(10),
        aggregate=partial(Votes, n_public=N_QUERIES, n_classes=10),
        seeds=np.random.RandomState(0).randint(2**31 - 1, size=n_teachers).tolist(),
    )
    seconds = (time.process_time() - start) / n_teachers
    return votes.counts(np.arange(N_QUERIES)), seconds, len(problems.failures)


def teachers():
    """Compare teachers trained on pairs with teachers trained on labels."""
    y = load_pixels("test")[1][:N_QUERIES]
    rows = []
    for n_teachers, augmented in ((250, True), (50, True), (50, False)):
        for way in ("labels", "pairs"):
            counts, seconds, n_failed = poll(way, augmented, n_teachers)
            rows.append(
                {
                    "n_teachers": n_teachers,
                    "augmented": augmented,
                    "way": way,
                    **vote_figures(counts, y, n_teachers),
                    "scale_20": answers_at_scale_20(counts, y),
                    "cpu_seconds": seconds,
                    "n_failed": n_failed,
                }
            )
            print(rows[-1], flush=True)
    return rows


def by_labels(X, y, X_other, n_epochs):
    """Label other images by the network; return labels and confidence."""
    shares = on_labels(Network, n_epochs).fit(X, y).predict_proba(X_other)
    return shares.argmax(axis=1), shares.max(axis=1)


def by_same_label(X, y, X_other, n_epochs):
    """Match other images with answered ones, after training on pairs of answers."""
    return matched(on_pairs(Network, n_epochs).fit(X, y), X, y, X_other)


def by_same_image(X, y, X_other, n_epochs):
    """Match after training on pairs of an image with itself, moved twice, or another.

    No answer is used in training. Consecutive rows are one image, for two epochs.
    """
    images = np.repeat(np.concatenate([X, X_other]), 2, axis=0)
    pairs = on_pairs(Network, 2).set_params(iterator_train__shuffle=False)
    pairs.fit(images, np.arange(len(images)) // 2)
    return matched(pairs, X, y, X_other)


def matched(embedding, X, y, X_other):
    """Return the labels of the nearest answered images, and the confidence in them."""
    nearest = NearestNeighbors(n_neighbors=1).fit(embedding.transform(X))
    distances, rows = nearest.kneighbors(embedding.transform(X_other))
    return y[rows[:, 0]], -distances[:, 0]


STUDENTS = {
    "labels": by_labels,
    "pairs: same label": by_same_label,
    "pairs: same image": by_same_image,
}


def student():
    """Return the share of right labels among the most confident ones."""
    X, y = load_pixels("test")
    rows = []
    for n_answers, n_epochs in ANSWERS.items():
        for way, label in STUDENTS.items():
            right = {share: [] for share in CONFIDENT}
            for seed in SEEDS:
                public = np.random.RandomState(seed).permutation(len(y))[:N_PUBLIC]
                answered, other = public[:n_answers], public[n_answers:]
                with seeded_globals(seed):
                    labels, confidence = label(
                        X[answered], y[answered], X[other], n_epochs
                    )
                is_right = (labels == y[other])[np.argsort(-confidence)]
                for share in CONFIDENT:
                    right[share].append(is_right[: int(share * len(other))].mean())
            shares = {f"{share:g}": summary(one) for share, one in right.items()}
            rows.append({"n_answers": n_answers, "way": way, "right": shares})
            print(rows[-1], flush=True)
    return rows


TABLES = {"teachers": teachers, "student": student}
TABLE_SEEDS = {"teachers": [0], "student": list(SEEDS)}


def main():
    """Measure the named tables, or both."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    WORK.mkdir(exist_ok=True)
    for table in command(__doc__, TABLES).parse_args().tables:
        save(
            "siamese",
            table,
            TABLES[table](),
            packages=("torch", "skorch"),
            seeds=TABLE_SEEDS[table],
        )
