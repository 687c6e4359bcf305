"""PETDL as its paper wrote it: noise on a loss, which hides nothing. For research."""

import secrets

import numpy as np
import torch

from sklearn_pate._estimators._hidden_layer import hidden_of_batch
from sklearn_pate.accounting._assumptions import NO_PRIVACY
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.exceptions import PrivacyLeakWarning, warn_user
from sklearn_pate.mechanisms import NoisySum
from sklearn_pate.students.networks._modules import ConvSmall
from sklearn_pate.students.networks._network_classifier import SemiSupervisedNetwork
from sklearn_pate.students.networks._network_training import SemiSupervisedNet
from sklearn_pate.students.networks._relational_hint import alike, disagreement

__all__ = ["NoisyLossNetwork", "follow_noisy_loss"]


def follow_noisy_loss(petdl, said, public, seed):
    """Train the student of the paper, and state that nothing is private.

    Parameters
    ----------
    petdl : PETDLClassifier
        Its parameters are read.

    said : SaidAloud
        Outputs of all teachers.

    public : PublicInputs
        Public rows and classes.

    seed : int
        Seed of the student.

    Returns
    -------
    student : NoisyLossNetwork
        Fitted on class indices.

    spent : PrivacySpent
        With an infinite epsilon, and the reason among its assumptions.

    Warns
    -----
    PrivacyLeakWarning
        Always.
    """
    warn_user(
        f"{NO_PRIVACY}: it gives no privacy, and epsilon is infinite. Use mode='sound' "
        "for anything but research.",
        PrivacyLeakWarning,
    )
    student = NoisyLossNetwork(
        ConvSmall(petdl.compression),
        n_classes=len(public.classes),
        image_shape=petdl.image_shape,
        hint_epochs=petdl.hint_epochs,
        distillation_epochs=petdl.distillation_epochs,
        batch_size=petdl.batch_size,
        temperature=petdl.temperature,
        clipping_bound=petdl.clipping_bound,
        noise_scale=petdl.noise_scale,
        weighted=petdl.weighted,
        noise_seed=petdl.noise_seed,
        random_state=seed,
    ).fit(public.X_public, _stacked(said.by_teacher))
    spent = PrivacySpent(
        epsilon=np.inf,
        delta=float(petdl.delta),
        unit=public.unit,
        relation=NoisySum().relation(public.unit),
        release="model",
        mechanism=f"noise of scale {petdl.noise_scale} on the loss",
        n_teachers=len(said.by_teacher),
        n_queries=public.n_public,
        assumptions=(*public.assumptions, NO_PRIVACY),
        curve=RdpCurve(DEFAULT_ORDERS, np.full(len(DEFAULT_ORDERS), np.inf)),
    )
    return student, spent


def _stacked(by_teacher):
    """Return outputs of shape (n_public, n_teachers, n_classes + n_hidden)."""
    return np.stack(
        [
            probabilities if hidden is None else np.hstack([probabilities, hidden])
            for probabilities, hidden in by_teacher
        ],
        axis=1,
    ).astype(np.float32)


class NoisyLossNet(SemiSupervisedNet):
    """Training by Algorithm 1 of the paper.

    Parameters
    ----------
    module : torch.nn.Module
        From a batch of inputs to logits.

    settings : NoisyLossNetwork
        Its parameters are read.

    n_teachers : int
        Number of teachers.

    **parameters : dict
        As for :class:`SemiSupervisedNet`.
    """

    def __init__(self, module, *, settings, n_teachers, **parameters):
        super().__init__(module, **parameters)
        self.settings = settings
        self.n_teachers = n_teachers

    def on_train_begin(self, net, X=None, y=None, **kwargs):
        """Open the source of the noise, which is no part of the student's randomness.

        Parameters
        ----------
        net : NoisyLossNet
            This one.

        X : PublicRows
            All rows.

        y : None
            Not used.

        **kwargs : dict
            For skorch.
        """
        super().on_train_begin(net, X=X, y=y, **kwargs)
        self.n_hint_steps_ = self.settings.hint_epochs * len(self.get_iterator(X))
        seed = self.settings.noise_seed
        self.noise_ = torch.Generator()
        self.noise_.manual_seed(secrets.randbits(63) if seed is None else seed)

    def batch_loss(self, labeled, targets, unlabeled):
        """Compute the mean of the teachers' clipped losses, with noise.

        Parameters
        ----------
        labeled : Tensor of shape (n_rows, *input_shape)
            Inputs.

        targets : Tensor of shape (n_rows, n_teachers * n_outputs)
            Probabilities and hidden representation of each teacher.

        unlabeled : Tensor of shape (n_rows, *input_shape)
            Not used.

        Returns
        -------
        loss : Tensor
            Equation 4 of the paper.
        """
        settings = self.settings
        by_teacher = targets.reshape(len(targets), self.n_teachers, -1).unbind(dim=1)
        if self.n_steps_ < self.n_hint_steps_:
            losses = self._hint_losses(labeled, by_teacher)
        else:
            losses = self._distillation_losses(labeled, by_teacher)
        bound = settings.clipping_bound
        clipped = losses / (losses / bound).clamp_min(1)  # equation 3
        noise = torch.randn((), generator=self.noise_) * settings.noise_scale * bound
        return clipped.mean() + noise

    def _hint_losses(self, inputs, by_teacher):
        hidden = hidden_of_batch(self.module_, inputs)
        counted = ~torch.eye(len(inputs), dtype=torch.bool)
        losses = []
        for outputs in by_teacher:
            wanted = alike(outputs[:, self.settings.n_classes :])
            losses.append(disagreement(hidden, wanted, counted))
        return torch.stack(losses)

    def _distillation_losses(self, inputs, by_teacher):
        settings = self.settings
        log_student = (self.module_(inputs) / settings.temperature).log_softmax(dim=1)
        losses = []
        for outputs in by_teacher:
            probabilities = outputs[:, : settings.n_classes]
            softened = probabilities ** (1 / settings.temperature)
            softened = softened / softened.sum(dim=1, keepdim=True).clamp_min(1e-12)
            of_rows = -(softened * log_student).sum(dim=1)
            if settings.weighted:
                of_rows = of_rows * probabilities.max(dim=1).values
            losses.append(of_rows.mean())
        return torch.stack(losses)


class NoisyLossNetwork(SemiSupervisedNetwork):
    """A student network that follows the noisy loss of the paper. Not private.

    Parameters
    ----------
    module : callable
        Makes a network from (input_shape, n_classes).

    n_classes : int
        Number of classes.

    image_shape : tuple of int, default=None
        (height, width) or (channels, height, width) of images that come as flat rows.

    hint_epochs, distillation_epochs : int
        Number of passes over the rows for either loss.

    batch_size : int, default=128
        Number of rows in a batch.

    temperature : float, default=1.0
        Of the softened probabilities.

    clipping_bound : float, default=1.0
        Of each teacher's loss.

    noise_scale : float, default=1.0
        Standard deviation of the noise on the mean loss, in clipping bounds.

    weighted : bool, default=False
        Whether each row counts by the teacher's confidence.

    noise_seed : int, default=None
        Seed of the noise; of no consequence to the student.

    random_state : int, RandomState instance or None, default=None
        Seeds weights and batches.

    Notes
    -----
    Sun et al. (2019), equations 1 to 4. Its hint loss compares hidden layers neuron by
    neuron, which takes equal layers in the same order; here it compares which rows are
    alike in them.
    """

    lr = 3e-3
    patience = None
    tol = 0.0
    device = "cpu"
    verbose = 0

    def __init__(
        self,
        module,
        *,
        n_classes=2,
        image_shape=None,
        hint_epochs=0,
        distillation_epochs=20,
        batch_size=128,
        temperature=1.0,
        clipping_bound=1.0,
        noise_scale=1.0,
        weighted=False,
        noise_seed=None,
        random_state=None,
    ):
        self.module = module
        self.n_classes = n_classes
        self.image_shape = image_shape
        self.hint_epochs = hint_epochs
        self.distillation_epochs = distillation_epochs
        self.batch_size = batch_size
        self.temperature = temperature
        self.clipping_bound = clipping_bound
        self.noise_scale = noise_scale
        self.weighted = weighted
        self.noise_seed = noise_seed
        self.random_state = random_state

    @property
    def max_epochs(self):
        """Number of passes over the rows, for both losses.

        Returns
        -------
        max_epochs : int
            Their sum.
        """
        return self.hint_epochs + self.distillation_epochs

    @property
    def labeled_batch_size(self):
        """Number of rows in a batch: every row has outputs of the teachers.

        Returns
        -------
        batch_size : int
            The parameter.
        """
        return self.batch_size

    def fit(self, X, outputs):
        """Train on what teachers said of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Public rows.

        outputs : ndarray of float32 of shape (n_rows, n_teachers, n_outputs)
            Class probabilities of each teacher, and its hidden representation.

        Returns
        -------
        self : NoisyLossNetwork
            Fitted.
        """
        self._check_parameters()
        self._n_teachers = outputs.shape[1]
        X = self._check_rows(X, reset=True)
        classes = np.arange(self.n_classes)
        return self._train(X, classes, outputs.reshape(len(outputs), -1))

    def _make_net(self, module, **shared):
        return NoisyLossNet(
            module, settings=self, n_teachers=self._n_teachers, **shared
        )
