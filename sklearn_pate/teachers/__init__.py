"""The private side: shards, teachers and their votes."""

from sklearn_pate.teachers.knowledge import KnowledgeForm, OutputsForm
from sklearn_pate.teachers.poll import TeacherProblems, collect, poll_teachers
from sklearn_pate.teachers.shards import (
    group_ids,
    hold_out_groups,
    hold_out_rows,
    shard_groups,
    shard_rows,
)

__all__ = [
    "KnowledgeForm",
    "OutputsForm",
    "TeacherProblems",
    "collect",
    "group_ids",
    "hold_out_groups",
    "hold_out_rows",
    "poll_teachers",
    "shard_groups",
    "shard_rows",
]
