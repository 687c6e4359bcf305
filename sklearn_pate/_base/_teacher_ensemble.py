"""What all classifiers have whose student learns through a mechanism."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state

from sklearn_pate._base._ledger_entry import open_account
from sklearn_pate._base._parameters import as_teacher, memory_location
from sklearn_pate._base._release_plan import state_privacy
from sklearn_pate._base._unfitted import with_unfitted
from sklearn_pate._estimators._callbacks import CallbackSupportMixin, each_teacher
from sklearn_pate._estimators._delegation import StudentPredictionMixin
from sklearn_pate._estimators._seeding import MAX_SEED
from sklearn_pate._inputs._odd_rows import input_tags, takes_missing
from sklearn_pate._teachers import shard_groups, shard_rows
from sklearn_pate._warn import warn_user
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.exceptions import TeacherWarning
from sklearn_pate.mechanisms import Oracle
from sklearn_pate.publication import PublishedClassifier, publish
from sklearn_pate.publication._report_link import ReportLinkMixin
from sklearn_pate.students import Inquiry, train_student

__all__ = [
    "AskingMixin",
    "FitPlan",
    "TaughtClassifier",
    "TeacherEnsemble",
    "assign_shards",
]

# What holds estimators that a fit only clones.
UNFITTED_WHEN_PICKLED = (
    "estimator",
    "student",
    "representation",
    "query_strategy",
    "query_strategy_",
)


class TaughtClassifier(
    ReportLinkMixin,
    MetaEstimatorMixin,
    StudentPredictionMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """Base of classifiers whose student learns through a mechanism.

    Its `fit` sets what is published (``student_``, ``classes_``, ``privacy_spent_``,
    ``mechanism_``), and what never leaves the house (``privacy_analysis_``,
    ``public_indices_``). A subclass provides `_unfitted_student` and `_input_tags`.
    """

    #: Number of shards; None where rows are not cut into any.
    n_teachers: Any = None

    representation: Any
    epsilon: float | None
    delta: float
    privacy_unit: str
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

    @property
    def _counts_rows(self):
        """Whether one unit more moves the places of other private rows."""
        return self.privacy_unit == "group"

    def _draw_seeds(self):
        # All at once and in a fixed order, so that no seed depends on the data.
        drawn = check_random_state(self.random_state).randint(MAX_SEED, size=5)
        return Seeds(*drawn.tolist())

    def _input_tags(self):
        """Return the input tags of what sees private rows first."""
        return input_tags(self._sees_rows_first())

    def _takes_missing(self):
        """Tell whether public rows may miss values; None if that cannot be told."""
        student = self._unfitted_student()
        answers = [takes_missing(one) for one in (self._sees_rows_first(), student)]
        return False if False in answers else (None if None in answers else True)

    def _sees_rows_first(self):
        """Return the estimator that sees private rows first."""
        return self.representation

    def __getstate__(self):
        state = super().__getstate__().copy()
        # For the data holder only: the gaps between public rows count private ones.
        for name in ("privacy_analysis_", "public_indices_"):
            state.pop(name, None)
        return with_unfitted(state, UNFITTED_WHEN_PICKLED)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        first = self._input_tags()
        student = input_tags(self._unfitted_student())
        tags.input_tags.sparse = first.sparse and student.sparse
        tags.input_tags.allow_nan = first.allow_nan and student.allow_nan
        # Noise for a target epsilon drowns what teachers on a few dozen rows say.
        tags.classifier_tags.poor_score = self.epsilon is not None
        return tags


class TeacherEnsemble(CallbackSupportMixin, TaughtClassifier):
    """Base of those whose teachers are trained on disjoint shards of the rows."""

    estimator: Any
    memory: Any
    n_jobs: int | None
    verbose: int

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
        return said, replace(problems, data=[*private.problems])

    def _sees_rows_first(self):
        # Teachers see what the representation makes of the rows.
        if self.representation is None:
            return as_teacher(self.estimator)
        return self.representation


class AskingMixin:
    """Ask about public rows, one by one, and teach the answers.

    A subclass provides `_plan_fit`.
    """

    mechanism: Any

    def plan_privacy(
        self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None
    ) -> PrivacySpent:
        """State what a fit would cost, without fitting. Asks and charges nothing.

        Parameters
        ----------
        X, y, X_public, groups : array-like
            As in `fit`. Numbers of rows and classes count, no private value does.

        Returns
        -------
        spent : PrivacySpent
            What ``privacy_spent_`` will be.

        Raises
        ------
        ValueError
            If a parameter or the data cannot work.
        """
        plan = clone(self)._plan_fit(X, y, X_public, groups)
        return self._state(plan)

    def _state(self, plan):
        return state_privacy(
            self,
            plan.mechanism,
            plan.public,
            n_teachers=plan.n_teachers,
            n_queries=plan.questions.n_queries,
            n_values=len(plan.public.classes),
            representation=plan.questions.representation,
        )

    def _open_account(self, plan):
        return open_account(
            self,
            plan.mechanism,
            plan.private,
            plan.public,
            n_queries=plan.questions.n_queries,
            n_values=len(plan.public.classes),
            clusters=plan.questions.clusters,
            n_teachers=plan.n_teachers,
            prepare=plan.prepare,
        )

    def _ask_teach_account(self, votes, plan, account, analyse):
        """Do what follows a vote, wherever it was held."""
        public, questions, seeds = plan.public, plan.questions, plan.seeds
        n_queries, n_classes = questions.n_queries, len(public.classes)
        oracle = Oracle(votes, plan.mechanism, n_queries=n_queries, account=account)
        inquiry = Inquiry(
            questions.door(oracle.ask),
            public.X_public,
            self._unfitted_student(),
            n_classes=n_classes,
            n_queries=n_queries,
            seed=seeds.queries,
            features=questions.features,
            clusters=questions.clusters,
        )
        questions.strategy.query(inquiry)
        transcript = oracle.transcript()
        student = train_student(
            self._unfitted_student(),
            public.X_public,
            inquiry.queried,
            inquiry.answers,
            n_classes=n_classes,
            seed=seeds.student,
            histograms=transcript.histograms,
            clusters=questions.clusters,
        )
        spent, analysis = self._state(plan), analyse(transcript)

        self.student_ = student
        self.classes_ = public.classes
        self.mechanism_ = plan.mechanism
        self.query_strategy_ = questions.strategy
        self.representation_ = questions.representation
        self.queried_indices_ = inquiry.queried
        self.answers_ = inquiry.answers
        self.histograms_ = transcript.histograms
        self.privacy_spent_ = spent
        self.privacy_analysis_ = analysis

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = getattr(self.mechanism, "noise_seed", None) is None
        return tags


class FitPlan(NamedTuple):
    """What is settled about a fit before the first teacher says anything."""

    private: Any
    public: Any
    n_teachers: int
    questions: Any
    seeds: "Seeds"
    mechanism: Any
    #: Makes the mechanism that another epsilon would take.
    prepare: Callable[[float | None], Any]


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
        warn_user(
            "Some teachers may have warned, or failed and abstained. How many, which "
            "and why is sensitive: see teacher_failures and teacher_warnings of "
            "privacy_analysis_.",
            TeacherWarning,
        )
