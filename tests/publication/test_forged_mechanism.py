"""Files whose mechanism was forged, and mechanisms of users."""

import pytest
from sklearn.naive_bayes import GaussianNB

from sklearn_pate.mechanisms import GNMax
from sklearn_pate.publication import PublishedClassifier, publish
from tests.private import read_released
from tests.publication.forging import N_PARTIES, forge, number, refused, setting, vote


def test_more_answers_than_were_paid_for_are_refused(honest):
    path = honest("ConfidentGNMax")
    forge(path, number("max_answers", 40))
    assert refused(path).startswith("its epsilon is ")


def test_the_teachers_that_are_counted_are_those_of_the_statement(honest):
    path = honest("InteractiveGNMax")
    forge(path, number("n_teachers", N_PARTIES + 1))
    assert refused(path).startswith("its n_teachers is ") or "threshold" in refused(
        path
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"class": "GNMax", "parameters": {}}, "has the parameters [], but needs"),
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
            "os.system, is not in this package",
        ),
        ({"class": "eval", "parameters": {}}, "eval, is not in this package"),
    ],
)
def test_a_mechanism_that_is_none_is_refused(honest, fields, message):
    path = honest("GNMax")
    forge(path, setting(mechanism=fields))
    assert message in refused(path)


# Mechanisms of users.


class Half(GNMax):
    """Claims half of what it costs."""

    def __init__(self, sigma=None, tag=""):
        super().__init__(sigma)
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
    with pytest.raises(ValueError, match=r"Half, is not in this package, so that its"):
        PublishedClassifier.load(of_user)
    with pytest.raises(ValueError, match=r"Half, is not in this package, so that its"):
        read_released(of_user)
    loaded = PublishedClassifier.load(of_user, trusted=trusted)
    assert loaded.privacy_spent_.mechanism == "Half(sigma=8.0, tag='mine')"


def test_its_cost_is_compared_with_that_of_its_class(of_user):
    forge(of_user, setting(epsilon=0.1))
    with pytest.raises(ValueError, match=r"its epsilon is 0\.1, but "):
        PublishedClassifier.load(of_user, trusted=[Half])


def test_what_is_trusted_is_a_mechanism(of_user):
    wanted = {"class": "sklearn.naive_bayes.GaussianNB", "parameters": {}}
    forge(of_user, setting(mechanism=wanted))
    with pytest.raises(ValueError, match=r"has the parameters|is not a mechanism"):
        PublishedClassifier.load(of_user, trusted=[GaussianNB])


def test_a_mechanism_that_is_no_plain_value_cannot_be_saved(tmp_path):
    published = publish(vote(Half(sigma=8.0, tag=("a", "tuple"))))
    with pytest.raises(ValueError, match=r"Half, has parameters that are not plain"):
        published.save(tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []
