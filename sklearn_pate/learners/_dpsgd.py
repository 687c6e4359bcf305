"""DP-SGD for skorch networks."""

import math
from copy import deepcopy
from typing import Any, ClassVar, Literal, NoReturn, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_pate._aggregation._outlook import why_gradients_useless
from sklearn_pate._estimators._isolation import MAX_SEED, one_thread
from sklearn_pate._estimators._predictions import ProbabilityScoresMixin
from sklearn_pate._estimators._progress import check_verbose, progress_of
from sklearn_pate._inputs._features import check_numbers
from sklearn_pate.accounting._calibrate import check_epsilon_is_small
from sklearn_pate.accounting._ledger import PrivacyLedger
from sklearn_pate.accounting._statement import FLOATING_POINT, N_ROWS, ROW_BY_ROW
from sklearn_pate.accounting._value_checks import Constraint, check_count
from sklearn_pate.accounting.composition import calibrate_steps
from sklearn_pate.exceptions import PrivacyUtilityWarning, warn_user
from sklearn_pate.learners._noisy_learner import NoisyTraining, Rows, TrainingPlan
from sklearn_pate.mechanisms._noise import NoiseSource
from sklearn_pate.mechanisms._noisy_training import DPSGDSteps

# Methods of a skorch network that its predictions depend on.
_PREDICTS_BY = (
    "evaluation_step",
    "forward_iter",
    "get_dataset",
    "get_iterator",
    "infer",
    "predict_proba",
)
# Squares of shorter gradients are rounded to zero.
_SMALLEST_BOUND = 1e-30


def read_rows(estimator: Any, X: Any, *, reset: bool) -> NDArray[np.float32]:
    """Read rows as float32, with 0 in place of values that are not finite."""
    X = check_numbers(estimator, X, reset=reset, dtype=np.float32, allow_nd=True)
    return _as_finite(X)


def _as_finite(X: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return float32, with 0 in place of values that are not finite."""
    with np.errstate(over="ignore"):
        X = X.astype(np.float32, copy=False)
    is_finite = np.isfinite(X)
    if not np.all(is_finite):
        X = np.where(is_finite, X, np.float32(0))
    return np.require(X, requirements="W")  # torch warns of read-only arrays


class TrainedNetwork(ProbabilityScoresMixin, ClassifierMixin, BaseEstimator):
    """Trained network that predicts class indices.

    `module` is the class of the module, or a module, which cannot be saved without
    pickle. `criterion` and `predict_nonlinearity` turn outputs into probabilities, as
    in skorch.
    """

    __module__ = "sklearn_pate.stored_types"  # its name in files

    #: Missing and infinite values are replaced, not refused.
    _reads_any_value = True

    def __init__(
        self,
        module: Any,
        module_params: dict[str, Any],
        criterion: Any,
        predict_nonlinearity: Any,
        batch_size: int,
    ) -> None:
        self.module = module
        self.module_params = module_params
        self.criterion = criterion
        self.predict_nonlinearity = predict_nonlinearity
        self.batch_size = batch_size

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Copy the network out of a fitted DPSGDClassifier."""
        from skorch import NeuralNetClassifier

        net = estimator.network_
        for name in _PREDICTS_BY:
            if getattr(type(net), name) is not getattr(NeuralNetClassifier, name):
                raise ValueError(
                    f"The network is a {type(net).__name__} that overrides {name}. "
                    "Without this method, which is not published, predictions would "
                    "differ; move its code into the module."
                )
        network = cls(
            net.module,
            deepcopy(net.get_params_for("module")),
            _deciding_loss(net.criterion_),
            net.predict_nonlinearity,
            net.get_params_for("iterator_valid").get("batch_size", net.batch_size),
        )
        network.module_ = deepcopy(net.module_).to("cpu").eval()
        network.classes_ = np.arange(len(estimator.classes_))
        return network

    def fit(self, X: Any, y: Any = None) -> NoReturn:
        """Raise TypeError; scikit-learn requires a `fit` of estimators."""
        raise TypeError("A TrainedNetwork cannot be fitted; fit a DPSGDClassifier.")

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Predict class probabilities."""
        from skorch import NeuralNetClassifier

        net = NeuralNetClassifier(
            self.module_,
            criterion=self.criterion,
            predict_nonlinearity=self.predict_nonlinearity,
            batch_size=self.batch_size,
            train_split=None,
        )
        with one_thread():
            return net.initialize().predict_proba(read_rows(self, X, reset=False))

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Predict class indices."""
        return self.predict_proba(X).argmax(axis=1)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _make_module(self) -> Any:
        """Build the module, with untrained weights."""
        return self.module(**self.module_params)


def _deciding_loss(criterion: Any) -> type:
    """Return the loss by which skorch turns outputs into probabilities."""
    import torch

    # All others leave outputs unchanged, as NLLLoss does.
    losses = (torch.nn.CrossEntropyLoss, torch.nn.BCEWithLogitsLoss, torch.nn.BCELoss)
    return next((one for one in losses if isinstance(criterion, one)), torch.nn.NLLLoss)


class DPSGDClassifier(ProbabilityScoresMixin, NoisyTraining[DPSGDSteps]):
    """Neural network trained by differentially private stochastic gradient descent.

    Each step draws a random sample of the rows, clips the gradient of each sampled row,
    and follows the noisy sum of clipped gradients. The network may be published, with
    ``privacy_spent_`` as privacy statement. Training needs tens of thousands of private
    rows, and no public rows. The package Opacus, in the extra ``dpsgd``, computes and
    clips the gradients.

    Parameters
    ----------
    estimator : skorch.NeuralNetClassifier
        Network that maps float32 rows to one output per class. No layer may mix rows,
        as ``BatchNorm`` does. The network may be pretrained on public data; pretraining
        on private data voids the privacy statement.

    epsilon : float or None, default=1.0
        Publishable epsilon of this fit, to which the noise is calibrated. With None,
        the fit uses `noise_multiplier` and states the resulting epsilon.

    delta : float, default=1e-5
        Delta of the (epsilon, delta) guarantee. Must be well below one over the number
        of rows.

    noise_multiplier : float, default=None
        Standard deviation of the noise on the sum of clipped gradients, divided by
        `max_grad_norm`. More noise has a lower privacy cost. Used only with
        ``epsilon=None``.

    max_grad_norm : float, default=1.0
        L2 norm to which longer gradients of rows are scaled down. The noise is
        proportional to this norm, so the privacy cost does not depend on the norm. If
        most gradients are longer, halving this norm is similar to halving the learning
        rate.

    accountant : {"pld", "rdp"}, default="pld"
        Method that computes the privacy cost of all steps together. "pld" composes
        privacy loss distributions, and gives the tighter bound. "rdp" adds up Renyi
        divergences, as a `ledger` does.

    representation : transformer or "auto", default=None
        Transformer that computes the inputs of the network, as for
        :class:`~sklearn_pate.learners.DPLogisticRegression`. Fitted on `X_public` of
        `fit` only.

    classes : array-like of shape (n_classes,), default=None
        All labels that may occur. With None, the labels are read from y; the privacy
        statement then assumes that the set of labels is public. A row with another
        label is not used.

    ledger : PrivacyLedger, default=None
        Privacy budget of the private data over all fits. The ledger records the cost
        that ``accountant="rdp"`` computes.

    verbose : int or bool, default=0
        Progress messages, as for :class:`~sklearn_pate.PATEClassifier`. Losses are
        sensitive, and never shown.

    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights. The seed may be public.

    Attributes
    ----------
    network_ : skorch.NeuralNetClassifier
        Trained network that predicts class indices. Contains no training history and no
        private rows. May be published.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    privacy_spent_ : PrivacySpent
        The privacy statement: ``epsilon, delta = clf.privacy_spent_``. May be
        published.

    mechanism_ : DPSGDSteps
        The noisy training steps, with all parameters set. May be published.

    noise_multiplier_ : float
        The given or calibrated noise multiplier. May be published.

    representation_ : transformer
        The transformer, fitted on public rows; absent without one. May be published.

    data_problems_ : tuple of str
        **Sensitive**: what `check_data` finds in the private rows of this fit. A
        pickled or copied estimator lacks this attribute.

    n_features_in_ : int
        Number of columns of X.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang (2016), "Deep learning with
    differential privacy". Training has ``max_epochs * ceil(n_rows / batch_size)``
    steps. Each step draws a new sample of the rows. A row is in the sample with
    probability ``batch_size / n_rows``, independently of other rows. If the sample is
    empty, the step follows the noise alone. The sum of gradients is divided by
    `batch_size`, not by the sample size.

    Each step is a sampled Gaussian mechanism (Mironov, Talwar, Zhang 2019). The
    accountant "pld" composes the privacy loss for an added and for a removed row (Zhu,
    Dong, Wang 2022). Opacus composes the privacy loss for a removed row only.

    Of `estimator`, the fit uses `module`, `criterion`, `optimizer`, `lr`, `batch_size`
    (the **expected** sample size), `max_epochs`, `device`, and their parameters, such
    as `optimizer__momentum`. The fit does not use `train_split` and refuses
    `callbacks`, as both would read private rows again. A penalty in `get_loss` has no
    effect: use ``optimizer__weight_decay``. The first axis of inputs must be the rows.
    Before any privacy cost is recorded, a trial on a few artificial rows refuses
    networks that mix rows. The trial may miss a module that mixes only some rows, or
    only large batches. The privacy statement assumes that no such module is used.

    A value that is missing, infinite as float32, or text among numbers counts as 0, in
    training and in prediction. Such values thus cause no error, and the privacy
    statement still holds. To choose other values, impute before `fit` with numbers that
    do not depend on private data.

    Samples and noise come from the operating system, not from torch's generators, which
    are not cryptographic. Clipped gradients are rounded to whole multiples of a unit
    and added up exactly, so no row changes the rounding of another row. The privacy
    statement lists floating-point noise as an assumption. Noisy sums are rounded to
    about a millionth of the noise, as the last bits could reveal private values.

    Examples
    --------
    >>> import torch
    >>> from skorch import NeuralNetClassifier
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn_pate.learners import DPSGDClassifier
    >>> X, y = make_blobs(6000, centers=3, random_state=0)
    >>> net = NeuralNetClassifier(
    ...     torch.nn.Linear,
    ...     module__in_features=2,
    ...     module__out_features=3,
    ...     criterion=torch.nn.CrossEntropyLoss,
    ...     batch_size=500,
    ...     max_epochs=5,
    ...     lr=1.0,
    ... )
    >>> clf = DPSGDClassifier(net, random_state=0).fit(X[:5000], y[:5000])
    >>> clf.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=1e-05)
    >>> bool(clf.score(X[5000:], y[5000:]) > 0.8)
    True
    """

    #: Missing and infinite values are replaced, not refused.
    _reads_any_value = True

    _constraints: ClassVar[dict[str, Constraint]] = {
        "noise_multiplier": Constraint.positive(also=(None,)),
        "max_grad_norm": Constraint.positive(),
        "accountant": Constraint.option(("pld", "rdp")),
        "verbose": Constraint(check_verbose),
    }

    def __init__(
        self,
        estimator: Any,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        noise_multiplier: float | None = None,
        max_grad_norm: float = 1.0,
        accountant: Literal["pld", "rdp"] = "pld",
        representation: Any = None,
        classes: ArrayLike | None = None,
        ledger: PrivacyLedger | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.noise_multiplier = noise_multiplier
        self.max_grad_norm = max_grad_norm
        self.accountant = accountant
        self.representation = representation
        self.classes = classes
        self.ledger = ledger
        self.verbose = verbose
        self.random_state = random_state

    @property
    def _counts_rows(self) -> bool:
        """True: an added unit moves the positions of other private rows.

        At a kink of a network, the last bits of a row determine its gradient.
        """
        return True

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Predict class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows of the same shape as in `fit`.

        Returns
        -------
        probabilities : ndarray of float32 of shape (n_rows, n_classes)
            One column per class in ``classes_``.
        """
        check_is_fitted(self, "network_")
        with one_thread():
            return self.network_.predict_proba(self._features(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows of the same shape as in `fit`.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            Labels from ``classes_``.
        """
        check_is_fitted(self, "network_")
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _check_parameters(self) -> None:
        _check_network(self.estimator)
        if self.epsilon is None:
            if self.noise_multiplier is None:
                raise ValueError(
                    "The noise is not set, as epsilon=None and noise_multiplier=None; "
                    "set one of them."
                )
        else:
            check_epsilon_is_small("epsilon", self.epsilon)
            if self.noise_multiplier is not None:
                raise ValueError(
                    f"epsilon={self.epsilon!r} and "
                    f"noise_multiplier={self.noise_multiplier!r} both set the noise; "
                    "set one of them to None."
                )
        if self.max_grad_norm < _SMALLEST_BOUND:
            raise ValueError(
                f"max_grad_norm={self.max_grad_norm!r} is too small for floating-point "
                f"arithmetic; use at least {_SMALLEST_BOUND}, and scale the loss."
            )
        check_random_state(self.random_state)
        super()._check_parameters()

    def _check_features(self, X: Any, *, reset: bool) -> NDArray[np.float32]:
        return read_rows(self, X, reset=reset)

    def _as_numbers(self, features: NDArray[np.float64]) -> NDArray[np.float32]:
        return _as_finite(features)

    def _predictor(self) -> TrainedNetwork:
        return TrainedNetwork.of(self)

    def _plan_training(self, rows: Rows) -> TrainingPlan[DPSGDSteps]:
        from sklearn_pate.learners._dpsgd_training import check_trainable

        n_rows = len(rows.X)
        expected = min(self.estimator.batch_size, n_rows)
        rate = expected / n_rows
        n_steps = self.estimator.max_epochs * math.ceil(n_rows / expected)
        delta, accountant = self.delta, self.accountant
        if self.epsilon is not None:
            noise_multiplier = calibrate_steps(
                self.epsilon, rate, n_steps, delta=delta, accountant=accountant
            )
        else:
            noise_multiplier = float(cast(float, self.noise_multiplier))
        plan = DPSGDSteps(
            noise_multiplier,
            rate,
            n_steps,
            float(self.max_grad_norm),
            expected,
            accountant,
        )
        n_classes = len(rows.classes)
        check_trainable(self.estimator, rows.X.shape[1:], n_classes, plan)
        spent = self._state(
            plan,
            n_classes=n_classes,
            delta=delta,
            assumptions=(*rows.assumptions, N_ROWS, ROW_BY_ROW, FLOATING_POINT),
        )
        # The sum of the noise of all steps, relative to the sum of all samples. Twice
        # this noise, as measured on Adult.
        scale = 2 * noise_multiplier * n_rows / (math.sqrt(n_steps) * expected)
        why = why_gradients_useless(plan, scale, n_units=n_rows, n_classes=n_classes)
        warn_user(why, PrivacyUtilityWarning)
        return TrainingPlan(rows, spent, plan, plan)

    def _train(self, rows: Rows, settings: DPSGDSteps, noise: NoiseSource) -> None:
        from sklearn_pate.learners._dpsgd_training import train

        seed = check_random_state(self.random_state).randint(MAX_SEED)
        with progress_of(self):
            self.network_ = train(
                self.estimator,
                rows.X,
                rows.codes,
                len(rows.classes),
                settings,
                noise=noise,
                seed=seed,
            )
        self.noise_multiplier_ = settings.noise_multiplier


def _check_network(estimator: Any) -> None:
    """Raise unless the estimator is a network that can be trained without its loop."""
    try:
        import opacus  # noqa: F401
        from skorch import NeuralNetClassifier
    except ImportError as error:
        raise ImportError(
            "DPSGDClassifier needs skorch and Opacus; pip install skorch opacus."
        ) from error
    if not isinstance(estimator, NeuralNetClassifier):
        raise ValueError(
            f"estimator={estimator!r} is not a skorch.NeuralNetClassifier; wrap the "
            "torch module into one."
        )
    for name in ("batch_size", "max_epochs"):
        check_count(f"estimator.{name}", getattr(estimator, name))
    if estimator.callbacks not in (None, "disable", [], ()):
        raise ValueError(
            f"estimator.callbacks={estimator.callbacks!r} would read private rows; "
            "set callbacks=None."
        )
