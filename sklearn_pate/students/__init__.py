"""The public side: questions and students. Sees public rows and answers only."""

from sklearn_pate.students.queries import random_queries
from sklearn_pate.students.semi_supervised import accepts_unlabeled, train_student

__all__ = ["accepts_unlabeled", "random_queries", "train_student"]
