"""Publication of a fitted private classifier."""

from dataclasses import replace
from typing import Any

from sklearn.utils.validation import check_is_fitted

from sklearn_pate.exceptions import PrivacyLeakWarning, warn_user
from sklearn_pate.publication._deployment import Deployment, checked_deployment
from sklearn_pate.publication._mechanism_fields import without_seeds
from sklearn_pate.publication._privacy_card import make_card
from sklearn_pate.publication._published import PublishedClassifier

__all__ = ["publish"]


def publish(
    estimator: Any, *, deployment: Deployment | None = None
) -> PublishedClassifier:
    """Publish the model and the privacy statement of a fitted private classifier.

    The result may be published under its statement. Publication has no privacy cost: it
    is post-processing of what was released. ``estimator.publish()`` calls this
    function.

    Parameters
    ----------
    estimator : private classifier
        Fitted :class:`~sklearn_pate.PATEClassifier`, classifier of
        ``sklearn_pate.baselines``, or
        :class:`~sklearn_pate.model_selection.PrivateSearchCV`. It is not changed, and
        must not be published itself: its parameters may name the ledger and its key.

    deployment : Deployment, default=None
        Description of data, purpose and responsibilities, which the card repeats. It
        is published, and no privacy statement covers it. None gives an empty one.

    Returns
    -------
    published : PublishedClassifier
        Copy of the model, with its statement.

    Raises
    ------
    NotFittedError
        If `estimator` is not fitted.

    ValueError
        If `estimator` is no private classifier of this package, or is a search whose
        winner is none; or if `deployment` is no Deployment, or has a number of units
        that the statement hides.

    Warns
    -----
    PrivacyLeakWarning
        If there is no privacy guarantee, because the noise was seeded.

    Notes
    -----
    Differential privacy is closed under post-processing (Dwork, McSherry, Nissim, Smith
    2006, "Calibrating noise to sensitivity in private data analysis"). The statement
    leaves out the seed of seeded noise: with the seed, the noise can be subtracted.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate import PATEClassifier
    >>> from sklearn_pate.mechanisms import GNMax
    >>> from sklearn_pate.publication import publish
    >>> pate = PATEClassifier(
    ...     LogisticRegression(),
    ...     mechanism=GNMax(sigma=10),
    ...     epsilon=None,
    ...     classes=["ill", "well"],
    ... )
    >>> votes = 200 * [["ill", "well", "well"]]  # 200 parties that agree
    >>> published = publish(pate.fit_from_votes([[0.0], [5.0], [6.0]], votes))
    >>> published.predict([[0.0], [6.0]])
    array(['ill', 'well'], dtype='<U4')
    >>> print(f"{published.card['epsilon']:.2f} for one {published.card['unit']}")
    0.84 for one party
    """
    if not hasattr(estimator, "_published_model"):
        raise ValueError(
            f"estimator is of type {type(estimator).__name__}, and cannot be "
            "published; pass a private classifier of sklearn_pate, such as "
            "PATEClassifier, or the last step of a Pipeline that ends in one."
        )
    check_is_fitted(estimator, "privacy_spent_")
    spent, mechanism = estimator.privacy_spent_, estimator._released_by
    deployment = checked_deployment(deployment, spent)
    published = PublishedClassifier()
    published.student_ = estimator._published_model()
    published.classes_ = estimator.classes_.copy()
    published.privacy_spent_ = replace(spent, mechanism=without_seeds(spent.mechanism))
    published.n_features_in_ = int(estimator.n_features_in_)
    if hasattr(estimator, "feature_names_in_"):
        published.feature_names_in_ = estimator.feature_names_in_.copy()
    if hasattr(estimator, "_column_names"):
        published._column_names = [*estimator._column_names]
    published._card = make_card(published, mechanism, deployment)
    if not published._card["private"]:
        warn_user(
            "This model and its card have no privacy guarantee (epsilon=inf); before "
            "publication, fit it without a seed of the noise, and with public bounds.",
            PrivacyLeakWarning,
        )
    return published
