"""Student of PATE-G: a generative adversarial network."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Self

import torch
from skorch.utils import to_device
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrize

from sklearn_pate._estimators._hidden_layer import hidden_layer, hidden_passes
from sklearn_pate.accounting._value_checks import Constraint
from sklearn_pate.students.networks._images import (
    Discriminator,
    ImageAugmentation,
    build_module,
    check_augmentation,
    check_builder,
    default_generator,
)
from sklearn_pate.students.networks._network_classifier import (
    SemiSupervisedNet,
    SemiSupervisedNetwork,
)

# Weights of both networks oscillate; a long running mean smooths that.
AVERAGING = 0.999
# Gradients change direction; a large first beta (memory) harms training.
BETAS = (0.5, 0.999)
# Number of rows from which the scale of a layer's outputs is estimated.
N_FIRST = 500


class GANNet(SemiSupervisedNet):
    """Training of :class:`GANClassifier`; the module is its discriminator."""

    def __init__(
        self,
        module: nn.Module,
        *,
        make_generator: Callable[[], nn.Module],
        n_latent: int,
        generator_lr: float,
        augmentation: Any,
        adversarial_weight: float,
        guess_weight: float,
        threshold: float,
        **parameters: Any,
    ) -> None:
        super().__init__(module, averaging=AVERAGING, **parameters)
        self.make_generator = make_generator
        self.n_latent = n_latent
        self.generator_lr = generator_lr
        self.augmentation = augmentation
        self.adversarial_weight = adversarial_weight
        self.guess_weight = guess_weight
        self.threshold = threshold

    def initialize_module(self) -> Self:
        """Set up both networks, `module_` and `generator_`."""
        super().initialize_module()
        self.generator_ = self.make_generator()
        return self

    def initialize_optimizer(self) -> Self:
        """Create one optimiser for each network."""
        self.optimizer_ = torch.optim.Adam(
            _trainable(self.module_), lr=self.lr, betas=BETAS
        )
        self.generator_optimizer_ = torch.optim.Adam(
            _trainable(self.generator_), lr=self.generator_lr, betas=BETAS
        )
        return self

    def on_train_begin(
        self, net: Any, X: Any = None, y: None = None, **kwargs: Any
    ) -> None:
        """Initialise the default discriminator from the first rows."""
        super().on_train_begin(net, X=X, y=y, **kwargs)
        if isinstance(self.module_, Discriminator):
            self.module_.standardize_outputs(X.inputs[:N_FIRST].to(self.device))

    def on_train_end(
        self, net: Any, X: Any = None, y: None = None, **kwargs: Any
    ) -> None:
        """Replace weight normalisation by plain weights, which can be pickled."""
        super().on_train_end(net, X=X, y=y, **kwargs)
        for layer in list(self.averaged_.modules()):
            if parametrize.is_parametrized(layer):
                for name in list(layer.parametrizations):  # type: ignore[arg-type]
                    parametrize.remove_parametrizations(layer, name)
                # Hooks left by weight_norm cannot be pickled either.
                layer._load_state_dict_pre_hooks.clear()

    def train_step(
        self, batch: tuple[Tensor, ...], **fit_params: Any
    ) -> dict[str, Tensor]:
        """Follow the gradients of both networks once, on a batch of `PairedBatches`."""
        self._set_training(True)
        labeled, targets, unlabeled = to_device(batch, self.device)
        n_labeled = len(labeled)
        real = self._change(torch.cat([labeled, unlabeled]), "strong")
        # Batch normalisation needs two rows.
        latent = torch.rand(max(len(unlabeled), 2), self.n_latent, device=self.device)
        # Normalised weights are computed once for all passes.
        with parametrize.cached(), hidden_passes(self.module_) as features:
            logits = self.module_(real)
            of_generated = self.module_(self.generator_(latent))
            of_labeled, of_unlabeled = logits[:n_labeled], logits[n_labeled:]
            loss = self.criterion_(of_labeled, targets)
            loss = loss + self.adversarial_weight * adversarial_loss(
                of_unlabeled, of_generated
            )
            if self.guess_weight > 0:
                loss = loss + self.guess_weight * self._guess_loss(
                    of_unlabeled, unlabeled
                )
            of_real, of_fake = features[:2]
            matching = feature_matching_loss(of_real[n_labeled:].detach(), of_fake)
            _set_gradients(self.optimizer_, loss, retain_graph=True)
            _set_gradients(self.generator_optimizer_, matching)
        self.optimizer_.step()
        self.generator_optimizer_.step()
        return {"loss": loss.detach()}

    def _guess_loss(self, logits: Tensor, unlabeled: Tensor) -> Tensor:
        """Compute the cross entropy with confident guesses on weakly changed inputs."""
        self.module_.eval()
        with torch.no_grad():
            guesses = self.module_(self._change(unlabeled, "weak")).softmax(dim=1)
        self.module_.train()
        confidence, classes = guesses.max(dim=1)
        losses = functional.cross_entropy(logits, classes, reduction="none")
        return (losses * (confidence >= self.threshold)).mean()

    def _change(self, inputs: Tensor, how: str) -> Tensor:
        if self.augmentation is None:
            return inputs
        return getattr(self.augmentation, how)(inputs)


def adversarial_loss(of_unlabeled: Tensor, of_generated: Tensor) -> Tensor:
    """Compute -(E ln D(x) + E ln(1 - D(G(z)))) / 2, where D = Z / (Z + 1).

    Salimans et al. (2016), section 5, with the logit of the class "generated" fixed at
    0. Z is the sum of the exponentials of the logits l, of shape (n_rows, n_classes),
    so that -ln D(x) = softplus(-ln Z) and -ln(1 - D(x)) = softplus(ln Z).
    """
    log_z_real = of_unlabeled.logsumexp(dim=1)
    log_z_generated = of_generated.logsumexp(dim=1)
    real = functional.softplus(-log_z_real).mean()
    return (real + functional.softplus(log_z_generated).mean()) / 2


def feature_matching_loss(of_real: Tensor, of_generated: Tensor) -> Tensor:
    """Compute the mean squared difference of mean features.

    Salimans et al. (2016), section 3.1, divided by the number of dimensions. Features
    have shape (n_rows, n_dimensions).
    """
    return (of_real.mean(dim=0) - of_generated.mean(dim=0)).square().mean()


def _trainable(module: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def _set_gradients(optimizer: torch.optim.Optimizer, loss: Tensor, **how: Any) -> None:
    """Set the gradients of the parameters of one optimiser only."""
    optimizer.zero_grad()
    (group,) = optimizer.param_groups
    loss.backward(inputs=group["params"], **how)


class GANClassifier(SemiSupervisedNetwork):
    """Network trained to classify rows and to detect generated rows.

    This student is the student of PATE-G. A generator makes rows. A discriminator
    distinguishes generated rows from public rows, and classifies the answered rows. The
    detection of generated rows teaches the discriminator the distribution of rows, so
    few answers are enough. Training uses public rows and released answers only, so no
    parameter has a privacy cost.

    Parameters
    ----------
    module : torch.nn.Module or callable, default=None
        Discriminator, from a batch of inputs to one logit per class, or a callable that
        builds the network from (input_shape, n_classes). The discriminator must have a
        ``torch.nn.Linear``, and is copied with its weights. None is a small
        convolutional network for images, and the perceptron of the papers for rows.

    generator : torch.nn.Module or callable, default=None
        Network from latent vectors of shape (n_rows, n_latent), uniform between 0 and
        1, to a batch of inputs, or a callable that builds the network from (n_latent,
        input_shape). Inputs are images with values between 0 and 1, or standardised
        rows. None is a small convolutional network for images and a perceptron for
        rows.

    image_shape : tuple of int, default=None
        Shape (height, width) or (channels, height, width) of images in flat rows.

    n_latent : int, default=100
        Length of a latent vector.

    noise : float, default=0.5
        Standard deviation of the noise after each hidden layer of the default
        discriminator for rows, in training only. The noise on inputs is 0.6 times as
        large. For images or with a `module`, `noise` is not used.

    augmentation : object or None, default="auto"
        Object with methods ``weak`` and ``strong`` that return changed copies of a
        batch. The discriminator learns from strongly changed rows. "auto" is
        :class:`ImageAugmentation` for images and None for rows. With None, rows are not
        changed, as in the papers.

    adversarial_weight : float, default=1.0
        Weight of the loss on real and generated rows, relative to the loss on labels.

    guess_weight : float, default=1.0
        Weight of the loss on confident guesses for unlabelled rows, relative to the
        loss on labels. Use 0 for the losses of the papers.

    threshold : float, default=0.8
        Smallest probability at which a guess is used in training.

    max_epochs : int, default=40
        Number of passes over the rows. With few rows, a pass is repeated until it has
        20 batches.

    batch_size : int, default=100
        Number of rows, labelled or not, in a batch. The number of generated rows is
        equal.

    labeled_batch_size : int, default=32
        Number of additional labelled rows in a batch.

    lr : float, default=0.003
        Initial learning rate of the discriminator. The rate decays to zero along a
        cosine.

    generator_lr : float, default=0.002
        Initial learning rate of the generator. The rate decays to zero along a cosine.

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
        Seed of weights, batches, noise and changes of rows. The seed may be public.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.

    module_ : torch.nn.Module
        Discriminator with weights averaged over training. May be published.

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
    Salimans, Goodfellow, Zaremba, Cheung, Radford, Chen (2016), "Improved techniques
    for training GANs", sections 3.1 and 5; used as student by Papernot, Abadi,
    Erlingsson, Goodfellow, Talwar (2017), "Semi-supervised knowledge transfer for deep
    learning from private training data". With logits l and Z(x) = sum_k exp l_k(x), the
    discriminator classifies x as real with probability D(x) = Z(x) / (Z(x) + 1), as an
    additional class "generated" has the logit 0. The discriminator minimises

        H(y, softmax l(x)) over labelled rows
        - (E ln D(x) + E ln(1 - D(G(z)))) / 2 over any rows x and latent z,

    and the generator G minimises the squared distance between E f(x) and E f(G(z)),
    where f are the inputs of the last ``torch.nn.Linear`` of the discriminator. The
    parameter `guess_weight` adds the cross entropy with confident guesses on weakly
    changed rows, equation 4 of Sohn et al. (2020), "FixMatch: simplifying
    semi-supervised learning with consistency and confidence".

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn_pate.students import GANClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> y_public = y[:500].copy()
    >>> y_public[100:] = -1  # 100 answers
    >>> clf = GANClassifier(max_epochs=3, random_state=0)
    >>> bool(clf.fit(X[:500], y_public).score(X[1500:], y[1500:]) > 0.8)
    True
    """

    __module__ = "sklearn_pate.students"  # its name in files

    _constraints: ClassVar[dict[str, Constraint]] = {
        "n_latent": Constraint.count(),
        "generator_lr": Constraint.number(0, 1),
        "threshold": Constraint.number(0, 1),
        "noise": Constraint.number(0, math.inf),
        "adversarial_weight": Constraint.number(0, math.inf),
        "guess_weight": Constraint.number(0, math.inf),
        "generator": Constraint(check_builder),
        "augmentation": Constraint(partial(check_augmentation, also=(None, "auto"))),
    }

    def __init__(
        self,
        module: Any = None,
        generator: Any = None,
        *,
        image_shape: Any = None,
        n_latent: int = 100,
        noise: float = 0.5,
        augmentation: Any = "auto",
        adversarial_weight: float = 1.0,
        guess_weight: float = 1.0,
        threshold: float = 0.8,
        max_epochs: int = 40,
        batch_size: int = 100,
        labeled_batch_size: int = 32,
        lr: float = 3e-3,
        generator_lr: float = 2e-3,
        patience: int | None = None,
        tol: float = 1e-3,
        device: str = "cpu",
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.module = module
        self.generator = generator
        self.image_shape = image_shape
        self.n_latent = n_latent
        self.noise = noise
        self.augmentation = augmentation
        self.adversarial_weight = adversarial_weight
        self.guess_weight = guess_weight
        self.threshold = threshold
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.labeled_batch_size = labeled_batch_size
        self.lr = lr
        self.generator_lr = generator_lr
        self.patience = patience
        self.tol = tol
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def _make_module(self) -> nn.Module:
        if self.module is None and len(self.input_shape_) == 1:
            return Discriminator(self.input_shape_, len(self.classes_), self.noise)
        module = super()._make_module()
        hidden_layer(module)  # raises if the generator has nothing to match
        return module

    def _make_generator(self) -> nn.Module:
        if self.generator is None:
            return default_generator(self.n_latent, self.input_shape_)
        generator = build_module(self.generator, self.n_latent, self.input_shape_)
        with torch.no_grad():
            made = tuple(generator(torch.rand(2, self.n_latent)).shape[1:])
        if made != self.input_shape_:
            raise ValueError(
                f"generator={self.generator!r} makes outputs of shape {made}, but "
                f"inputs have shape {self.input_shape_}; change its last layer."
            )
        return generator

    def _make_net(self, module: nn.Module, **shared: Any) -> GANNet:
        augmentation = self.augmentation
        if isinstance(augmentation, str):  # "auto"
            of_images = len(self.input_shape_) == 3
            augmentation = ImageAugmentation() if of_images else None
        return GANNet(
            module,
            make_generator=self._make_generator,
            n_latent=self.n_latent,
            generator_lr=self.generator_lr,
            augmentation=augmentation,
            adversarial_weight=self.adversarial_weight,
            guess_weight=self.guess_weight,
            threshold=self.threshold,
            **shared,
        )
