"""Files whose mechanism was forged, and mechanisms of users."""

import pytest
from sklearn.naive_bayes import GaussianNB

from sklearn_pate._cli._report_command import read_released
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.publication import PublishedClassifier, publish
from tests.publication.forging import (
    FITS,
    N_PARTIES,
    card_of,
    forge,
    number,
    refused,
    setting,
    vote,
)


@pytest.mark.parametrize("kind", FITS)
def test_another_mechanism_in_words_is_refused(honest, kind):
    path = honest(kind)
    forge(path, setting(mechanism="GNMax(sigma=1000.0)"))
    assert "its mechanism is GNMax(sigma=1000.0) in words, and" in refused(path)


@pytest.mark.parametrize("kind", FITS)
def test_another_kind_of_mechanism_is_refused(honest, kind):
    path = honest(kind)
    other = {"class": "GumbelMax", "parameters": {"c": 1e-4}}
    forge(path, setting(mechanism_fields=other, mechanism="GumbelMax(c=0.0001)"))
    assert refused(path)


MORE_NOISE = {
    "GNMax": ["sigma"],
    "ConfidentGNMax": ["sigma", "sigma_threshold"],
    "PETDL": ["noise_scale"],
    "Private-kNN": ["sigma"],
}


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in FITS for name in MORE_NOISE[kind]]
)
@pytest.mark.parametrize("in_words", [False, True])
def test_less_noise_than_the_cost_is_for_is_refused(honest, kind, name, in_words):
    path = honest(kind)
    words = card_of(path)["mechanism"]

    def change(card):
        number(name, 0.7)(card)
        if not in_words:
            card["mechanism"] = words

    forge(path, change)
    message = refused(path)
    assert ("its Renyi curve is" if in_words else "in numbers") in message


@pytest.mark.slow
@pytest.mark.parametrize("kind", FITS)
def test_more_noise_than_was_drawn_is_refused(honest, kind):
    path = honest(kind)
    forge(path, number(MORE_NOISE[kind][0], 500.0))
    assert "its statement in words differs" in refused(path)


def test_another_sampling_rate_is_refused(honest):
    path = honest("Private-kNN")
    forge(path, number("sampling_rate", 0.9))
    assert "its Renyi curve is" in refused(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("factor", [0.5, 3])
def test_another_number_of_queries_is_refused(honest, kind, factor):
    path = honest(kind)
    n_queries = int(card_of(path)["n_queries"] * factor)
    forge(path, setting(n_queries=n_queries))
    message = refused(path)
    if kind == "PETDL":
        assert (
            f"it states n_queries={n_queries}, and its mechanism has n_parts" in message
        )
    elif factor > 1:
        assert "its Renyi curve is" in message


def test_more_answers_than_were_paid_for_are_refused(honest):
    path = honest("ConfidentGNMax")
    forge(path, number("max_answers", 40))
    assert "its Renyi curve is" in refused(path)


@pytest.mark.parametrize("kind", FITS)
def test_another_number_of_teachers_is_refused(honest, kind):
    path = honest(kind)
    forge(path, setting(n_teachers=7))
    assert "its statement in words" in refused(path)


def test_the_teachers_that_are_counted_are_those_of_the_statement(honest):
    path = honest("InteractiveGNMax")
    forge(path, number("n_teachers", 10))
    assert f"it states n_teachers={N_PARTIES}, and its mechanism has" in refused(path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"class": "GNMax", "parameters": {}}, "has the parameters [] instead of"),
        ({"class": "GNMax"}, "must have the fields"),
        (
            {"class": "GNMax", "parameters": {"sigma": 8.0}, "audited": "by NIST"},
            "must have the fields 'class' and 'parameters' alone",
        ),
        ({"class": ["GNMax"], "parameters": {}}, "must have the fields"),
        ({"class": "GNMax", "parameters": {"sigma": "8"}}, "has sigma='8'"),
        ({"class": "GNMax", "parameters": {"sigma": True}}, "has sigma=True"),
        ({"class": "GNMax", "parameters": {"sigma": [8.0]}}, "has sigma=[8.0]"),
        ({"class": "GNMax", "parameters": {"sigma": -8.0}}, "sigma=-8.0"),
        ({"class": "GNMax", "parameters": {"sigma": None}}, "sigma=None"),
        ({"class": "GNMax", "parameters": {"sigma": 10**30}}, "has sigma=1000"),
        (
            {"class": "os.system", "parameters": {}},
            "os.system, is none of this package",
        ),
        ({"class": "eval", "parameters": {}}, "eval, is none of this package"),
    ],
)
def test_a_mechanism_that_is_none_is_refused(honest, fields, message):
    path = honest("GNMax")
    forge(path, setting(mechanism_fields=fields))
    assert message in refused(path)


# Mechanisms of users.


class Half(GNMax):
    """Claims half of what it costs."""

    def __init__(self, sigma=None, tag="", *, noise_seed=None):
        super().__init__(sigma, noise_seed=noise_seed)
        self.tag = tag

    def _cost(self, *args):
        return super()._cost(*args) * 0.5


NAME = f"{Half.__module__}.Half"


@pytest.fixture
def of_user(tmp_path):
    published = publish(vote(Half(sigma=8.0, tag="mine")))
    assert published.save(tmp_path / "model.skops") == [NAME]
    return tmp_path / "model.skops"


@pytest.mark.parametrize("trusted", [[Half], [NAME]], ids=["type", "name"])
def test_a_mechanism_of_a_user_is_read_if_trusted(of_user, trusted):
    with pytest.raises(ValueError, match=r"Half, is none of this package, so that its"):
        PublishedClassifier.load(of_user)
    with pytest.raises(ValueError, match=r"Half, is none of this package, so that its"):
        read_released(of_user)
    loaded = PublishedClassifier.load(of_user, trusted=trusted)
    assert loaded.privacy_spent_.mechanism == "Half(sigma=8.0, tag='mine')"


def test_its_cost_is_compared_with_that_of_its_class(of_user):
    forge(of_user, setting(epsilon=0.1))
    with pytest.raises(ValueError, match=r"it states epsilon=0\.1, and 40 queries"):
        PublishedClassifier.load(of_user, trusted=[Half])


def test_what_is_trusted_is_a_mechanism(of_user):
    wanted = {"class": "sklearn.naive_bayes.GaussianNB", "parameters": {}}
    forge(of_user, setting(mechanism_fields=wanted))
    with pytest.raises(ValueError, match=r"has the parameters|is no mechanism"):
        PublishedClassifier.load(of_user, trusted=[GaussianNB])


def test_a_mechanism_that_is_no_plain_value_cannot_be_saved(tmp_path):
    published = publish(vote(Half(sigma=8.0, tag=("a", "tuple"))))
    with pytest.raises(ValueError, match=r"Half, has parameters that are no plain"):
        published.save(tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []
