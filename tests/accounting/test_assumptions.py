"""The table of assumptions."""

import re

from sklearn_pate import DPNewtonClassifier, PATEClassifier
from sklearn_pate.accounting import Assumption
from tests.private import ASSUMPTIONS, NORM_READ, SEEDED, _statement

NAMED = {
    name: one for name, one in vars(_statement).items() if isinstance(one, Assumption)
}


def test_every_assumption_has_a_different_code():
    assert len(ASSUMPTIONS) == len(NAMED)
    assert {*ASSUMPTIONS.values()} == {*NAMED.values()}


def test_every_sentence_follows_that_and_is_stated_once():
    sentences = {one.sentence for one in ASSUMPTIONS.values()}
    assert len(sentences) == len(ASSUMPTIONS)
    assert not any(sentence.endswith(".") for sentence in sentences)


def test_a_signer_reads_short_sentences_without_names_of_parameters():
    parameters = {
        *(PATEClassifier().get_params() | DPNewtonClassifier().get_params()),
        *("X_public", "y", "X", "FrozenEstimator", "shard_of", "cast_votes"),
    }
    in_plain_words = {"student", "representation", "groups", "classes", "estimator"}
    parameters = {name for name in parameters if name not in in_plain_words}
    for one in ASSUMPTIONS.values():
        assert len(one.sentence.split()) <= 25
        for sentence in re.split(r"(?<=[.?:]) ", one.question):
            assert len(sentence.split()) <= 25, sentence
        words = re.findall(r"[\w=]+", f"{one.sentence} {one.question}")
        assert parameters.isdisjoint(words), one
        assert not any("=" in word for word in words)


def test_only_assumptions_that_void_privacy_have_no_query():
    without_question = {one for one in ASSUMPTIONS.values() if not one.question}
    assert without_question == {SEEDED, NORM_READ}
