"""DPLogisticRegression and DPLinearSVC: convex training with noise."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, softmax

from sklearn_pate.accounting._calibrate import check_positive
from sklearn_pate.accounting.ledger._ledger import PrivacyLedger
from sklearn_pate.baselines.linear._linear_base import PrivateLinearClassifier
from sklearn_pate.baselines.linear._solver import HuberHinge, LogisticLoss

__all__ = ["DPLinearSVC", "DPLogisticRegression"]

_SMALLEST_HUBER = 1e-9  # below, rounding would not tell it from a kink


class DPLogisticRegression(PrivateLinearClassifier):
    """Logistic regression with differential privacy, by noise in its training.

    The weights minimise the logistic loss of the private rows plus a regularisation,
    with noise on the weights or on the objective. They may be published, with
    ``privacy_spent_`` as the statement.

    Parameters
    ----------
    method : {"objective", "output", "gaussian"}, default="objective"
        Where noise is added. "objective" adds a random linear term to the objective,
        "output" adds noise to the weights, which takes more of it for the same privacy.
        Both are epsilon-private with a delta of 0, for neighbours that replace a row.
        "gaussian" adds a Gaussian linear term, which takes much less noise if there are
        many features, is (epsilon, delta)-private for neighbours that add or remove a
        row, and knows nothing of the number of rows.

    C : float or "auto", default="auto"
        Inverse of the regularisation, as in
        :class:`~sklearn.linear_model.LogisticRegression`, of rows that are scaled to
        norms of at most 1. "auto" is a fixed rule of public numbers: `epsilon`,
        `delta`, the numbers of features and classes, and, for "output" only, that of
        rows; see the notes. A value that is too large is lowered to ``C_``. To choose
        it by its score on private rows voids the statement.

    epsilon : float, default=1.0
        The publishable epsilon of this fit. Less is more private, with more noise.

    delta : float, default=1e-5
        The probability mass that epsilon does not cover, for ``method="gaussian"``. It
        must be well below one over the number of rows.

    data_norm : float, default=None
        Public bound of the rows' L2 norm, after `feature_bounds` are applied; longer
        rows are scaled down to it. A lower bound leaves more of short rows beside the
        noise. None is the square root of the number of features if `feature_bounds` are
        given; if not, it is read from X, and **nothing is private**:
        ``privacy_spent_.epsilon`` is infinite.

    feature_bounds : tuple (low, high), default=None
        Public bounds of the features, two numbers or two array-likes of shape
        (n_features,). Features are clipped to them and scaled to [0, 1]. Bounds that
        were read from the data void the statement.

    fit_intercept : bool, default=True
        Whether there is an intercept. It is regularised, and takes room within the
        bound of the norm: rows of indicator columns, which are never all 0, are better
        off without.

    intercept_scaling : float, default=1.0
        Value of the constant column behind the intercept, to be compared with
        `data_norm`: rows are divided by the root of the sum of both squares. More of it
        regularises the intercept less, and leaves less of the features beside the
        noise.

    classes : array-like of shape (n_classes,), default=None
        All labels that may occur. None reads them from y, and states as an assumption
        that they are public. A row with another label has no loss.

    ledger : PrivacyLedger, default=None
        The account of the private data over all fits, see
        :class:`~sklearn_pate.PATEClassifier`. One account is for one `method`'s
        neighbours.

    noise_seed : int, default=None
        None draws the noise from the operating system. An integer makes it reproducible
        and **voids every guarantee**.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights, in units of the features. May be published.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts; without `fit_intercept` too, `feature_bounds` make some. May be
        published.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    privacy_spent_ : PrivacySpent
        The privacy statement: ``epsilon, delta = clf.privacy_spent_``. May be
        published.

    C_ : float
        The C that was used, a function of public numbers.

    data_norm_ : float
        The bound of the rows' norm that was used.

    mechanism_ : NoisyObjective
        The noise with all its numbers. May be published.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    Chaudhuri, Monteleoni, Sarwate (2011), "Differentially private empirical risk
    minimization", for "output" and "objective"; Redberg, Koskela, Wang (2023) for
    "gaussian"; Iyengar et al. (2019), as no minimiser is found exactly. The proofs take
    a convex loss whose slope lies in [-1, 0] and whose second derivative is at most c,
    1/4 here, on rows of norm at most 1, the constant included; they stand in
    ``accounting/objective.py`` and ``baselines/erm_perturbation.py``.

    Several classes are told from the rest one by one. Each of these problems gets an
    equal part of epsilon; costs of "gaussian" add up as Renyi curves.

    Rows to predict are clipped and scaled down as those in training: ``coef_`` and
    ``intercept_`` give the same scores for rows within the bounds.

    A missing value, and text among numbers, counts as the middle of its feature's
    bounds, as 0 without `feature_bounds`, in training and in prediction. Infinity
    counts as the bound; without `feature_bounds`, its row counts as zeros. So each row
    is brought within the bounds by itself alone, no row makes a fit fail, and the
    number of rows stays: the statement is the same. To choose other values, impute
    beforehand by public numbers.

    There is no limit to the number of steps that is worth setting, and none is told: a
    fit that stopped early would be outside the proofs, and how long it took depends on
    private rows in a way that no noise hides.

    ``C="auto"`` is 1 / lambda with lambda = b / 8 + c / (e^{epsilon/2} - 1), where
    epsilon is the part of one problem, and b is about the length of the random linear
    term: 2 (d (d + 1))^{1/2} / epsilon with d weights, and for "gaussian"
    (d k)^{1/2} / mu, if k problems that are mu-GDP together keep to epsilon and delta.
    For "output", lambda is max(b / 8, (2 n c b^2 / (64 d))^{1/3}) with n rows. Noise is
    balanced against regularisation, see ``plan_perturbation``.

    A kernel machine takes random Fourier features:
    ``make_pipeline(RBFSampler(gamma=1), DPLogisticRegression(data_norm=math.sqrt(2)))``
    with :class:`~sklearn.kernel_approximation.RBFSampler`, which looks at the number of
    features only, and whose rows have norms of at most sqrt(2).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_pate.baselines import DPLogisticRegression
    >>> X, y = make_classification(6000, 10, random_state=0)
    >>> clf = DPLogisticRegression(data_norm=4).fit(X[:5000], y[:5000])
    >>> clf.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=0.0)
    >>> bool(clf.score(X[5000:], y[5000:]) > 0.7)
    True
    """

    def __init__(
        self,
        *,
        method: Literal["output", "objective", "gaussian"] = "objective",
        C: float | Literal["auto"] = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-5,
        data_norm: float | None = None,
        feature_bounds: tuple[ArrayLike, ArrayLike] | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        classes: ArrayLike | None = None,
        ledger: PrivacyLedger | None = None,
        noise_seed: int | None = None,
    ) -> None:
        self.method = method
        self.C = C
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.feature_bounds = feature_bounds
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.ledger = ledger
        self.noise_seed = noise_seed

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows. They are brought within the bounds as those in `fit` were.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            A column for each of ``classes_``. With more than two classes, those of each
            against the rest, scaled to a sum of 1.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(log_expit(scores), axis=1)

    def _loss(self):
        return LogisticLoss()


class DPLinearSVC(PrivateLinearClassifier):
    """Linear support vector machine with differential privacy, by noise in training.

    The weights minimise the hinge loss of the private rows, smoothed at its kink, plus
    a regularisation, with noise on the weights or on the objective. Where noise is
    strong, it is more accurate than logistic regression, whose slope is half as steep
    for small weights. They may be published, with ``privacy_spent_`` as the statement.

    Parameters
    ----------
    method : {"objective", "output", "gaussian"}, default="objective"
        Where noise is added, and which neighbours and delta the statement has. See
        :class:`DPLogisticRegression`.

    C : float or "auto", default="auto"
        Inverse of the regularisation. "auto" is a fixed rule of public numbers. See
        :class:`DPLogisticRegression`.

    epsilon : float, default=1.0
        The publishable epsilon of this fit. Less is more private, with more noise.

    delta : float, default=1e-5
        The probability mass that epsilon does not cover, for ``method="gaussian"``. It
        must be well below one over the number of rows.

    data_norm : float, default=None
        Public bound of the rows' L2 norm; longer rows are scaled down to it. If neither
        it nor `feature_bounds` is given, it is read from X, and **nothing is private**.
        See :class:`DPLogisticRegression`.

    feature_bounds : tuple (low, high), default=None
        Public bounds of the features, which are clipped to them and scaled to [0, 1].
        See :class:`DPLogisticRegression`.

    fit_intercept : bool, default=True
        Whether there is an intercept, which takes room within the bound of the norm.

    intercept_scaling : float, default=1.0
        Value of the constant column behind the intercept, to be compared with
        `data_norm`. See :class:`DPLogisticRegression`.

    huber : float, default=0.5
        Half-width h of the quadratic piece of the loss, (1 + h - z)^2 / (4 h) for
        margins z within h of 1. Wider is smoother: c = 1 / (2 h) is smaller, and takes
        less regularisation for the same privacy.

    classes : array-like of shape (n_classes,), default=None
        All labels that may occur. None reads them from y, and states as an assumption
        that they are public. A row with another label has no loss.

    ledger : PrivacyLedger, default=None
        The account of the private data over all fits, see
        :class:`~sklearn_pate.PATEClassifier`. One account is for one `method`'s
        neighbours.

    noise_seed : int, default=None
        None draws the noise from the operating system. An integer makes it reproducible
        and **voids every guarantee**.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights, in units of the features. May be published.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts; without `fit_intercept` too, `feature_bounds` make some. May be
        published.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    privacy_spent_ : PrivacySpent
        The privacy statement: ``epsilon, delta = clf.privacy_spent_``. May be
        published.

    C_ : float
        The C that was used, a function of public numbers.

    data_norm_ : float
        The bound of the rows' norm that was used.

    mechanism_ : NoisyObjective
        The noise with all its numbers. May be published.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    See :class:`DPLogisticRegression`, for missing values too; c is 1 / (2 h) here. The
    loss is the Huber hinge of Chaudhuri, Monteleoni, Sarwate (2011, Section 3.4).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_pate.baselines import DPLinearSVC
    >>> X, y = make_classification(6000, 10, random_state=0)
    >>> clf = DPLinearSVC(method="gaussian", data_norm=4).fit(X[:5000], y[:5000])
    >>> clf.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=1e-05)
    >>> bool(clf.score(X[5000:], y[5000:]) > 0.7)
    True
    """

    def __init__(
        self,
        *,
        method: Literal["output", "objective", "gaussian"] = "objective",
        C: float | Literal["auto"] = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-5,
        data_norm: float | None = None,
        feature_bounds: tuple[ArrayLike, ArrayLike] | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        huber: float = 0.5,
        classes: ArrayLike | None = None,
        ledger: PrivacyLedger | None = None,
        noise_seed: int | None = None,
    ) -> None:
        self.method = method
        self.C = C
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.feature_bounds = feature_bounds
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.huber = huber
        self.classes = classes
        self.ledger = ledger
        self.noise_seed = noise_seed

    def _check_parameters(self):
        super()._check_parameters()
        check_positive("huber", self.huber)
        if self.huber < _SMALLEST_HUBER:
            raise ValueError(
                f"huber={self.huber!r} must be at least {_SMALLEST_HUBER}, such as 0.5."
            )

    def _loss(self):
        return HuberHinge(float(self.huber))
