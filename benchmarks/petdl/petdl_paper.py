"""PETDL as in its 2019 paper: noise on the student's loss, without privacy.

The paper adds Gaussian noise to the mean of the teachers' clipped losses (equations 3
and 4). This does not change the gradient of the loss: the student does
not depend on the noise, and an attacker who can train on two data sets can decide which
of them a student is from. Teachers and students of the paper's MNIST claims (Tables 1
and 2) are trained and attacked. Writes the table noise_on_loss of results/petdl.json.
There are 3000 private images: enough for the attack, but not for the accuracy. With
``--all-images``, there are 60,000::

    python -m benchmarks petdl_paper
    python -m benchmarks petdl_paper --all-images
"""

import numpy as np
import torch
from scipy.stats import binom

from benchmarks.petdl.teachers import (
    N_CLASSES,
    WORK,
    ensemble,
    load_images,
    network_outputs,
)
from benchmarks.record import command, save, summary
from sklearn_pate._estimators._hidden_layer import hidden_of_batch
from sklearn_pate._estimators._isolation import one_thread, seeded_globals
from sklearn_pate.students import ConvSmall
from sklearn_pate.students.networks._images import PublicRows
from sklearn_pate.students.networks._network_classifier import (
    SemiSupervisedNet,
    alike,
    disagreement,
    predict_logits,
)

SHUFFLES = range(3)
DELTA = 1e-5
N_FITS = 20
#: Public rows of an attacked student, which is trained for one epoch.
N_ATTACKED = 1000
#: Claims of the paper: teachers, then accuracy and epsilon on MNIST, SVHN and CIFAR-10;
#: Table 1, and Table 2 without and with weights.
CLAIMS = [
    (2, (99.12, 1.43), (94.67, 4.51), (74.33, 6.50)),
    (4, (99.33, 1.21), (95.35, 2.96), (76.81, 5.48)),
    (10, (97.26, 1.17), (90.31, 2.51), (62.21, 2.33)),
    (10, (98.69, 0.91), (91.15, 2.12), (71.3, 2.23)),
]
#: Teachers of each claim, and whether they are weighted by their confidence.
VARIANTS = [
    ("network", False),
    ("network", False),
    ("biased", False),
    ("biased", True),
]


class NoisyLossNet(SemiSupervisedNet):
    """Training by Algorithm 1 of the paper.

    The paper's hint compares hidden layers neuron by neuron, which needs equal layers
    in the same order; here it compares similarities of rows.
    """

    def __init__(
        self,
        module,
        *,
        n_teachers,
        weighted=False,
        hint_epochs=1,
        noise_scale=1.0,
        clipping_bound=10.0,
        **parameters,
    ):
        super().__init__(module, **parameters)
        self.n_teachers = n_teachers
        self.weighted = weighted
        self.hint_epochs = hint_epochs
        self.noise_scale = noise_scale
        self.clipping_bound = clipping_bound

    def on_train_begin(self, net, X=None, y=None, **kwargs):
        """Create the generator of the noise, separate from the seeded one."""
        super().on_train_begin(net, X=X, y=y, **kwargs)
        self.n_hint_steps_ = self.hint_epochs * len(self.get_iterator(X))
        self.noise_ = torch.Generator()
        self.noise_.seed()

    def batch_loss(self, labeled, targets, unlabeled):
        """Compute the mean of the teachers' clipped losses, with noise."""
        by_teacher = targets.reshape(len(targets), self.n_teachers, -1).unbind(dim=1)
        if self.n_steps_ < self.n_hint_steps_:
            losses = self._hint_losses(labeled, by_teacher)
        else:
            losses = self._distillation_losses(labeled, by_teacher)
        clipped = losses / (losses / self.clipping_bound).clamp_min(1)  # equation 3
        scale = self.noise_scale * self.clipping_bound
        return clipped.mean() + scale * torch.randn((), generator=self.noise_)

    def _hint_losses(self, inputs, by_teacher):
        hidden = hidden_of_batch(self.module_, inputs)
        others = ~torch.eye(len(inputs), dtype=torch.bool)
        wanted = [alike(outputs[:, N_CLASSES:]) for outputs in by_teacher]
        return torch.stack([disagreement(hidden, one, others) for one in wanted])

    def _distillation_losses(self, inputs, by_teacher):
        log_student = self.module_(inputs).log_softmax(dim=1)
        losses = []
        for outputs in by_teacher:
            probabilities = outputs[:, :N_CLASSES]
            of_rows = -(probabilities * log_student).sum(dim=1)
            if self.weighted:
                of_rows = of_rows * probabilities.max(dim=1).values
            losses.append(of_rows.mean())
        return torch.stack(losses)


def student(images, X, outputs, *, distillation_epochs=10, hint_epochs=2, **parameters):
    """Train a student on the teachers' outputs; only the noise is not seeded."""
    inputs = torch.from_numpy(np.array(X[:, : images.n_pixels]))
    targets = np.hstack([np.hstack(one) for one in outputs]).astype(np.float32)
    with seeded_globals(0), one_thread():
        net = NoisyLossNet(
            ConvSmall()((1, *images.shape), N_CLASSES),
            n_teachers=len(outputs),
            hint_epochs=hint_epochs,
            max_epochs=hint_epochs + distillation_epochs,
            batch_size=128,
            labeled_batch_size=128,
            lr=3e-3,
            verbose=0,
            **parameters,
        ).fit(PublicRows(inputs, torch.from_numpy(targets)))
    return net.averaged_


def predicted(images, module, X):
    """Return the logits of a published student."""
    with one_thread():
        inputs = torch.from_numpy(np.array(X[:, : images.n_pixels]))
        return predict_logits(module, inputs).numpy()


def accuracy(images, outputs, weighted, seed):
    """Train a student on the public rows of a shuffle, and score it on the others."""
    public, held_out = images.shuffled(seed)
    X, y = images.test
    module = student(images, X[public], chosen(outputs, public), weighted=weighted)
    return np.mean(predicted(images, module, X[held_out]).argmax(axis=1) == y[held_out])


def attack(images, outputs, neighbour, weighted):
    """Choose the data of each student by a coin, and count right guesses of the coin.

    The attacker has trained a student on the second data set, and guesses it if the
    published student is equal to the last bit.
    """
    X = images.test[0]
    rows = images.shuffled(0)[0][:N_ATTACKED]
    data_sets = [chosen(outputs, rows), chosen([neighbour, *outputs[1:]], rows)]

    def published(coin):
        module = student(
            images,
            X[rows],
            data_sets[coin],
            distillation_epochs=1,
            hint_epochs=1,
            weighted=weighted,
        )
        return predicted(images, module, X)

    suspected = published(1)
    coins = np.random.default_rng().integers(2, size=N_FITS)
    guesses = [np.array_equal(published(coin), suspected) for coin in coins]
    return int(np.sum(guesses == coins))


def chosen(outputs, rows):
    """Return the teachers' outputs on some of the test rows."""
    return [(p[rows], h[rows]) for p, h in outputs]


def noise_on_loss(images, name):
    """Measure accuracy and attack for the paper's MNIST claims."""
    rows = []
    for (n_teachers, claim, *_), (kind, weighted) in zip(CLAIMS, VARIANTS, strict=True):
        outputs = ensemble(name, kind, n_teachers)
        neighbour = network_outputs(name, kind, n_teachers, 0, other_label=True)
        n_right = attack(images, outputs, neighbour, weighted)
        rows.append(
            {
                "data": images.name,
                "teacher": kind,
                "n_teachers": n_teachers,
                "weighted": weighted,
                "claimed_accuracy": claim[0],
                "claimed_epsilon": claim[1],
                "accuracy": summary(
                    accuracy(images, outputs, weighted, seed) for seed in SHUFFLES
                ),
                "guesses": N_FITS,
                "right": n_right,
                "epsilon_at_least": bound_from_guesses(
                    n_right,
                    n_guesses=N_FITS,
                    n_canaries=N_FITS,
                    delta=DELTA,
                    confidence=0.95,
                ),
            }
        )
        print(rows[-1], flush=True)
    return rows


def guesses_p_value(
    n_correct: int, *, n_guesses: int, n_canaries: int, epsilon: float, delta: float
) -> float:
    """Bound the probability of at least this many correct guesses under a true claim.

    The number of guesses is fixed beforehand; each canary has a fair secret bit.
    Steinke, Nasr, Jagielski (2023), "Privacy auditing with one (1) training run",
    Theorem 5.2 and Appendix D: with W ~ Binomial(r, 1 / (1 + exp(-epsilon))), the
    probability of v or more correct guesses out of r is at most

    Pr[W >= v] + 2 m delta max_i Pr[v > W >= v - i] / i.
    """
    accuracy = 1 / (1 + np.exp(-epsilon))
    just_below = binom.pmf(n_correct - np.arange(1, n_correct + 1), n_guesses, accuracy)
    slopes = np.cumsum(just_below) / np.arange(1, n_correct + 1)
    excess = 2 * n_canaries * delta * slopes.max(initial=0.0)
    return float(min(binom.sf(n_correct - 1, n_guesses, accuracy) + excess, 1.0))


def bound_from_guesses(
    n_correct: int, *, n_guesses: int, n_canaries: int, delta: float, confidence: float
) -> float:
    """Compute the epsilon at which `guesses_p_value` reaches ``1 - confidence``."""

    def is_rejected(epsilon: float) -> bool:
        p_value = guesses_p_value(
            n_correct,
            n_guesses=n_guesses,
            n_canaries=n_canaries,
            epsilon=epsilon,
            delta=delta,
        )
        return p_value < 1 - confidence

    if not is_rejected(0.0):
        return 0.0
    lower, upper = 0.0, 50.0
    while upper - lower > 1e-6:
        middle = (lower + upper) / 2
        lower, upper = (middle, upper) if is_rejected(middle) else (lower, middle)
    return lower


def main():
    """Measure all claims."""
    parser = command(__doc__)
    parser.add_argument("--all-images", action="store_true", help="60,000 images")
    name = "mnist" if parser.parse_args().all_images else "mnist-small"
    WORK.mkdir(exist_ok=True)
    rows = noise_on_loss(load_images(name), name)
    save("petdl", "noise_on_loss", rows, shuffles=list(SHUFFLES))
