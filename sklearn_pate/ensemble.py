"""What all classifiers have that are taught by an ensemble of teachers on shards."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state, get_tags

from sklearn_pate.exceptions import TeacherWarning
from sklearn_pate.parameters import as_teacher, memory_location
from sklearn_pate.prediction import StudentPredictionMixin
from sklearn_pate.progress import CallbackSupportMixin, each_teacher
from sklearn_pate.publication import PublishedClassifier, publish
from sklearn_pate.seeding import MAX_SEED
from sklearn_pate.teachers import shard_groups, shard_rows

__all__ = ["TeacherEnsemble", "assign_shards"]

# What holds estimators that a fit only clones.
UNFITTED_WHEN_PICKLED = (
    "estimator",
    "student",
    "representation",
    "query_strategy",
    "query_strategy_",
)


class TeacherEnsemble(
    CallbackSupportMixin,
    MetaEstimatorMixin,
    StudentPredictionMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """Base of classifiers whose student learns from teachers through a mechanism.

    Its `fit` sets what is published (``student_``, ``classes_``, ``privacy_spent_``,
    ``mechanism_``), and what never leaves the house (``privacy_analysis_``,
    ``public_indices_``).
    """

    estimator: Any
    representation: Any
    epsilon: float | None
    delta: float
    privacy_unit: str
    memory: Any
    n_jobs: int | None
    verbose: int
    random_state: Any

    def publish(self) -> PublishedClassifier:
        """Take out what may be published: the student with its privacy statement.

        Returns
        -------
        published : PublishedClassifier
            Predicts the same, and holds nothing else of this fit. Its `save` writes a
            file that runs no code when it is loaded, and a privacy card beside it.

        Raises
        ------
        NotFittedError
            If there is no student yet.

        Warns
        -----
        PrivacyLeakWarning
            If there is no guarantee to publish it under, as the noise was seeded.
        """
        return publish(self)

    def _draw_seeds(self):
        # All at once and in a fixed order, so that no seed depends on the data.
        drawn = check_random_state(self.random_state).randint(MAX_SEED, size=5)
        return Seeds(*drawn.tolist())

    def _ask_teachers(
        self, ask, shards, private, X_public, representation, seed, **asked
    ):
        """Ask teachers on all shards, as the parameters say."""
        seeds = np.random.RandomState(seed).randint(MAX_SEED, size=len(shards))
        with each_teacher(self, len(shards)) as on_teacher_done:
            said, problems = ask(
                as_teacher(self.estimator),
                private.X,
                private.codes,
                shards,
                X_public,
                seeds=seeds.tolist(),
                representation=representation,
                memory=memory_location(self.memory),
                n_jobs=self.n_jobs,
                verbose=self.verbose,
                on_teacher_done=on_teacher_done,
                **asked,
            )
        _warn_of(problems)
        return said, problems

    def __getstate__(self):
        state = super().__getstate__().copy()
        # For the data holder only: the gaps between public rows count private ones.
        for name in ("privacy_analysis_", "public_indices_"):
            state.pop(name, None)
        # Somebody may have fitted them, on private rows, since they were passed.
        for name in UNFITTED_WHEN_PICKLED:
            if name in state:
                state[name] = clone(state[name], safe=False)
        return state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # Teachers see what the representation makes of the rows.
        first = self.representation
        first = as_teacher(self.estimator) if first is None else first
        teacher = get_tags(first).input_tags
        student = get_tags(self._unfitted_student()).input_tags
        tags.input_tags.sparse = teacher.sparse and student.sparse
        tags.input_tags.allow_nan = teacher.allow_nan and student.allow_nan
        # Noise for a target epsilon drowns what teachers on a few dozen rows say.
        tags.classifier_tags.poor_score = self.epsilon is not None
        return tags


@dataclass(frozen=True)
class Seeds:
    """One seed for each part of a fit."""

    shards: int
    teachers: int
    queries: int
    student: int
    questions: int


def assign_shards(private, n_teachers, seed):
    """Assign private rows to teachers, without a look at X or y.

    Parameters
    ----------
    private : PrivateInputs
        Rows, and perhaps whose they are.

    n_teachers : int
        Number of shards.

    seed : int
        Decides who goes where.

    Returns
    -------
    shards : list of n_teachers ndarrays of int
        Rows of each teacher.
    """
    if private.ids is None:
        return shard_rows(private.n_rows, n_teachers, seed)
    shard_of_row = shard_groups(private.ids, n_teachers, seed)[private.group_of_row]
    ends = np.cumsum(np.bincount(shard_of_row, minlength=n_teachers))
    return np.split(np.argsort(shard_of_row, kind="stable"), ends[:-1])


def _warn_of(problems):
    if problems:
        warnings.warn(
            "Some teachers may have warned, or failed and abstained. How many, which "
            "and why is sensitive: see teacher_failures and teacher_warnings of "
            "privacy_analysis_.",
            TeacherWarning,
            stacklevel=5,
        )
