"""Teachers and their votes, without an estimator. Light, as processes import it."""

from functools import partial

from sklearn_pate._teachers._training import VoteForm, collect
from sklearn_pate._votes._votes import Votes


def poll_teachers(estimator, X, codes, shards, X_public, *, n_classes, **parameters):
    """Train a teacher on each shard, and count its votes on the public rows."""
    count = partial(Votes, n_public=X_public.shape[0], n_classes=n_classes)
    form = VoteForm(n_classes)
    return collect(
        estimator, X, codes, shards, X_public, form=form, aggregate=count, **parameters
    )
