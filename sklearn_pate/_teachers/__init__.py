"""Shards of private rows, and the teachers that are trained on them."""

from sklearn_pate._teachers._poll import collect, poll_teachers
from sklearn_pate._teachers._score_form import ScoreForm
from sklearn_pate._teachers._shards import (
    group_ids,
    hold_out_groups,
    hold_out_rows,
    shard_groups,
    shard_rows,
)
from sklearn_pate._teachers._soft_voting import OutputsForm, SoftVoteForm
from sklearn_pate._teachers._teacher_problems import TeacherProblems

__all__ = [
    "OutputsForm",
    "ScoreForm",
    "SoftVoteForm",
    "TeacherProblems",
    "collect",
    "group_ids",
    "hold_out_groups",
    "hold_out_rows",
    "poll_teachers",
    "shard_groups",
    "shard_rows",
]
