"""The table of assumptions."""

from sklearn_pate.accounting import _assumptions
from sklearn_pate.accounting._assumptions import (
    ASSUMPTIONS,
    NORM_READ,
    SEEDED,
    Assumption,
)

NAMED = {
    name: one for name, one in vars(_assumptions).items() if isinstance(one, Assumption)
}


def test_every_assumption_has_a_different_code():
    assert len(ASSUMPTIONS) == len(NAMED)
    assert {*ASSUMPTIONS.values()} == {*NAMED.values()}


def test_every_sentence_follows_that_and_is_stated_once():
    sentences = {one.sentence for one in ASSUMPTIONS.values()}
    assert len(sentences) == len(ASSUMPTIONS)
    assert not any(sentence.endswith(".") for sentence in sentences)


def test_only_assumptions_that_void_privacy_have_no_query():
    without_question = {one for one in ASSUMPTIONS.values() if not one.question}
    assert without_question == {SEEDED, NORM_READ}
