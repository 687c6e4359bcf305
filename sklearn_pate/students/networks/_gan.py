"""The student of PATE-G: a discriminator that also tells the classes apart."""

import math
from copy import deepcopy
from typing import Any

import torch
from torch import nn

from sklearn_pate._estimators._hidden_layer import hidden_layer
from sklearn_pate._inputs._checks import check_count, check_number
from sklearn_pate.students.networks._augmentation import ImageAugmentation
from sklearn_pate.students.networks._gan_training import GANNet
from sklearn_pate.students.networks._modules import (
    default_discriminator,
    default_generator,
)
from sklearn_pate.students.networks._network_classifier import SemiSupervisedNetwork

__all__ = ["GANClassifier"]


class GANClassifier(SemiSupervisedNetwork):
    """Network that learns classes beside telling real rows from generated ones.

    A generator makes up rows; a discriminator tells them from the public ones, and the
    answered rows' classes from each other. To do the first it has to learn what the
    rows are like, which is why a few answers are enough: the student of PATE-G. It sees
    public rows and answers only, and costs no privacy, whatever its parameters.

    Parameters
    ----------
    module : torch.nn.Module or callable, default=None
        The discriminator, from a batch of inputs to one logit a class, or a callable
        that makes such a module from (input_shape, n_classes). A module is copied with
        its weights. The inputs of its last ``torch.nn.Linear`` are the features that
        the generator matches. None is a small convolutional network with batch
        normalisation for images, and the papers' kind of perceptron, with weight
        normalisation and noise, for rows.

    generator : torch.nn.Module or callable, default=None
        From latent vectors of shape (n_rows, n_latent), uniform between 0 and 1, to a
        batch of inputs, or a callable that makes such a module from (n_latent,
        input_shape). Inputs are images scaled to lie between 0 and 1, or rows of
        standardised features. None is a small convolutional network for images, a
        perceptron for rows.

    image_shape : tuple of int, default=None
        (height, width) or (channels, height, width) of images that come as flat rows.

    n_latent : int, default=100
        Length of a latent vector.

    noise : float, default=0.5
        Standard deviation of the noise behind each hidden layer of the default
        discriminator of rows during training; 0.6 of it is added to inputs. Not used
        for images, nor with a `module`.

    augmentation : object or None, default="auto"
        Its methods ``weak`` and ``strong`` return changed copies of a batch. The
        discriminator learns from strongly changed rows. "auto" is
        :class:`ImageAugmentation` for images and nothing for rows; None leaves inputs
        as they are, as in the papers.

    adversarial_weight : float, default=1.0
        Weight, beside labels, of telling real rows from generated ones.

    guess_weight : float, default=1.0
        Weight, beside labels, of the classes that the network itself guesses for
        unlabelled rows. 0 leaves the losses of the papers alone.

    threshold : float, default=0.8
        How probable a guess must be to be learnt.

    max_epochs : int, default=40
        Number of passes over the rows; on few rows, a pass is repeated until it has 20
        batches.

    batch_size : int, default=100
        Number of rows, labelled or not, in a batch, and of generated ones.

    labeled_batch_size : int, default=32
        Number of labelled rows beside them.

    lr : float, default=0.003
        Learning rate of the discriminator at the start; it decays to zero along a
        cosine.

    generator_lr : float, default=0.002
        The same of the generator.

    patience : int, default=None
        Stop after so many epochs in which at most a share `tol` of the predictions on
        the rows changed. Nothing but those public rows is looked at. None never stops
        early.

    tol : float, default=0.001
        See `patience`.

    device : str, default="cpu"
        "cpu" or "cuda".

    verbose : int, default=0
        Whether to print a line an epoch.

    random_state : int, RandomState instance or None, default=None
        Seeds weights, batches, noise and changes, and may be known to anyone.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.

    module_ : torch.nn.Module
        The discriminator, with weights averaged over training. May be published.

    history_ : list of dict
        What skorch recorded of each epoch.

    n_iter_ : int
        Number of epochs.

    input_shape_ : tuple of int
        (n_features,), or (channels, height, width).

    n_features_in_ : int
        Number of values in a row.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    Salimans, Goodfellow, Zaremba, Cheung, Radford, Chen (2016), "Improved techniques
    for training GANs", sections 3.1 and 5, the student of Papernot, Abadi, Erlingsson,
    Goodfellow, Talwar (2017), "Semi-supervised knowledge transfer for deep learning
    from private training data". With logits l and Z(x) = sum_k exp l_k(x), the
    discriminator takes x for real with probability D(x) = Z(x) / (Z(x) + 1): a further
    class "generated" has the logit 0. It minimises

        H(y, softmax l(x)) over labelled rows
        - (E ln D(x) + E ln(1 - D(G(z)))) / 2 over any rows x and latent z,

    and the generator G the squared distance of E f(x) and E f(G(z)), where f are
    features of the discriminator. `guess_weight` adds the cross entropy with confident
    guesses on weakly changed rows, equation 4 of Sohn et al. (2020), "FixMatch:
    simplifying semi-supervised learning with consistency and confidence".

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

    def _check_parameters(self):
        super()._check_parameters()
        check_count("n_latent", self.n_latent)
        check_number("generator_lr", self.generator_lr, 0, 1)
        check_number("threshold", self.threshold, 0, 1)
        for name in ("noise", "adversarial_weight", "guess_weight"):
            check_number(name, getattr(self, name), 0, math.inf)
        if self.generator is not None and not callable(self.generator):
            raise ValueError(
                f"generator={self.generator!r} must be a torch.nn.Module, or a "
                "callable that makes one from (n_latent, input_shape)."
            )
        if self.augmentation is None or self._augments_automatically():
            return
        if not all(hasattr(self.augmentation, name) for name in ("weak", "strong")):
            raise ValueError(
                f"augmentation={self.augmentation!r} must be 'auto', None, or have "
                "methods weak and strong, as ImageAugmentation() has."
            )
        if hasattr(self.augmentation, "check_parameters"):
            self.augmentation.check_parameters()

    def _augments_automatically(self):
        return isinstance(self.augmentation, str) and self.augmentation == "auto"

    def _make_module(self):
        if self.module is None:
            return default_discriminator(
                self.input_shape_, len(self.classes_), self.noise
            )
        module = super()._make_module()
        hidden_layer(module)  # whose inputs the generator matches, or an error
        return module

    def _make_generator(self):
        if self.generator is None:
            return default_generator(self.n_latent, self.input_shape_)
        if isinstance(self.generator, nn.Module):
            generator = deepcopy(self.generator)
        else:
            generator = self.generator(self.n_latent, self.input_shape_)
        with torch.no_grad():
            made = tuple(generator(torch.rand(2, self.n_latent)).shape[1:])
        if made != self.input_shape_:
            raise ValueError(
                f"generator={self.generator!r} makes outputs of shape {made}, and "
                f"inputs have shape {self.input_shape_}; change its last layer."
            )
        return generator

    def _make_net(self, module, **shared):
        augmentation = self.augmentation
        if self._augments_automatically():
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
