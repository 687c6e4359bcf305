import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from sklearn_pate import PATEClassifier, PrivacyLedger, PrivateMarginals
from sklearn_pate.exceptions import BudgetExceededError
from tests._synthetic.containers import NUMBERS, TABLES, Y
from tests._synthetic.odd_cells import ODD, column_of
from tests.cases import thorough_but

SMALL = {"n_teachers": 5, "n_queries": 40, "mechanism": "gnmax", "random_state": 0}


def make(domain, **parameters):
    synthetic = PrivateMarginals(domain, n_rows=200, n_bins=8)
    return PATEClassifier(
        **(SMALL | {"synthetic": synthetic, "epsilon": 500}), **parameters
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", [one for one in TABLES if "equal" not in one])
def test_a_table_of_any_container_is_learned_from_without_public_rows(name):
    X, domain = TABLES[name]()
    pate = make(domain).fit(X, Y)
    assert len(pate.predict(X)) == len(Y)
    assert all(len(table) == 2 for table in pate.marginals_.values())
    if "str" not in name and "object" not in name:
        assert pate.score(X, Y) > 0.75


@pytest.mark.slow
def test_tables_are_by_the_name_of_their_column():
    X = pd.DataFrame(NUMBERS, columns=["age", "pay"])
    pate = make({"age": (0, 9), "pay": (0, 10)}, estimator=LogisticRegression())
    assert set(pate.fit(X, Y).marginals_) == {"age", "pay"}


WRONG = {
    "share is 0": ({"share": 0}, r"share=0 must be a number strictly between 0 and 1"),
    "share is 1": ({"share": 1}, r"share=1 must be a number strictly between 0 and 1"),
    "share is text": ({"share": "x"}, r"share='x' must be a number strictly between"),
    "share is NaN": ({"share": np.nan}, r"share=nan must be a number strictly"),
    "one row": ({"n_rows": 1}, r"n_rows=1 must be a whole number of at least 2"),
    "a fraction of rows": ({"n_rows": 0.5}, r"n_rows=0.5 must be a whole number"),
    "one bin": ({"n_bins": 1}, r"n_bins=1 must be a whole number of at least 2"),
    "by_class": ({"by_class": "yes"}, r"by_class='yes' must be True or False"),
    "sigma": ({"sigma": -1}, r"sigma=-1 must be a positive, finite number"),
    "two kinds of noise": ({"sigma": 9}, r"sigma=9\) both set the noise on counts"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_parameter_is_refused(name):
    parameters, message = WRONG[name]
    synthetic = PrivateMarginals((0, 10), **parameters)
    pate = PATEClassifier(**SMALL, synthetic=synthetic)
    with pytest.raises(ValueError, match=message):
        pate.plan_privacy(NUMBERS, Y)
    if "both" not in message:
        with pytest.raises(ValueError, match=message):
            synthetic.draw_uniform(NUMBERS)


@pytest.mark.parametrize(
    "other", ["marginals", (0, 10), {0: (0, 10)}, PrivateMarginals]
)
def test_synthetic_rows_are_described_by_private_marginals_alone(other):
    pate = PATEClassifier(**SMALL, synthetic=other)
    message = rf"synthetic is of type {type(other).__name__}; pass PrivateMarginals"
    with pytest.raises(ValueError, match=message):
        pate.plan_privacy(NUMBERS, Y)


def test_public_rows_have_one_source():
    pate = make((0, 10))
    with pytest.raises(ValueError, match="X_public and synthetic were both given"):
        pate.plan_privacy(NUMBERS, Y, X_public=NUMBERS[:9])
    with pytest.raises(ValueError, match=r"public_size=0.2 and synthetic were both"):
        pate.set_params(public_size=0.2).plan_privacy(NUMBERS, Y)


class Lenient(DummyClassifier):
    """Accepts any values."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def outcome(pate, X, y):
    """Return the error and the warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            pate.fit(X, y)
        except (BudgetExceededError, ValueError, TypeError) as error:
            return type(error), str(error), [str(one.message) for one in caught]
    return None


DOMAINS = {
    "numbers": {0: (0, 4), 1: {"edges": [0, 1, 9], "missing": True}},
    "values": {0: [0, 2, 0.5], 1: [1, 2, None]},
    "text": {0: ["a", "b"], 1: ["a", None]},
    "bools": {0: [True, False, None], 1: (0, 4)},
}
odd_rows = st.lists(
    st.tuples(*[st.integers(0, len(ODD) - 1)] * 2), min_size=12, max_size=12
)


@pytest.fixture(scope="module")
def full_ledger(tmp_path_factory):
    """A ledger whose budget is too small for one fit."""
    path = tmp_path_factory.mktemp("ledger") / "full.sqlite"
    return PrivacyLedger(path, epsilon=0.1, delta=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("frame", [False, True])
@pytest.mark.parametrize("name", thorough_but(["numbers", "text"], DOMAINS))
@settings(max_examples=6)
@given(rows=odd_rows)
def test_no_value_decides_whether_a_fit_raises_or_warns_before_its_release(
    name, frame, rows, full_ledger
):
    plain = np.full((12, 2), 2, dtype=object)
    odd = np.stack(
        [column_of([ODD[k] for k in one]) for one in zip(*rows, strict=True)], 1
    )
    pate = PATEClassifier(
        Lenient(),
        student=Lenient(),
        representation=None,
        n_teachers=3,
        n_queries=10,
        mechanism="gnmax",
        synthetic=PrivateMarginals(DOMAINS[name], n_rows=50),
        ledger=full_ledger,
        random_state=0,
    )
    y = np.arange(12) % 2
    first, second = (
        outcome(pate, pd.DataFrame(one) if frame else one, y) for one in (plain, odd)
    )
    assert first[0] is BudgetExceededError
    assert first == second
