"""Shards of private rows, and the teachers that are trained on them."""

from sklearn_pate._teachers._group_ids import group_ids, spelled_ids
from sklearn_pate._teachers._poll import collect, poll_teachers
from sklearn_pate._teachers._score_form import ScoreForm
from sklearn_pate._teachers._shards import (
    ONE_GROUP,
    check_n_rows,
    hold_out_groups,
    hold_out_rows,
    one_row_of_groups,
    rows_of_shards,
    shard_groups,
    shard_hashes,
    shard_of,
    shard_of_hash,
    shard_rows,
    teacher_seeds,
)
from sklearn_pate._teachers._soft_voting import OutputsForm, SoftVoteForm
from sklearn_pate._teachers._task import Poll, Shard, TeacherResult, rows_of
from sklearn_pate._teachers._teacher_problems import (
    TeacherProblems,
    raise_for_no_votes,
)
from sklearn_pate._teachers._threads import one_thread
from sklearn_pate._teachers._vote_form import Form, VoteForm
from sklearn_pate._teachers._worker import train_teachers

__all__ = [
    "ONE_GROUP",
    "Form",
    "OutputsForm",
    "Poll",
    "ScoreForm",
    "Shard",
    "SoftVoteForm",
    "TeacherProblems",
    "TeacherResult",
    "VoteForm",
    "check_n_rows",
    "collect",
    "group_ids",
    "hold_out_groups",
    "hold_out_rows",
    "one_row_of_groups",
    "one_thread",
    "poll_teachers",
    "raise_for_no_votes",
    "rows_of",
    "rows_of_shards",
    "shard_groups",
    "shard_hashes",
    "shard_of",
    "shard_of_hash",
    "shard_rows",
    "spelled_ids",
    "teacher_seeds",
    "train_teachers",
]
