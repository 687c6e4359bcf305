"""Small fits on rows drawn from noisy counts, with noise that is given."""

import joblib
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import DPNewtonClassifier, PATEClassifier, PrivateMarginals
from sklearn_pate.learners import Clusters, PETDLClassifier, PrivateKNNClassifier
from sklearn_pate.mechanisms import GNMax, GumbelMax, MeanScores
from sklearn_pate.students import DistillationClassifier, UncertaintyQueries
from tests._aggregation.fits import X, Y
from tests.private import FitEntry, MarginalCounts

SYNTHETIC = PrivateMarginals((-3, 5), n_rows=60, sigma=15.0, n_bins=8)
# Of a learner whose noise always follows from epsilon.
CALIBRATED = clone(SYNTHETIC).set_params(sigma=None)
_COMMON = {"epsilon": None, "random_state": 0, "synthetic": SYNTHETIC}


def of_votes(**changes):
    given = {"n_teachers": 10, "n_queries": 20, "mechanism": GumbelMax(c=0.5)}
    return PATEClassifier(GaussianNB(), GaussianNB(), **(_COMMON | given | changes))


FITS = {
    "votes": of_votes(),
    "votes in rounds": of_votes(query_strategy=UncertaintyQueries(n_rounds=4)),
    "scores": PATEClassifier(
        GaussianNB(), n_teachers=10, mechanism=MeanScores(noise_scale=1.0), **_COMMON
    ),
    "newton": DPNewtonClassifier(epsilon=20.0, random_state=0, synthetic=CALIBRATED),
    "sum": PETDLClassifier(
        GaussianNB(),
        DistillationClassifier(LogisticRegression()),
        n_teachers=10,
        batches=Clusters(10),
        noise_scale=0.5,
        **_COMMON,
    ),
    "neighbours": PrivateKNNClassifier(
        GaussianNB(),
        n_neighbors=20,
        n_queries=20,
        mechanism=GNMax(sigma=20),
        sampling_rate=0.3,
        **_COMMON,
    ),
}


def fit(kind, ledger=None, X=X, y=Y, groups=None, **changes):
    """Fit a clone of one of `FITS`, or of an estimator."""
    estimator = clone(FITS[kind] if isinstance(kind, str) else kind)
    estimator.set_params(ledger=ledger, **changes)
    return estimator.fit(X, y) if groups is None else estimator.fit(X, y, groups=groups)


def released(fitted):
    """Hash all that a fit released."""
    names = ("queried_indices_", "answers_", "estimate_", "released_", "coefficients_")
    answers = [getattr(fitted, name, None) for name in names]
    return joblib.hash([fitted.marginals_, answers])


def spy_on_counts(monkeypatch):
    """Return a list of the ledger entry of each draw of noise on counts."""
    opened, drawn = [None], []
    open_entry, release = FitEntry.open, MarginalCounts.release

    def opening(self, n_new):
        given = open_entry(self, n_new)
        opened[0] = self._number
        return given

    def drawing(self, *args):
        drawn.append(opened[0])
        return release(self, *args)

    monkeypatch.setattr(FitEntry, "open", opening)
    monkeypatch.setattr(MarginalCounts, "release", drawing)
    return drawn
