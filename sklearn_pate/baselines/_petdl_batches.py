"""Groups of public rows: what teachers are asked about, and what is made of it."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sklearn_pate._base._query_plan import comparable
from sklearn_pate._estimators._seeding import MAX_SEED
from sklearn_pate._teachers import KnowledgeForm
from sklearn_pate._votes._soft_votes import STEPS, Knowledge, KnowledgeLayout
from sklearn_pate.students import Clusters, find_clusters, soften, train_student

__all__ = ["Groups", "plan_groups"]


@dataclass(frozen=True)
class Groups:
    """Everything about the groups that public rows and parameters alone decide.

    Parameters
    ----------
    representation : transformer or None
        Fitted on public rows.

    clusters : Clusters
        The group of each public row, -1 for none.

    form : KnowledgeForm
        What teachers are asked for.
    """

    representation: Any
    clusters: Clusters
    form: KnowledgeForm

    @property
    def layout(self):
        """Where things are in a teacher's vector.

        Returns
        -------
        layout : KnowledgeLayout
            That of the form.
        """
        return self.form.layout

    def seal(self, contributions):
        """Add up what teachers say.

        Parameters
        ----------
        contributions : iterable of (ndarray of int of shape (1, layout.size) or None)
            One a teacher.

        Returns
        -------
        knowledge : Knowledge
            Sealed.
        """
        return Knowledge(contributions, layout=self.layout)

    def values(self, vector):
        """Return what a vector says of each group, in whole numbers.

        Parameters
        ----------
        vector : ndarray of int of shape (1, layout.size)
            A sum, with or without noise.

        Returns
        -------
        values : ndarray of int of shape (n_groups, n_classes)
            In units of 1/1024 of the clipping bound.
        """
        return self.layout.split(vector)[0][0]

    def read(self, vector):
        """Read what was released.

        Parameters
        ----------
        vector : ndarray of int of shape (1, layout.size)
            With noise.

        Returns
        -------
        values : ndarray of shape (n_groups, n_classes)
            The sum of the teachers' softened probabilities.

        similarities : ndarray of shape (n_groups, n_groups) or None
            The sum of their hints.
        """
        values = self.values(vector) * (self.form.clipping_bound / STEPS)
        if not self.layout.n_hint_parts:
            return values, None
        hint = self.layout.split(vector)[1][0]
        return values, self.layout.similarities(hint / STEPS)

    def teach(self, student, X_public, values, similarities, *, seed, hint_epochs):
        """Train a student on what was released.

        Parameters
        ----------
        student : classifier
            Cloned.

        X_public : {ndarray, sparse matrix, dataframe} of shape (n_public, n_features)
            Public rows.

        values : ndarray of shape (n_groups, n_classes)
            Noisy sums, for labels.

        similarities : ndarray of shape (n_groups, n_groups) or None
            Noisy sums, for the hint.

        seed : int
            Seed of the student.

        hint_epochs : int
            Number of passes over the rows for the hint.

        Returns
        -------
        student : classifier
            Fitted on class indices.
        """
        hint = None
        if similarities is not None:
            from sklearn_pate.students import RelationalHint  # imports torch

            hint = RelationalHint(self.clusters.of_row, similarities, hint_epochs)
        return train_student(
            student,
            X_public,
            self.clusters.medoids,
            values.argmax(axis=1),
            n_classes=self.layout.n_classes,
            seed=seed,
            histograms=soften(without_noise(values), 1 / self.form.temperature),
            clusters=self.clusters,
            hint=hint,
        )


def plan_groups(petdl, public, seen, seed):
    """Group the public rows, and settle what is asked about the groups.

    Parameters
    ----------
    petdl : PETDLClassifier
        Its parameters are read.

    public : PublicInputs
        The public rows.

    seen : tuple
        The representation, and the public rows as teachers see them.

    seed : int
        Seeds the groups.

    Returns
    -------
    groups : Groups
        A function of public rows and parameters alone.

    Raises
    ------
    ValueError
        If there are fewer than two groups, or the public rows cannot be compared.
    """
    n_groups = public.n_public // petdl.batch_size
    if n_groups < 2:
        raise ValueError(
            f"batch_size={petdl.batch_size} makes fewer than two groups of "
            f"{public.n_public} public rows; lower batch_size, or bring more public "
            "rows."
        )
    random_state = check_random_state(seed % MAX_SEED)
    if petdl.batches == "random":
        clusters = _random_groups(public.n_public, n_groups, random_state)
    else:
        representation, X_for_teachers = seen
        features = comparable(representation, public.X_public, X_for_teachers, seed)
        if features is None:
            raise ValueError(
                "batches='cluster' compares public rows, which are text, sparse or "
                "have missing values here; pass representation=, a transformer that "
                "makes dense numbers of them, or use batches='random'."
            )
        clusters = find_clusters(features, n_groups, petdl.core, random_state)
    n_groups, n_hint_parts = len(clusters.medoids), 0
    if petdl.hint_epochs:
        share = petdl.hint_share
        n_hint_parts = math.ceil(n_groups * share / (1 - share))
    form = KnowledgeForm(
        KnowledgeLayout(n_groups, len(public.classes), n_hint_parts),
        clusters.of_row,
        float(petdl.temperature),
        float(petdl.clipping_bound),
        bool(petdl.weighted),
    )
    return Groups(seen[0], clusters, form)


def _random_groups(n_public, n_groups, random_state):
    of_row = random_state.permutation(np.arange(n_public) % n_groups)
    _, medoids = np.unique(of_row, return_index=True)
    return Clusters(of_row, medoids)


def without_noise(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Find the sums that are likeliest to lie behind noisy ones, roughly.

    Parameters
    ----------
    values : ndarray of shape (n_groups, n_classes)
        Sums with Gaussian noise.

    Returns
    -------
    values : ndarray of shape (n_groups, n_classes)
        None negative. All groups have the same total, the mean of those before: how
        much all teachers say is much alike, and known far better than what they say of
        one group.

    Notes
    -----
    The nearest point of a simplex to each row (Duchi, Shalev-Shwartz, Singer, Chandra
    2008, Figure 1). It is made of what was released, and costs no privacy.
    """
    total = values.sum(axis=1).mean()
    if total <= 0:  # nothing but noise
        return np.maximum(values, 0)
    falling = -np.sort(-values, axis=1)
    excess = (np.cumsum(falling, axis=1) - total) / np.arange(1, values.shape[1] + 1)
    last = np.count_nonzero(falling > excess, axis=1) - 1
    return np.maximum(values - excess[np.arange(len(values)), last, np.newaxis], 0)
