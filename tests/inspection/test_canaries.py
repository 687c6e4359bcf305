import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from sklearn_pate import PATEClassifier, PrivacyLedger
from sklearn_pate._aggregation._rows import PrivateInputs
from sklearn_pate.inspection import audit_canaries
from sklearn_pate.inspection._audit_result import bound_from_guesses, guesses_p_value
from sklearn_pate.mechanisms import ConfidentGNMax, GNMax


def make(teacher=None, **parameters):
    defaults = {"n_teachers": 100, "epsilon": 1.0, "query_strategy": "random"}
    # The audit looks at answers, not at what a student makes of them.
    return PATEClassifier(
        KNeighborsClassifier(1) if teacher is None else teacher,
        DummyClassifier(),
        **(defaults | parameters),
    )


def canaries(n_rows, n_canaries):
    """Other rows at random, so that other teachers are divided at every canary."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n_rows, 2))
    return X, rng.integers(2, size=n_rows), rng.uniform(-1, 1, size=(n_canaries, 2))


# The statistics of guesses


def test_the_p_value_is_that_of_the_paper():
    # 90 of 100 guesses, claimed epsilon ln 4, delta 0: Pr[Binomial(100, 0.8) >= 90].
    arguments = {"n_guesses": 100, "n_canaries": 200, "epsilon": np.log(4)}
    pure = guesses_p_value(90, delta=0.0, **arguments)
    assert pure == pytest.approx(binom.sf(89, 100, 0.8))
    # The published code, term by term.
    largest, below = 0.0, 0.0
    for i in range(1, 91):
        below += binom.pmf(90 - i, 100, 0.8)
        largest = max(largest, below / i)
    assert guesses_p_value(90, delta=1e-3, **arguments) == pytest.approx(
        pure + largest * 1e-3 * 2 * 200
    )


@pytest.mark.slow
@given(
    st.integers(1, 200).flatmap(lambda r: st.tuples(st.integers(0, r), st.just(r))),
    st.floats(0, 8),
    st.floats(0, 1),
    st.sampled_from([0.0, 1e-5]),
)
def test_a_larger_claim_is_never_harder_to_believe(guesses, epsilon, more, delta):
    n_correct, n_guesses = guesses
    small, large = (
        guesses_p_value(
            n_correct,
            n_guesses=n_guesses,
            n_canaries=n_guesses,
            epsilon=claimed,
            delta=delta,
        )
        for claimed in (epsilon, epsilon + more)
    )
    # Where the second term matters, neither is small enough to contradict anything.
    assert small <= large + 1e-9 or min(small, large) > 0.4


@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_guesses_contradict_a_tight_claim_no_more_often_than_stated(delta):
    # Randomized response on each bit, which is released with probability delta.
    rng = np.random.default_rng(0)
    n_audits, n_bits, confidence = 2000, 200, 0.9
    told = delta + (1 - delta) / (1 + np.exp(-1))
    n_correct, n_times = np.unique(
        rng.binomial(n_bits, told, size=n_audits), return_counts=True
    )
    bounds = [
        bound_from_guesses(
            correct,
            n_guesses=n_bits,
            n_canaries=n_bits,
            delta=delta,
            confidence=confidence,
        )
        for correct in n_correct
    ]
    n_contradicted = n_times[np.array(bounds) > 1].sum()
    assert n_contradicted <= binom.isf(1e-6, n_audits, 1 - confidence)


def test_the_bound_is_where_the_p_value_reaches_the_error_probability():
    arguments = {"n_guesses": 500, "n_canaries": 500, "delta": 1e-5}
    bound = bound_from_guesses(480, confidence=0.99, **arguments)
    assert guesses_p_value(480, epsilon=bound, **arguments) == pytest.approx(
        0.01, rel=1e-3
    )
    assert bound_from_guesses(250, confidence=0.99, **arguments) == 0


# Canaries


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["gnmax", "histogram"])
def test_canaries_do_not_contradict_the_package(mechanism):
    X, y, X_canaries = canaries(400, 100)
    result = audit_canaries(
        make(mechanism=mechanism),
        X,
        y,
        X_canaries=X_canaries,
        labels=(0, 1),
        n_guesses=50,
    )
    assert not result.contradicted
    assert 0.99 < result.epsilon_claimed <= 1
    assert result.delta == 1e-5
    assert "of 50 guesses of 100 bits" in str(result)


def test_what_an_audit_fits_is_not_charged(tmp_path):
    ledger = PrivacyLedger(tmp_path / "patients.sqlite", epsilon=3, delta=1e-6)
    X, y, X_canaries = canaries(100, 20)
    pate = make(n_teachers=10, ledger=ledger, random_state=0)
    audit_canaries(pate, X, y, X_canaries=X_canaries, labels=(0, 1))
    assert ledger.entries() == []


def test_canaries_are_seen_where_there_is_next_to_no_noise():
    X, y, X_canaries = canaries(50, 300)
    pate = make(n_teachers=1, epsilon=None, mechanism=GNMax(sigma=0.5))
    result = audit_canaries(pate, X, y, X_canaries=X_canaries, labels=(0, 1))
    assert 0.5 < result.epsilon_lower < result.epsilon_claimed


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["gnmax", "histogram"])
def test_a_teacher_that_gets_all_rows_is_found(monkeypatch, mechanism):
    monkeypatch.setattr(
        PrivateInputs,
        "shards",
        lambda private, n_teachers, key: [np.arange(private.n_rows)] * n_teachers,
    )
    X, y, X_canaries = canaries(400, 100)
    result = audit_canaries(
        make(n_teachers=250, mechanism=mechanism),
        X,
        y,
        X_canaries=X_canaries,
        labels=(0, 1),
    )
    assert result.contradicted
    assert "contradicts the claim of epsilon=1.000" in str(result)


@pytest.mark.slow
@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame, sp.csr_array])
def test_canaries_in_frames_and_sparse_rows_with_string_labels(container):
    X, y, X_canaries = canaries(60, 20)
    result = audit_canaries(
        make(LogisticRegression(), n_teachers=5, classes=["a", "bb", "never"]),
        container(X),
        np.array(["a", "bb"])[y],
        X_canaries=container(X_canaries),
        X_public=container(X_canaries[:5] + 1),
        labels=("bb", "a"),
        random_state=0,
    )
    assert not result.contradicted


def test_canaries_without_an_answer_are_guessed_by_a_coin():
    X, y, X_canaries = canaries(60, 200)
    nobody_answers = ConfidentGNMax(1000, 1, 1)
    pate = make(n_teachers=5, epsilon=None, mechanism=nobody_answers)
    result = audit_canaries(pate, X, y, X_canaries=X_canaries, labels=(0, 1))
    n_correct = int(result.evidence.split()[0])
    assert binom.cdf(n_correct, 200, 0.5) > 1e-6 < binom.sf(n_correct - 1, 200, 0.5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"estimator": LogisticRegression()}, "cannot state its cost beforehand"),
        ({"estimator": make(privacy_unit="group")}, "privacy_unit='group'"),
        ({"labels": (0, 0)}, "labels="),
        ({"labels": (0, 7)}, "labels="),
        ({"n_guesses": 21}, "n_guesses=21"),
        ({"n_guesses": 0}, "n_guesses=0"),
        ({"confidence": 0.3}, "confidence=0.3"),
    ],
)
def test_canaries_that_cannot_work_are_refused(changed, message):
    X, y, X_canaries = canaries(160, 20)
    arguments = {"estimator": make(), "X": X, "y": y, "X_canaries": X_canaries}
    with pytest.raises(ValueError, match=message):
        audit_canaries(**(arguments | {"labels": (0, 1)} | changed))
