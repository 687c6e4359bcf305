"""FixMatch and contrastive features: networks that compare augmented copies."""

import math
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import TransformerMixin, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted
from skorch import NeuralNet
from skorch.callbacks import LRScheduler
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.lr_scheduler import OneCycleLR

from sklearn_pate._estimators._isolation import MAX_SEED, one_thread, seeded_globals
from sklearn_pate._estimators._progress import check_verbose
from sklearn_pate._inputs._containers import check_device
from sklearn_pate.accounting._value_checks import Constraint, check_parameters
from sklearn_pate.students.networks._images import (
    build_module,
    check_augmentation,
    default_augmentation,
    encoder_module,
)
from sklearn_pate.students.networks._network_classifier import (
    NetworkEstimator,
    SemiSupervisedNet,
    SemiSupervisedNetwork,
    predict_logits,
)


class ContrastiveEncoder(TransformerMixin, NetworkEstimator):
    """Encoder with similar features for changed copies of one row.

    The features of different rows are dissimilar. As ``representation=`` of
    :class:`~sklearn_pate.PATEClassifier`, the encoder lets teachers learn linear
    classifiers from few rows, instead of networks. A fit can then use more teachers, so
    that noise changes fewer answers. Training uses public rows without labels, and has
    no privacy cost. The features of a row do not depend on other rows, except for
    rounding errors. :class:`~sklearn_pate.learners.PrivateKNNClassifier` therefore
    transforms one row at a time.

    Parameters
    ----------
    module : torch.nn.Module or callable, default=None
        Network from inputs to features of shape (n_rows, n_dimensions), or a callable
        that builds the network from the shape of an input. None is a small
        convolutional network for images and a perceptron for rows, with 256 features.

    image_shape : tuple of int, default=None
        Shape (height, width) or (channels, height, width) of images in flat rows.

    augmentation : object, default=None
        Object with a method ``strong`` that changes a batch of inputs. None is
        ``ImageAugmentation`` with elastic distortion and contrast for images. For rows,
        None swaps values between rows and adds noise.

    temperature : float, default=0.2
        Temperature of the loss. A lower temperature gives more weight to similar rows.

    max_epochs : int, default=30
        Number of passes over the rows.

    batch_size : int, default=256
        Number of rows in a batch. The encoder learns to distinguish rows of a batch.

    lr : float, default=0.004
        Largest learning rate. The learning rate rises to this value, then falls to
        zero.

    device : str, default="cpu"
        Device of torch, "cpu" or "cuda".

    verbose : int, default=0
        1 prints a line for each epoch.

    random_state : int, RandomState instance or None, default=None
        Seed of weights, batches and changes of rows.

    Attributes
    ----------
    module_ : torch.nn.Module
        Trained network.

    history_ : list of dict
        Record of each epoch by skorch.

    n_features_in_ : int
        Number of values in a row.

    Notes
    -----
    Chen, Kornblith, Norouzi, Hinton (2020), "A simple framework for contrastive
    learning of visual representations". The loss of a row is -ln exp(s(z, z') / t) /
    sum exp(s(z, .) / t). Here, z is the output of a linear map of a changed copy's
    features, and z' is the output for another changed copy of the row. The function s
    is the cosine, and t is the temperature. The sum runs over all other copies in the
    batch.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn_pate.students import ContrastiveEncoder
    >>> X, _ = load_digits(return_X_y=True)
    >>> encoder = ContrastiveEncoder(image_shape=(8, 8), max_epochs=1, random_state=0)
    >>> encoder.fit_transform(X[:200]).shape
    (200, 256)
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "max_epochs": Constraint.count(),
        "batch_size": Constraint.count(),
        "verbose": Constraint(check_verbose),
        "lr": Constraint.number(0, 1),
        "temperature": Constraint.number(1e-3, 1e3),
        "device": Constraint(check_device),
    }

    def __init__(
        self,
        module: Any = None,
        *,
        image_shape: Any = None,
        augmentation: Any = None,
        temperature: float = 0.2,
        max_epochs: int = 30,
        batch_size: int = 256,
        lr: float = 4e-3,
        device: str = "cpu",
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.module = module
        self.image_shape = image_shape
        self.augmentation = augmentation
        self.temperature = temperature
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.lr = lr
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn features.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), (n_rows, height, width) or \
                (n_rows, channels, height, width)
            Public rows, or images.

        y : None
            Not used.

        Returns
        -------
        self : ContrastiveEncoder
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid.
        """
        check_parameters(self)
        X = self._check_rows(X, reset=True)
        if len(X) < 2:
            raise ValueError(
                f"X has n_samples={len(X)} row; pass at least two, as training "
                "compares rows."
            )
        self._learn_scale(X)
        inputs = self._as_inputs(X)
        batch_size = min(self.batch_size, len(inputs))
        n_steps = self.max_epochs * (len(inputs) // batch_size)
        seed = check_random_state(self.random_state).randint(MAX_SEED)
        with seeded_globals(seed), one_thread():
            if self.module is None:
                features = encoder_module(self.input_shape_)
            else:
                features = build_module(self.module, self.input_shape_)
            n_dimensions = predict_logits(features, inputs[:2]).shape[1]
            net = NeuralNet(
                TwoCopies(features, n_dimensions, self._make_augmentation()),
                ContrastiveLoss(self.temperature),
                optimizer=torch.optim.AdamW,
                optimizer__weight_decay=1e-3,
                lr=self.lr,
                max_epochs=self.max_epochs,
                batch_size=batch_size,
                iterator_train__shuffle=True,
                iterator_train__drop_last=True,  # a batch of one row has no other rows
                train_split=None,
                device=self.device,
                verbose=self.verbose,
                callbacks=[
                    LRScheduler(
                        OneCycleLR,
                        max_lr=self.lr,
                        total_steps=n_steps + 1,
                        pct_start=0.1,
                        cycle_momentum=False,
                        step_every="batch",
                    )
                ],
            )
            net.fit(inputs, torch.zeros(len(inputs)))
        self.module_ = net.module_.features.eval()
        self.history_ = net.history.to_list()
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Compute features.

        The last bits of a row's features depend on its position and the number of rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), (n_rows, height, width) or \
                (n_rows, channels, height, width)
            Rows, or images.

        Returns
        -------
        features : ndarray of float32 of shape (n_rows, n_dimensions)
            Features, scaled to length 1.
        """
        check_is_fitted(self, "module_")
        inputs = self._as_inputs(self._check_rows(X, reset=False))
        return functional.normalize(predict_logits(self.module_, inputs)).numpy()

    def _make_augmentation(self) -> Any:
        if self.augmentation is not None:
            return clone(self.augmentation, safe=False)
        return default_augmentation(
            self.input_shape_, shear=0.25, elastic=0.03, contrast=0.5
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


class TwoCopies(nn.Module):
    """A linear map of the features of two changed copies of each input."""

    def __init__(
        self, features: nn.Module, n_dimensions: int, augmentation: Any
    ) -> None:
        super().__init__()
        self.features = features
        self.compare = nn.Linear(n_dimensions, 64)
        self.augmentation = augmentation

    def forward(self, inputs: Tensor) -> Tensor:
        """Return outputs of shape (2 * n_rows, 64), first copies before second ones."""
        change = self.augmentation.strong
        return self.compare(self.features(torch.cat([change(inputs), change(inputs)])))


class ContrastiveLoss(nn.Module):
    """Cross entropy of identifying the other copy of each row by cosines."""

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(self, outputs: Tensor, _: Any) -> Tensor:
        """Compute the loss of a batch of first copies followed by second ones."""
        directions = functional.normalize(outputs)
        cosines = directions @ directions.T
        itself = torch.eye(len(cosines), dtype=torch.bool, device=cosines.device)
        other = torch.arange(len(cosines), device=cosines.device).roll(
            len(cosines) // 2
        )
        return functional.cross_entropy(
            (cosines / self.temperature).masked_fill(itself, -torch.inf), other
        )


class FixMatchNet(SemiSupervisedNet):
    """Training of :class:`FixMatchClassifier`."""

    def __init__(
        self,
        module: nn.Module,
        *,
        augmentation: Any,
        threshold: float,
        unlabeled_weight: float,
        align: bool,
        **parameters: Any,
    ) -> None:
        super().__init__(module, **parameters)
        self.augmentation = augmentation
        self.threshold = threshold
        self.unlabeled_weight = unlabeled_weight
        self.align = align

    def on_train_begin(
        self, net: Any, X: Any = None, y: None = None, **kwargs: Any
    ) -> None:
        """Estimate the frequencies of the classes from the labels."""
        super().on_train_begin(net, X=X, y=y, **kwargs)
        self.expected_ = shrunken_shares(X.targets[X.labeled]).to(self.device)
        self.guessed_ = self.expected_

    def batch_loss(self, labeled: Tensor, targets: Tensor, unlabeled: Tensor) -> Tensor:
        """Compute the loss on labels and on confident guesses, for changed inputs."""
        strong = self.augmentation.strong
        # One pass, so that batch normalisation treats both in the same way.
        logits = self.module_(torch.cat([strong(labeled), strong(unlabeled)]))
        of_labeled, of_unlabeled = logits[: len(labeled)], logits[len(labeled) :]
        confidence, guesses = self._guess(self.augmentation.weak(unlabeled)).max(dim=1)
        losses = functional.cross_entropy(of_unlabeled, guesses, reduction="none")
        confident = confidence >= self.threshold
        return (
            self.criterion_(of_labeled, targets)
            + self.unlabeled_weight * (losses * confident).mean()
        )

    def _guess(self, inputs: Tensor) -> Tensor:
        self.averaged_.eval()
        with torch.no_grad():
            probabilities = self.averaged_(inputs).softmax(dim=1)
        if not self.align:
            return probabilities
        self.guessed_ = torch.lerp(self.guessed_, probabilities.mean(dim=0), 0.01)
        aligned = probabilities * (self.expected_ / self.guessed_.clamp_min(1e-6))
        return aligned / aligned.sum(dim=1, keepdim=True).clamp_min(1e-12)


def shrunken_shares(targets: Tensor) -> Tensor:
    """Estimate the shares of classes from targets of shape (n_labeled, n_classes).

    They are between the shares of the labels and equal ones, and equal where the labels
    differ from equal shares no more than by chance: Hausser, Strimmer (2009), "Entropy
    inference and the James-Stein estimator", equations 4 and 5.
    """
    seen = targets.mean(dim=0)
    equal = torch.full_like(seen, 1 / len(seen))
    distance = (len(targets) - 1) * (equal - seen).square().sum()
    intensity = ((1 - seen.square().sum()) / distance.clamp_min(1e-12)).clamp(0, 1)
    return torch.lerp(seen, equal, intensity)


class FixMatchClassifier(SemiSupervisedNetwork):
    """Network trained on its own confident guesses for unlabelled rows.

    A network with weights averaged over training guesses the class of a weakly changed
    unlabelled row. If the guess is confident, the network is trained on a strongly
    changed copy of the row, with the guess as label. A few answers thus spread to all
    public rows. Training uses public rows and released answers only, so no parameter
    has a privacy cost.

    Parameters
    ----------
    module : torch.nn.Module or callable, default=None
        Network from a batch of inputs to logits, or a callable that builds the network
        from (input_shape, n_classes). A module is copied with its weights. None is a
        small convolutional network for images and a perceptron for rows.

    image_shape : tuple of int, default=None
        Shape (height, width) or (channels, height, width) of images in flat rows.

    augmentation : object, default=None
        Object with methods ``weak`` and ``strong`` that return changed copies of a
        batch. None is :class:`ImageAugmentation` for images. For rows, None swaps
        values between rows and adds noise.

    threshold : float, default=0.8
        Smallest probability at which a guess is used in training.

    unlabeled_weight : float, default=1.0
        Weight of the loss on guesses, relative to the loss on labels.

    align : bool, default=True
        Whether to adjust guesses to the class frequencies of the labels. If these
        frequencies differ from equal frequencies by chance only, equal frequencies are
        used. Use False if the classes of labelled rows are not representative.

    max_epochs : int, default=40
        Number of passes over the rows. With few rows, a pass is repeated until it has
        20 batches.

    batch_size : int, default=128
        Number of rows, labelled or not, in a batch.

    labeled_batch_size : int, default=32
        Number of additional labelled rows in a batch.

    lr : float, default=0.003
        Initial learning rate. The learning rate decays to zero along a cosine.

    patience : int, default=None
        Number of epochs after which training stops, if each of these epochs changed at
        most a share `tol` of the predictions on public rows. With None, training never
        stops early.

    tol : float, default=0.001
        Largest share of changed predictions for which `patience` counts an epoch.

    device : str, default="cpu"
        Device of torch, "cpu" or "cuda".

    verbose : int, default=0
        1 prints a line for each epoch.

    random_state : int, RandomState instance or None, default=None
        Seed of weights, batches and changes of rows. The seed may be public.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.

    module_ : torch.nn.Module
        Network with weights averaged over training. May be published.

    history_ : list of dict
        Record of each epoch by skorch.

    n_iter_ : int
        Number of epochs.

    input_shape_ : tuple of int
        Shape (n_features,) of a row, or (channels, height, width) of an image.

    n_features_in_ : int
        Number of values in a row.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    Sohn, Berthelot, Li, Zhang, Carlini, Cubuk, Kurakin, Zhang, Raffel (2020),
    "FixMatch: simplifying semi-supervised learning with consistency and confidence",
    equations 3 and 4. Guesses by averaged weights are from Tarvainen, Valpola (2017),
    "Mean teachers are better role models". The adjustment of guesses is from Berthelot,
    Carlini, Cubuk, Kurakin, Sohn, Zhang, Raffel (2020), "ReMixMatch".

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.utils import shuffle
    >>> from sklearn_pate.students import FixMatchClassifier
    >>> X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
    >>> y_public = y[:500].copy()
    >>> y_public[100:] = -1  # 100 answers
    >>> clf = FixMatchClassifier(image_shape=(8, 8), max_epochs=3, random_state=0)
    >>> bool(clf.fit(X[:500], y_public).score(X[1500:], y[1500:]) > 0.8)
    True
    """

    __module__ = "sklearn_pate.students"  # its name in files

    _constraints: ClassVar[dict[str, Constraint]] = {
        "threshold": Constraint.number(0, 1),
        "unlabeled_weight": Constraint.number(0, math.inf),
        "augmentation": Constraint(check_augmentation),
    }

    def __init__(
        self,
        module: Any = None,
        *,
        image_shape: Any = None,
        augmentation: Any = None,
        threshold: float = 0.8,
        unlabeled_weight: float = 1.0,
        align: bool = True,
        max_epochs: int = 40,
        batch_size: int = 128,
        labeled_batch_size: int = 32,
        lr: float = 3e-3,
        patience: int | None = None,
        tol: float = 1e-3,
        device: str = "cpu",
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.module = module
        self.image_shape = image_shape
        self.augmentation = augmentation
        self.threshold = threshold
        self.unlabeled_weight = unlabeled_weight
        self.align = align
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.labeled_batch_size = labeled_batch_size
        self.lr = lr
        self.patience = patience
        self.tol = tol
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def _make_net(self, module: nn.Module, **shared: Any) -> FixMatchNet:
        augmentation = self.augmentation
        if augmentation is None:
            augmentation = default_augmentation(self.input_shape_)
        return FixMatchNet(
            module,
            augmentation=augmentation,
            threshold=self.threshold,
            unlabeled_weight=self.unlabeled_weight,
            align=self.align,
            **shared,
        )
