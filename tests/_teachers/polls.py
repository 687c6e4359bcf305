"""Teachers and their votes, without an estimator. Light, as processes import it."""

from functools import partial

from sklearn_pate import Votes
from tests.private import VoteForm, collect


def poll_teachers(estimator, X, codes, shards, X_public, *, n_classes, **parameters):
    """Train a teacher on each shard, and count its votes on the public rows."""
    count = partial(Votes, n_public=X_public.shape[0], n_classes=n_classes)
    form = VoteForm(n_classes)
    return collect(
        estimator, X, codes, shards, X_public, form=form, aggregate=count, **parameters
    )
