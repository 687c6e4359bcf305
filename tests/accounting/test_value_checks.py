"""Constraints of parameters, and counts in sentences: one row, and two rows."""

import ast
import re
from pathlib import Path
from typing import ClassVar

import pytest

import sklearn_pate
from tests.private import Constraint, check_parameters, counted

# Numbers that are at least two, or of memory and steps that are always many.
SEVERAL = {
    "n_cells",
    "n_classes",
    "n_given",
    "n_labeled",
    "n_labels",
    "n_models",
    "n_splits",
    "len(neighbour)",
    "len(text)",
}
SEVERAL_IN = {
    ("_shards.py", "len(ids)"),  # one group is refused before
    ("_votes.py", "size"),  # two public batches or more
    ("_linear.py", "n_features"),
    ("_petdl.py", "n_public"),
    ("_noisy_training.py", "n_problems"),
    ("_results.py", "len(self.classes_)"),  # more than two
    ("_rdp.py", "n_times"),  # "composed {n_times!r} times"
    ("_ledger.py", "n_times"),  # below one, as more would fit
    ("_sites.py", "n_sites"),  # two sites or more, also below
    ("_noisy_sum.py", "n_sites"),
    ("_study.py", "len(self.study.sites)"),
    ("_study.py", "n_numbers"),  # more than the most that are allowed
}
PLURAL = re.compile(
    r" (?!is |has |needs |was |does |this |its |as )"
    r"(?:(?!of|in|and|with|for|on|at|by|to)[a-z-]+ )?[a-z]+s\b"
)


class Base:
    _constraints: ClassVar = {
        "n_rounds": Constraint.count(also=(None,)),
        "share": Constraint.number(0, 1, closed="neither", also=("auto",)),
        "metric": Constraint.option(("euclidean", "cosine")),
    }

    def __init__(self, n_rounds=None, share="auto", metric="cosine", scale=1.0):
        self.n_rounds, self.share, self.metric = n_rounds, share, metric
        self.scale, self.keep, self.start = scale, True, None


class Derived(Base):
    _constraints: ClassVar = {
        "scale": Constraint.positive(),
        "keep": Constraint.boolean(),
        "start": Constraint.instance(Base, "pass Base()"),
    }


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_rounds", 0, "n_rounds=0 must be a whole number of at least 1, or None."),
        ("share", 1, "share=1 must be a number strictly between 0 and 1, or 'auto'."),
        ("share", None, "share=None must be a number strictly between 0 and 1, or"),
        ("metric", "x", "metric='x' is unknown; use one of ['euclidean', 'cosine']."),
        ("metric", ["cosine"], "metric=['cosine'] is unknown; use one of"),
        ("scale", float("inf"), "scale=inf must be a positive, finite number."),
        ("keep", 1, "keep=1 must be True or False."),
        ("start", "x", "start='x' is not a Base; pass Base()."),
    ],
)
def test_constraints_of_a_class_and_of_its_bases_hold(name, value, message):
    estimator = Derived()
    check_parameters(estimator)
    setattr(estimator, name, value)
    with pytest.raises(ValueError, match=re.escape(message)):
        check_parameters(estimator)


@pytest.mark.parametrize(
    ("number", "noun", "written"),
    [
        (1, "query", "1 query"),
        (2, "query", "2 queries"),
        (0, "public row", "0 public rows"),
        (3, "class", "3 classes"),
        (3, "batch", "3 batches"),
        (3, "day", "3 days"),
        (None, "teacher", "no teacher"),
    ],
)
def test_a_noun_follows_its_number(number, noun, written):
    assert counted(number, noun) == written


def counts_with_a_plural(path):
    """List the counts of a module that a plural noun follows, whatever they are."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, after in zip(node.values, node.values[1:], strict=False):
            if isinstance(value, ast.FormattedValue) and isinstance(
                after, ast.Constant
            ):
                code = ast.unparse(value.value)
                name = re.sub(r"^[\w.]*\.|.*\['|'\]$", "", code)
                is_count = name.startswith(("n_", "len(")) or code.endswith(".size")
                if is_count and PLURAL.match(after.value) and name not in SEVERAL:
                    yield path.name, name


@pytest.mark.thorough
def test_a_count_that_may_be_one_has_its_noun_from_counted():
    package = Path(sklearn_pate.__file__).parent
    found = {
        found for path in package.rglob("*.py") for found in counts_with_a_plural(path)
    }
    assert found == SEVERAL_IN
