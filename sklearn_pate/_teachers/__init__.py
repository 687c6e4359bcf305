"""Shards of private rows, and the teachers that are trained on them."""

from sklearn_pate._teachers._group_ids import group_ids
from sklearn_pate._teachers._poll import collect, poll_teachers
from sklearn_pate._teachers._score_form import ScoreForm
from sklearn_pate._teachers._shards import (
    hold_out_groups,
    hold_out_rows,
    one_row_of_groups,
    rows_of_shards,
    shard_groups,
    shard_of,
    shard_rows,
    teacher_seeds,
)
from sklearn_pate._teachers._soft_voting import OutputsForm, SoftVoteForm
from sklearn_pate._teachers._task import Poll, Shard
from sklearn_pate._teachers._teacher_problems import TeacherProblems
from sklearn_pate._teachers._threads import one_thread, this_thread
from sklearn_pate._teachers._vote_form import Form, VoteForm
from sklearn_pate._teachers._worker import vote_one_by_one

__all__ = [
    "Form",
    "OutputsForm",
    "Poll",
    "ScoreForm",
    "Shard",
    "SoftVoteForm",
    "TeacherProblems",
    "VoteForm",
    "collect",
    "group_ids",
    "hold_out_groups",
    "hold_out_rows",
    "one_row_of_groups",
    "one_thread",
    "poll_teachers",
    "rows_of_shards",
    "shard_groups",
    "shard_of",
    "shard_rows",
    "teacher_seeds",
    "this_thread",
    "vote_one_by_one",
]
