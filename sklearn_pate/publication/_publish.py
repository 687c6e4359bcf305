"""Publication of a fitted private classifier."""

from dataclasses import replace
from typing import Any

from sklearn.utils.validation import check_is_fitted

from sklearn_pate.exceptions import PrivacyLeakWarning, warn_user
from sklearn_pate.publication._mechanism_fields import without_seeds
from sklearn_pate.publication._privacy_card import make_card
from sklearn_pate.publication._published import PublishedClassifier

__all__ = ["publish"]


def publish(estimator: Any) -> PublishedClassifier:
    """Take the model and its statement out of a fitted private classifier.

    What it returns may be published, under the statement that it carries. It is what
    ``estimator.publish()`` calls, and costs nothing: a student is a function of what
    was released, and so is a model that was trained with noise.

    Parameters
    ----------
    estimator : private classifier
        Fitted: any of :class:`~sklearn_pate.PATEClassifier`, the classifiers of
        ``sklearn_pate.baselines`` and
        :class:`~sklearn_pate.model_selection.PrivateSearchCV`. It stays as it is, and
        is not to be handed over itself: its parameters name the ledger and its key, and
        hold what they were given.

    Returns
    -------
    published : PublishedClassifier
        With a copy of the model.

    Raises
    ------
    NotFittedError
        If it is not fitted.

    ValueError
        If it is no private classifier of this package, or the winner of a search is
        none.

    Warns
    -----
    PrivacyLeakWarning
        If there is no guarantee to publish it under, as the noise was seeded.

    Notes
    -----
    Differential privacy is closed under post-processing (Dwork, McSherry, Nissim, Smith
    2006, "Calibrating noise to sensitivity in private data analysis"). The seed of
    seeded noise is left out of the statement, as whoever knows it can take the noise
    away.

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
    >>> votes = 200 * [["ill", "well", "well"]]  # made up: 200 parties that agree
    >>> published = publish(pate.fit_from_votes([[0.0], [5.0], [6.0]], votes))
    >>> published.predict([[0.0], [6.0]])
    array(['ill', 'well'], dtype='<U4')
    >>> print(f"{published.card['epsilon']:.2f} for one {published.card['unit']}")
    0.84 for one party
    >>> hasattr(published, "mechanism")
    False
    """
    if not hasattr(estimator, "_published_model"):
        raise ValueError(
            f"estimator is a {type(estimator).__name__}, and what of it may be "
            "published is not known; pass a private classifier of sklearn_pate, such "
            "as PATEClassifier, or the last step of a Pipeline that ends in one."
        )
    check_is_fitted(estimator, "privacy_spent_")
    spent, mechanism = estimator.privacy_spent_, estimator._released_by
    published = PublishedClassifier()
    published.student_ = estimator._published_model()
    published.classes_ = estimator.classes_.copy()
    published.privacy_spent_ = replace(spent, mechanism=without_seeds(spent.mechanism))
    published.n_features_in_ = int(estimator.n_features_in_)
    if hasattr(estimator, "feature_names_in_"):
        published.feature_names_in_ = estimator.feature_names_in_.copy()
    if hasattr(estimator, "_column_names"):
        published._column_names = [*estimator._column_names]
    published._card = make_card(published, mechanism)
    if not published._card["private"]:
        warn_user(
            "This model comes with no privacy guarantee (epsilon=inf), and its card "
            "says so; fit without a seed of the noise, and with public bounds, before "
            "publishing it.",
            PrivacyLeakWarning,
        )
    return published
