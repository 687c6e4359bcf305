"""A plan before any data: exactly what the fit states, and never too hopeful."""

import json
import pickle
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivacyLeakWarning,
    PublicData,
)
from sklearn_pate.inspection import plan
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    LNMax,
    NoisyHistogram,
    PermuteAndFlip,
)
from sklearn_pate.students import DistillationClassifier
from sklearn_pate.testing import seeded_noise
from tests.accounting.oracles import exact_law

MARGINS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
STATED = ("epsilon", "delta", "mechanism", "unit", "relation", "neighbours")
STATED += ("n_teachers", "n_queries")
MECHANISMS = [
    ("gnmax", 2.0),
    ("gumbel", 2.0),
    ("permute-and-flip", 0.5),
    ("confident", 2.0),
    (LNMax(gamma=0.1), None),
    (ConfidentGNMax(0.6, 9.0, 4.0, max_answers=7), None),
]
# Noise of a few votes, whose law the oracle sums up.
LAWS = {
    "gaussian": (GNMax(sigma=2.5), 2.5),
    "laplace": (LNMax(gamma=0.4), 0.4),
    "gumbel": (GumbelMax(c=0.5), 0.5),
    "flip": (PermuteAndFlip(c=0.5), 0.5),
}
by_law = pytest.mark.parametrize("kind", LAWS)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(900, 2)), np.arange(900) % 3, np.eye(40, 2)


def of_numbers(*, margins=MARGINS, n_rows=None, n_classes=None, **parameters):
    pate = PATEClassifier(**parameters)
    return plan(pate, n_rows=n_rows, n_classes=n_classes, margins=margins)


def of_seven(**changes):
    parameters = {"n_teachers": 7, "n_queries": 5, "mechanism": GNMax(sigma=2.5)}
    return of_numbers(**(parameters | {"epsilon": None} | changes))


def all_votes(n_teachers, n_classes, *, abstaining):
    """Every way to vote on a query with class 0 in front, and its lead."""
    for counts in product(range(n_teachers + 1), repeat=n_classes):
        lead = counts[0] - max(counts[1:])
        n_votes = sum(counts)
        if lead > 0 and (
            n_votes == n_teachers or (abstaining and n_votes < n_teachers)
        ):
            yield list(counts), lead


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "epsilon"), MECHANISMS)
def test_a_fit_states_what_was_planned(rows, mechanism, epsilon):
    X, y, X_public = rows
    parameters = {
        "mechanism": mechanism,
        "n_queries": 30,
        "epsilon": epsilon,
        "delta": 1e-4,
    }
    pate = PATEClassifier(GaussianNB(), **parameters)
    spent = pate.plan_privacy(X, y, X_public=PublicData(X_public))
    found = of_numbers(n_rows=900, n_classes=3, **parameters)
    for fact in STATED:
        assert getattr(found, fact) == getattr(spent, fact), fact
    of_data = plan(pate, X, y, X_public=PublicData(X_public))
    assert replace(of_data, assumptions=()) == found


@pytest.mark.thorough
def test_a_plan_from_data_may_be_published_under_the_assumptions_of_the_fit(rows):
    X, y, X_public = rows
    pate = PATEClassifier(n_queries=30)
    found = plan(pate, X, y, X_public=PublicData(X_public))
    spent = pate.plan_privacy(X, y, X_public=PublicData(X_public))
    assert found.assumptions == spent.assumptions
    text = " ".join(str(found).split())
    assert (
        "may be published if all of these are true: - The set of labels, which" in text
    )
    assert "depends on no private value" not in text
    first = json.loads(json.dumps(found.to_dict()))["assumptions"][0]
    assert first["sentence"].removeprefix("the ") in text


def test_a_plan_with_more_teachers_than_rows_or_groups_is_refused_as_the_fit_is(rows):
    X, y, X_public = rows
    pate = PATEClassifier(n_teachers=901, n_queries=5)
    with pytest.raises(
        ValueError, match="n_teachers=901 is more than the number of private"
    ):
        plan(pate, X, y, X_public=PublicData(X_public))
    pate.set_params(n_teachers=91, privacy_unit="group")
    grouped = {"X_public": PublicData(X_public), "groups": np.arange(900) // 10}
    with pytest.raises(ValueError, match="n_teachers=91 is more than the 90 groups"):
        pate.plan_privacy(X, y, **grouped)


@pytest.mark.slow
def test_a_plan_of_histograms_is_that_of_their_largest_counts(rows):
    X, y, X_public = rows
    pate = PATEClassifier(n_queries=30, epsilon=None, mechanism=GNMax(sigma=9))
    answers = plan(pate, X, y, X_public=PublicData(X_public))
    pate.set_params(mechanism=NoisyHistogram(sigma=9), student=DistillationClassifier())
    histograms = plan(pate, X, y, X_public=PublicData(X_public))
    assert histograms.mechanism == "NoisyHistogram(sigma=9)"
    assert histograms.at_margins == answers.at_margins


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:public_size:sklearn_pate.PublicDataWarning")
def test_a_plan_of_public_rows_held_out_counts_the_others(rows):
    pate = PATEClassifier(n_queries=30, public_size=0.1)
    assert plan(pate, *rows[:2]).n_rows == 810


@pytest.mark.slow
def test_the_plan_of_an_interactive_fit_is_refused(rows):
    X, y, X_public = rows
    pate = PATEClassifier(mechanism="interactive", n_queries=30)
    with pytest.raises(ValueError, match="not known before a fit; plan with"):
        plan(pate, X, y, X_public=PublicData(X_public))


@pytest.mark.slow
def test_a_fit_on_groups_states_what_was_planned():
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.arange(90) % 2
    pate = PATEClassifier(
        GaussianNB(), n_teachers=12, n_queries=9, privacy_unit="group"
    )
    rest = {"groups": np.arange(90) // 2, "X_public": PublicData(X[:20].copy())}
    spent = pate.plan_privacy(X, y, **rest)
    found = of_numbers(n_teachers=12, n_queries=9, privacy_unit="group")
    for fact in STATED:
        assert getattr(found, fact) == getattr(spent, fact), fact
    assert replace(plan(pate, X, y, **rest), assumptions=()) == found


@pytest.mark.slow
@by_law
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_votes_with_a_lead_have_fewer_right_answers(kind, n_classes):
    mechanism, scale = LAWS[kind]
    found = of_seven(
        mechanism=mechanism, n_classes=n_classes, margins=np.arange(1, 8) / 7
    ).at_margins
    assert [one.lead for one in found] == [1, 2, 3, 4, 5, 6, 7]
    worst = dict.fromkeys(range(1, 8), 1.0)
    for counts, lead in all_votes(7, n_classes, abstaining=True):
        right = float(exact_law(kind, scale, counts)[0])
        for smaller in range(1, lead + 1):
            worst[smaller] = min(worst[smaller], right)
    # Not only a bound: some votes are as bad.
    assert [one.right for one in found] == pytest.approx(list(worst.values()), rel=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_no_votes_of_all_teachers_with_a_lead_have_fewer_answers(n_classes):
    mechanism = ConfidentGNMax(threshold=4, sigma_threshold=2, sigma=2.5)
    found = of_seven(
        mechanism=mechanism, n_classes=n_classes, margins=np.arange(1, 8) / 7
    ).at_margins
    fewest = dict.fromkeys(range(1, 8), 7)
    for counts, lead in all_votes(7, n_classes, abstaining=False):
        for smaller in range(1, lead + 1):
            fewest[smaller] = min(fewest[smaller], counts[0])
    # Pr[n + Z >= 4], Z discrete Gaussian.
    z = np.arange(-60, 61)
    mass = np.exp(-(z**2) / 8) / np.exp(-(z**2) / 8).sum()
    passing = [mass[n + z >= 4].sum() for n in fewest.values()]
    assert [one.answered for one in found] == pytest.approx(passing, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", [mechanism for mechanism, _ in LAWS.values()], ids=LAWS
)
def test_answers_are_right_as_often_as_planned(mechanism):
    (found,) = of_seven(
        mechanism=mechanism, n_teachers=20, n_classes=4, margins=[0.2]
    ).at_margins
    n_asked = 20_000
    answers = mechanism.answer([[8, 4, 4, 4]] * n_asked)
    n_right = np.count_nonzero(answers == 0)
    assert binom.cdf(n_right, n_asked, found.right) > 1e-7
    assert binom.sf(n_right - 1, n_asked, found.right) > 1e-7
    assert found.answered == 1


def test_a_check_answers_as_many_queries_as_planned():
    mechanism = ConfidentGNMax(threshold=9, sigma_threshold=3.0, sigma=2.0)
    (found,) = of_seven(
        mechanism=mechanism, n_teachers=20, n_classes=4, margins=[0.2]
    ).at_margins
    n_asked = 20_000
    answers = mechanism.answer([[8, 4, 4, 4]] * n_asked)
    n_answered = np.count_nonzero(answers >= 0)
    n_right = np.count_nonzero(answers == 0)
    for seen, trials, share in (
        (n_answered, n_asked, found.answered),
        (n_right, n_answered, found.right),
    ):
        assert binom.cdf(seen, trials, share) > 1e-7
        assert binom.sf(seen - 1, trials, share) > 1e-7


@pytest.mark.slow
@by_law
def test_the_margins_that_are_needed_are_the_smallest(kind):
    mechanism, _ = LAWS[kind]
    n_teachers = 40
    found = of_seven(
        mechanism=mechanism,
        n_teachers=n_teachers,
        n_classes=3,
        margins=np.arange(1, 41) / 40,
    )
    for share, margin in ((0.9, found.margin_for_90), (0.99, found.margin_for_99)):
        enough = [one.margin for one in found.at_margins if one.right >= share]
        assert margin == enough[0]


def test_there_is_no_margin_where_even_agreement_drowns():
    found = of_seven(mechanism=GNMax(sigma=4.0))
    assert found.at_margins[-1].right < 0.9
    assert found.margin_for_90 is None
    assert found.margin_for_99 is None
    assert "Fewer than 90 % of the answers are right even if" in str(found)


@pytest.mark.parametrize(("margin", "lead"), [(0.07, 7), (0.071, 8), (1, 100)])
def test_a_margin_is_a_share_as_it_is_written(margin, lead):
    # 0.07 * 100 is a bit more than 7 in floating point.
    assert of_seven(n_teachers=100, margins=[margin]).at_margins[0].lead == lead


def test_one_query_costs_less_than_all():
    found = of_seven(n_queries=50)
    alone = of_seven(n_queries=1)
    assert found.epsilon_of_one == alone.epsilon == alone.epsilon_of_one
    assert found.epsilon < 50 * found.epsilon_of_one


# What is worth knowing before


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({"n_rows": 700, "delta": 0.01}, r"delta=0.01 is not below 1 / n_rows = 1 / 7"),
        ({"n_rows": 70}, "Each teacher learns from only about 10 rows; use fewer"),
        ({"mechanism": GNMax(sigma=9.0)}, "The noise of GNMax(sigma=9.0) is too large"),
        ({"mechanism": ConfidentGNMax(4, 9.0, 1.0)}, "is too large for 7 teachers"),
    ],
)
def test_a_plan_warns_of(changes, warning):
    (found,) = of_seven(**({"mechanism": GNMax(sigma=1.0)} | changes)).warnings
    assert warning in found


@pytest.mark.slow
def test_a_good_plan_has_no_warnings():
    assert of_numbers(n_rows=30_000, n_queries=100).warnings == ()


@pytest.mark.slow
def test_the_plan_of_seeded_noise_has_no_finite_epsilon(rows):
    X, y, X_public = rows
    with seeded_noise(123456):
        found = plan(PATEClassifier(n_queries=5), X, y, X_public=PublicData(X_public))
    assert found.epsilon == np.inf
    assert "123456" not in str(found) + str(found.to_dict())
    assert "There is no privacy: the noise was" in " ".join(found.warnings)


@pytest.mark.filterwarnings("error", category=PrivacyLeakWarning)
def test_a_plan_warns_of_a_large_delta_in_its_text_only():
    assert "not below 1 / n_rows" in str(of_seven(n_rows=700, delta=0.01))


# How it is shown


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"n_rows": 90_000, "mechanism": "confident"}])
def test_a_plan_fits_a_terminal(changes):
    found = of_numbers(**({"n_teachers": 250, "n_queries": 100} | changes))
    text = str(found)
    assert max(map(len, text.splitlines())) <= 80
    assert text.isascii()
    assert found.mechanism in " ".join(text.split())
    assert ("answered" in text) == ("mechanism" in changes)


def test_a_plan_never_rounds_in_its_own_favour():
    found = of_seven(mechanism=GNMax(sigma=2.5), n_teachers=100, margins=[0.14])
    assert 0.9999 < found.at_margins[0].right < 0.99999
    assert "99.9 %" in str(found)
    assert "100.0 %" not in str(found)


def test_a_plan_can_be_written_as_strict_json():
    found = of_numbers(n_rows=np.int64(900), n_queries=np.int64(9), margins=(0.5,))
    again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert again["n_teachers"] == 30
    assert again["rows_per_teacher"] == 30.0
    assert again["at_margins"][0]["right"] == found.at_margins[0].right


GROUPS = {"privacy_unit": "group"}
UNKNOWN = {"n_teachers": "auto"}
SHARES = "must be shares of the teachers, above 0 and at most 1"
WRONG = [
    (UNKNOWN, "n_teachers='auto' is the square root of .*; pass n_rows, or n_teachers"),
    (
        UNKNOWN | GROUPS,
        "n_teachers='auto' depends on the number of rows, which is private",
    ),
    (UNKNOWN | GROUPS | {"n_rows": 900}, "n_rows=900 is private .*; leave n_rows out"),
    ({"n_rows": 900} | GROUPS, "n_rows=900 is private if a group is the unit"),
    ({"n_rows": 6}, "n_teachers=7 is more than n_rows=6; lower n_teachers"),
    ({"n_rows": 0}, "n_rows=0 must be a whole number of at least 1"),
    ({"n_rows": -5, "n_queries": "auto"}, "n_rows=-5 must be a whole number"),
    ({"n_rows": 9e3}, "n_rows=9000.0 must be a whole number"),
    ({"n_teachers": 0}, "n_teachers=0 must be"),
    ({"n_queries": 0}, "n_queries=0 must be"),
    ({"n_queries": "all"}, "n_queries='all' must be"),
    ({"n_classes": 1}, "n_classes=1 must be a whole number of at least 2"),
    ({"mechanism": "gnmax"}, "GNMax has sigma=None; set sigma"),
    ({"epsilon": 1.0}, r"epsilon=1.0 and GNMax\(sigma=2.5\) both set the noise"),
    ({"epsilon": -1.0}, "epsilon=-1.0 must be a positive"),
    ({"delta": 1}, "delta=1 must be a number strictly between 0 and 0.1"),
    ({"mechanism": "gaussian"}, "mechanism='gaussian' is unknown; use one of"),
    (
        {"mechanism": "interactive", "epsilon": 1.0},
        "before a fit; plan with mechanism=",
    ),
    ({"privacy_unit": "patient"}, "privacy_unit='patient' is unknown"),
    ({"margins": ()}, rf"margins=\(\) {SHARES}"),
    ({"margins": [0.0]}, rf"margins=\[0.0\] {SHARES}"),
    ({"margins": [0.2, 1.1]}, rf"margins=\[0.2, 1.1\] {SHARES}"),
    ({"margins": 0.5}, rf"margins=0.5 {SHARES}"),
    ({"margins": ["wide"]}, rf"margins=\['wide'\] {SHARES}"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_wrong_plans(changes, message):
    with pytest.raises(ValueError, match=message) as caught:
        of_seven(**changes)
    assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize("prior", [0.02, [0.98, 0.02]])
@pytest.mark.parametrize("learner", [PATEClassifier(), DPNewtonClassifier()])
def test_mean_scores_and_newton_steps_that_lose_a_rare_class_warn(prior, learner):
    def warned(n_rows, **more):
        return plan(learner, n_rows=n_rows, **more).warnings

    assert warned(1200) == warned(1200, class_prior=0.5) == ()
    [why] = warned(1200, class_prior=prior)
    assert "the rarest class, with a share of 0.02" in why
    assert warned(50_000, class_prior=prior) == ()


def test_teachers_of_mean_scores_may_have_few_rows():
    found = of_numbers(n_rows=1200)
    assert not hasattr(found, "n_queries")
    assert found.rows_per_teacher < 20
    assert found.warnings == ()


X = np.zeros((30, 2))


@pytest.mark.parametrize(
    ("learner", "given", "message"),
    [
        (DPNewtonClassifier(), {}, "n_rows=None, but a DPNewtonClassifier"),
        (
            DPNewtonClassifier(privacy_unit="group", n_groups=90),
            {"n_rows": 90},
            "n_rows=90 is private .*; leave n_rows out, and set n_groups",
        ),
        (
            DPNewtonClassifier(threshold=0.3),
            {"n_rows": 900, "n_classes": 3},
            "threshold=0.3 is for two classes",
        ),
        (PATEClassifier(), {"X": X}, "y=None, but X is given; pass the labels"),
        (PATEClassifier(), {"y": X[:, 0]}, "y is given without X; pass X and y, or"),
        (
            PATEClassifier(),
            {"X": X, "y": X[:, 0], "n_rows": 30},
            "n_rows=30 is for a plan without data, but X is given; leave it out",
        ),
        (GridSearchCV(PATEClassifier(), {}), {"n_rows": 30}, "planned from its data"),
    ],
)
def test_a_plan_is_from_data_or_from_numbers(learner, given, message):
    with pytest.raises(ValueError, match=message):
        plan(learner, **given)


def test_a_plan_takes_the_number_of_declared_classes_and_of_held_out_rows():
    assert plan(PATEClassifier(classes=range(5)), n_rows=900).n_classes == 5
    assert plan(PATEClassifier(public_size=0.1), n_rows=900).n_rows == 810


def test_a_fact_that_does_not_apply_is_absent_and_a_plan_can_be_pickled():
    found = of_numbers(n_rows=1200)
    with pytest.raises(AttributeError, match="This plan has no at_margins"):
        _ = found.at_margins
    assert {"epsilon", "n_teachers", "n_coordinates"} <= set(dir(found))
    assert pickle.loads(pickle.dumps(found)) == found
