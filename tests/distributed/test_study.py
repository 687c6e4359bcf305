"""Tests of fits over several sites: sums, masks, ledgers, requests, wrong input."""

import base64
import contextlib
import json
import re
import shutil
import sqlite3

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import stats
from sklearn.datasets import make_blobs
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import (
    BudgetExceededError,
    DPNewtonClassifier,
    PATEClassifier,
    PrivacyLedger,
    PublishedClassifier,
)
from sklearn_pate.distributed import Collector, Site, Study
from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.learners import DPLogisticRegression
from sklearn_pate.metrics import OutcomeMetrics, PrivateMetrics, private_metrics
from sklearn_pate.outcomes import BinnedRegressor, DiscreteSurvival
from sklearn_pate.students import UncertaintyQueries
from tests.private import NoiseSource, SharedNoise, checked_statements, shared_release

NAMES = ["north", "south", "east"]
PARTS = {"north": slice(0, 1500), "south": slice(1500, 2000), "east": slice(2000, 3000)}
NEWTON = DPNewtonClassifier(classes=[0, 1], random_state=0)
VOTES = PATEClassifier(
    GaussianNB(),
    mechanism="histogram",
    n_teachers=60,
    n_queries=100,
    classes=[0, 1],
    random_state=0,
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::sklearn_pate.PrivacyUtilityWarning",
        "ignore::sklearn_pate.PublicDataWarning",
    ),
]


@pytest.fixture(scope="module")
def rows():
    X, y = make_blobs(3800, centers=2, cluster_std=3.0, random_state=0)
    return X[:3000], y[:3000], X[3000:3400], X[3400:], y[3400:]


def study_of(rows, estimator=NEWTON, **changed):
    given = {"sites": NAMES, "n_rows": 3000} | changed
    return Study(estimator, rows[2], **given)


def ledger_at(folder, name, epsilon=1.0):
    return PrivacyLedger(folder / f"{name}.sqlite", epsilon=epsilon, delta=1e-5)


def sites_of(study, rows, folder, parts=PARTS, **columns):
    X, y, *_ = rows
    return {
        name: Site(
            study,
            name,
            X[part],
            y[part],
            ledger=ledger_at(folder, name),
            **{key: values[part] for key, values in columns.items()},
        )
        for name, part in parts.items()
    }


def collector_of(study, sites):
    keys = {name: site.public_key for name, site in sites.items()}
    return Collector(study, keys)


def one_round(collector, sites):
    """Send the next request to all sites, and add up their replies."""
    request = collector.request()
    collector.add([one.reply(request, collector.fingerprint) for one in sites.values()])
    return request


def run(study, sites):
    collector = collector_of(study, sites)
    while collector.request() is not None:
        one_round(collector, sites)
    return collector


def numbers_of(reply):
    """Return the masked numbers of a reply, but for the last, which is a check."""
    return np.frombuffer(base64.b64decode(json.loads(reply)["masked"]), dtype="<u8")[
        :-1
    ]


@pytest.mark.parametrize(
    "estimator",
    [NEWTON, VOTES, PATEClassifier(classes=[0, 1], random_state=0)],
    ids=["newton", "votes", "scores"],
)
def test_a_model_over_sites_is_as_good_as_a_pooled_one(rows, tmp_path, estimator):
    study = study_of(rows, estimator)
    model = run(study, sites_of(study, rows, tmp_path)).result()
    X, y, X_public, *test = rows
    pooled = estimator.fit(X, y, X_public=X_public)
    assert model.score(*test) > pooled.score(*test) - 0.08
    assert model.privacy_spent_ == study.privacy_spent
    assert 0.99 < model.privacy_spent_.epsilon <= 1
    assert isinstance(model.mechanism_, SharedNoise)
    assert shared_release() is None


def test_adult_over_five_sites(data_set, tmp_path):
    X, y = data_set("adult", as_frame=True, return_X_y=True)
    n_rows, names = 30_000, ["a", "b", "c", "d", "e"]
    newton = DPNewtonClassifier(classes=np.unique(y), random_state=0)
    study = Study(newton, X[30_000:33_000], sites=names, n_rows=n_rows)
    assert study.n_colluding == 2
    ends = [0, 12_000, 21_000, 25_500, 28_500, 30_000]
    parts = {name: slice(*ends[k : k + 2]) for k, name in enumerate(names)}
    model = run(study, sites_of(study, (X, y), tmp_path, parts)).result()
    assert model.score(X[33_000:], y[33_000:]) > 0.83
    pooled = newton.fit(X[:n_rows], y[:n_rows], X_public=X[30_000:33_000])
    wider = model.mechanism_.mechanism.noise_scale / pooled.mechanism_.noise_scale
    assert wider == pytest.approx(np.sqrt(5 / 3), rel=1e-5)


@pytest.fixture
def no_noise(monkeypatch):
    def zeros(noise, sigma, shape):
        return np.zeros(shape, dtype=np.int64)

    monkeypatch.setattr(NoiseSource, "discrete_gaussian", zeros)


@pytest.mark.usefixtures("no_noise")
def test_sums_do_not_depend_on_which_site_has_a_row(rows, tmp_path):
    # Two sites, one of them counted, and four sites, two of them counted, have the same
    # noise in all, so that only the sums could differ.
    found = []
    for names, n_colluding in ((["a", "b"], 1), (["a", "b", "c", "d"], 2)):
        folder = tmp_path / str(n_colluding)
        folder.mkdir()
        study = study_of(rows, sites=names, n_colluding=n_colluding)
        size = 3000 // len(names)
        parts = {name: slice(k * size, (k + 1) * size) for k, name in enumerate(names)}
        found.append(run(study, sites_of(study, rows, folder, parts)).result())
    assert_array_equal(*(one.coefficients_ for one in found))


@pytest.mark.usefixtures("no_noise")
def test_groups_over_sites(rows, tmp_path):
    patients = np.arange(3000) // 3
    newton = DPNewtonClassifier(
        classes=[0, 1], random_state=0, privacy_unit="group", n_groups=1000
    )
    study = study_of(rows, newton, n_rows=None)
    sites = sites_of(study, rows, tmp_path, groups=patients)
    model = run(study, sites).result()
    assert model.privacy_spent_.unit == "group"
    assert model.score(*rows[3:]) > 0.6
    codes = {one.code for one in model.privacy_spent_.assumptions}
    assert "n-rows-of-sites-public" not in codes
    assert {"one-site-each", "fingerprint-compared", "masks-unbroken"} <= codes


def test_counted_codes_over_sites(tmp_path):
    rng = np.random.default_rng(0)
    codes = np.array([f"c{k}" for k in range(40)])
    kind = rng.integers(40, size=5000)
    X = pd.DataFrame({"code": codes[kind], "age": rng.normal(size=5000)})
    y = (rng.random(5000) < kind / 40).astype(int)
    newton = DPNewtonClassifier(
        classes=[0, 1], codes={"code": codes.tolist()}, random_state=0, epsilon=4.0
    )
    study = Study(newton, X[4500:], sites=["a", "b"], n_rows=4000)
    assert study.n_sums == 6
    sites = {
        name: Site(study, name, X[part], y[part], ledger=ledger_at(tmp_path, name, 4.0))
        for name, part in {"a": slice(0, 2500), "b": slice(2500, 4000)}.items()
    }
    model = run(study, sites).result()
    assert model.score(X[4000:], y[4000:]) > 0.62
    assert list(model.marginals_) == ["code"]


def test_queries_that_depend_on_answers_take_several_rounds(rows, tmp_path):
    votes = PATEClassifier(
        GaussianNB(),
        mechanism="histogram",
        query_strategy=UncertaintyQueries(),
        n_teachers=60,
        n_queries=80,
        classes=[0, 1],
        random_state=0,
    )
    study = study_of(rows, votes)
    sites = sites_of(study, rows, tmp_path)
    collector, n_rounds = collector_of(study, sites), 0
    while collector.request() is not None:
        one_round(collector, sites)
        n_rounds += 1
    assert n_rounds > 2
    model = collector.result()
    assert len(set(model.queried_indices_)) == 80
    assert model.score(*rows[3:]) > 0.6


def test_the_result_has_nothing_of_made_up_rows(rows, tmp_path):
    study = study_of(rows, VOTES)
    model = run(study, sites_of(study, rows, tmp_path)).result()
    assert not {"privacy_analysis_", "data_problems_"} & vars(model).keys()


def test_a_model_over_sites_is_published_with_report_and_metrics(rows, tmp_path):
    study = study_of(rows)
    fitted = run(study, sites_of(study, rows, tmp_path)).result()
    model = fitted.publish()
    measured = study_of(rows, model, measure={"epsilon": 0.5})
    (tmp_path / "metrics").mkdir()
    sites = sites_of(measured, rows, tmp_path / "metrics")
    metrics = run(measured, sites).result()
    assert metrics.sites_ == (3, 1)
    alone = private_metrics(model, rows[0], rows[1], epsilon=0.5)
    assert abs(metrics["accuracy"].value - alone["accuracy"].value) < 0.1
    metrics.save(tmp_path / "metrics.json")
    loaded = PrivateMetrics.load(tmp_path / "metrics.json")
    assert loaded.privacy_spent_ == metrics.privacy_spent_
    published = fitted.publish(metrics=metrics)
    assert 1.1 < published.privacy_spent_.epsilon < 1.3
    page = PrivacyReport.from_estimator(published).to_markdown()
    assert "Distributed: each site keeps its raw data" in page
    assert "Did the sites read the fingerprint to each other" in page


def test_a_card_with_other_numbers_of_sites_is_refused(rows, tmp_path):
    study = study_of(rows)
    model = run(study, sites_of(study, rows, tmp_path)).result().publish()
    model.save(tmp_path / "model.skops")
    loaded = PublishedClassifier.load(tmp_path / "model.skops")
    assert loaded.privacy_spent_ == study.privacy_spent
    assert loaded.card["mechanism"]["class"] == "SharedNoise"
    for name, value in (("n_colluding", 2), ("n_sites", 4), ("n_colluding", 0)):
        forged = loaded.card
        forged["mechanism"]["parameters"][name] = value
        with pytest.raises(ValueError, match=r"its other fields give|n_colluding=0"):
            checked_statements(forged)


def test_numbers_and_times_are_measured_over_sites(rows, tmp_path):
    X, _, X_public, *_ = rows
    time = 3 + X[:, 0] / 4
    event = np.arange(3000) % 3 > 0
    survival = np.zeros(3000, dtype=[("event", bool), ("time", float)])
    survival["event"], survival["time"] = event, time.clip(0.1)
    for kind, model, y, name in (
        ("number", BinnedRegressor(DPNewtonClassifier(), bins=(0, 6)), time, "r2"),
        (
            "time",
            DiscreteSurvival(DPNewtonClassifier(), intervals=[1, 2, 3, 4, 5]),
            survival,
            "concordance",
        ),
    ):
        fitted = model.fit(X[:2000], y[:2000], X_public=X_public)
        (tmp_path / kind).mkdir()
        study = study_of(rows, fitted.publish(), measure={"epsilon": 2.0})
        sites = {
            name: Site(study, name, X[part], y[part], ledger=ledger)
            for name, part in PARTS.items()
            for ledger in [ledger_at(tmp_path / kind, name, 2.0)]
        }
        metrics = run(study, sites).result()
        assert isinstance(metrics, OutcomeMetrics)
        alone = private_metrics(fitted, X, y, epsilon=2.0)
        assert metrics[name].value == pytest.approx(alone[name].value, abs=0.15)


def test_subgroups_and_groups_are_measured_over_sites(rows, tmp_path):
    X, y, X_public, *_ = rows
    model = NEWTON.fit(X[:500], y[:500], X_public=X_public).publish()
    measure = {"epsilon": 2.0, "subgroup_values": ["young", "old"]}
    study = Study(model, X_public, sites=NAMES, measure=measure)
    sites = {
        name: Site(
            study,
            name,
            X[part],
            y[part],
            groups=np.arange(3000)[part],
            subgroups=np.where(np.arange(3000) % 3, "young", "old")[part],
            ledger=ledger_at(tmp_path, name, 2.0),
        )
        for name, part in PARTS.items()
    }
    metrics = run(study, sites).result()
    assert metrics.n_rows_ is None
    assert list(metrics.by_subgroup) == ["young", "old", "other or missing"]
    accuracy = np.mean(model.predict(X) == y)
    assert metrics["accuracy"].value == pytest.approx(accuracy, abs=0.05)


# Masks, requests and ledgers.


def test_a_reply_alone_is_uniform(rows, tmp_path):
    study = study_of(rows, VOTES)
    sites = sites_of(study, rows, tmp_path)
    collector = collector_of(study, sites)
    one_round(collector, sites)
    reply = sites["north"].reply(collector.request(), collector.fingerprint)
    content = numbers_of(reply).view(np.uint8)
    assert len(content) == 100 * 2 * 8
    counts = np.bincount(content, minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_masks_cancel_over_all_sites_and_over_no_fewer(rows, tmp_path):
    study = study_of(rows, VOTES)
    sites = sites_of(study, rows, tmp_path)
    collector = collector_of(study, sites)
    one_round(collector, sites)
    request = collector.request()
    replies = [one.reply(request, collector.fingerprint) for one in sites.values()]
    numbers = [numbers_of(one) for one in replies]
    total = (numbers[0] + numbers[1] + numbers[2]).view(np.int64)
    assert np.all(np.abs(total) < 2000)
    for few in ([0, 1], [0, 2], [1, 2]):
        part = sum(numbers[k] for k in few).view(np.int64)
        assert np.median(np.abs(part)) > 2**58


def test_the_noise_of_all_sites_has_the_stated_variance(rows, tmp_path, monkeypatch):
    study = study_of(rows, VOTES)

    def released(folder):
        folder.mkdir()
        model = run(study, sites_of(study, rows, folder)).result()
        order = np.argsort(model.queried_indices_)
        return model.histograms_[order]

    noisy = released(tmp_path / "noisy")
    monkeypatch.setattr(
        NoiseSource,
        "discrete_gaussian",
        lambda noise, sigma, shape: np.zeros(shape, int),
    )
    noise = noisy - released(tmp_path / "exact")
    sigma, _ = study_sigma(study)
    # 200 numbers: a standard deviation is within 20 % but for one time in 10,000.
    assert np.std(noise) == pytest.approx(sigma, rel=0.2)


def study_sigma(study):
    text = study.privacy_spent.mechanism
    return [float(one) for one in re.findall(r"(?:noise_scale|sigma)=([\d.]+)", text)]


def test_the_sums_of_neighbours_differ_by_the_length_that_is_charged(rows, tmp_path):
    # Equal noise and equal masks, as an attacker could never see them: a copy of the
    # ledger, with other rows. The differences of the replies are those of the sums.
    X, y, *_ = rows
    other = X.copy()
    other[7] = [900.0, -4000.0]
    study = study_of(rows)
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
    ledger_at(folders[0], "north").key  # noqa: B018
    for name in NAMES:
        ledger_at(folders[0], name).key  # noqa: B018
        for path in folders[0].glob(f"{name}*"):
            shutil.copy(path, folders[1])
    both = []
    for folder, private in zip(folders, (X, other), strict=True):
        both.append(sites_of(study, (private, y), folder))
    collectors = [collector_of(study, sites) for sites in both]
    shares = (0.03, 0.14, 0.23, 0.55, 0.05)
    for share in shares:
        request = collectors[0].request()
        assert request == collectors[1].request()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                NoiseSource,
                "discrete_gaussian",
                lambda noise, sigma, shape: np.ones(shape, dtype=np.int64),
            )
            replies = [
                sites["north"].reply(request, collectors[0].fingerprint)
                for sites in both
            ]
        moved = (numbers_of(replies[0]) - numbers_of(replies[1])).view(np.int64)
        assert np.linalg.norm(moved) <= 2 * np.sqrt(share) * 1024
        rest = [
            both[0][name].reply(request, collectors[0].fingerprint)
            for name in NAMES[1:]
        ]
        collectors[0].add([replies[0], *rest])
        collectors[1]._rounds = collectors[0]._rounds
    assert np.any(moved)


def test_the_same_request_gets_the_same_reply_in_another_process(rows, tmp_path):
    study = study_of(rows)
    sites = sites_of(study, rows, tmp_path)
    collector = collector_of(study, sites)
    request = collector.request()
    first = sites["north"].reply(request, collector.fingerprint)
    again = sites_of(study, rows, tmp_path)["north"]
    assert again.reply(request, collector.fingerprint) == first
    assert len(ledger_at(tmp_path, "north").entries()) == 1


def other_history(collector, change):
    """Return the request of a collector after a change of what was released."""
    forged = Collector(collector.study, collector._public_keys)
    forged._rounds = change(list(collector._rounds))
    return forged.request()


def test_a_round_is_answered_to_one_request_only(rows, tmp_path):
    study = study_of(rows)
    sites = sites_of(study, rows, tmp_path)
    collector = collector_of(study, sites)
    one_round(collector, sites)
    request = collector.request()
    reply = sites["north"].reply(request, collector.fingerprint)

    def changed(rounds):
        first = rounds[0]
        return [type(first)(first.numbers, first.sums + 1)]

    forged = other_history(collector, changed)
    with pytest.raises(ValueError, match="Sum 2 was sent for another request already"):
        sites["north"].reply(forged, collector.fingerprint)
    # Another site answers it, but under other masks: the numbers do not add up.
    south = sites["south"].reply(forged, collector.fingerprint)
    part = (numbers_of(reply) + numbers_of(south)).view(np.int64)
    assert np.median(np.abs(part)) > 2**58
    assert sites["north"].reply(request, collector.fingerprint) == reply


@pytest.mark.parametrize(
    "change",
    [
        lambda rounds: rounds[1:],
        lambda rounds: rounds[::-1],
        lambda rounds: [rounds[0], rounds[0]],
        lambda rounds: [
            rounds[0],
            type(rounds[1])(rounds[1].numbers[:-1], rounds[1].sums[:-1]),
        ],
        lambda rounds: [
            rounds[0],
            type(rounds[1])(rounds[1].numbers + 1, rounds[1].sums),
        ],
    ],
    ids=["first left out", "other order", "one twice", "half", "other numbers"],
)
def test_a_history_that_did_not_happen_is_refused(rows, tmp_path, change):
    votes = PATEClassifier(
        GaussianNB(),
        mechanism="histogram",
        query_strategy=UncertaintyQueries(),
        n_teachers=60,
        n_queries=80,
        classes=[0, 1],
        random_state=0,
    )
    study = study_of(rows, votes)
    sites = sites_of(study, rows, tmp_path)
    collector = collector_of(study, sites)
    one_round(collector, sites)
    one_round(collector, sites)
    forged = other_history(collector, change)
    with pytest.raises(ValueError, match=r"another request|other sums than this site"):
        sites["north"].reply(forged, collector.fingerprint)
    assert len(ledger_at(tmp_path, "north").entries()) == 1


class Killed(BaseException):
    """The end of a process."""


@pytest.mark.parametrize("statement", range(12))
def test_no_killed_process_sends_two_vectors_under_one_mask(
    rows, tmp_path, monkeypatch, statement
):
    study = study_of(rows)
    sites = sites_of(study, rows, tmp_path)
    collector = collector_of(study, sites)
    request, n_left = collector.request(), [statement]
    execute = PrivacyLedger.writing

    def counted(ledger):
        if n_left[0] == 0:
            raise Killed
        n_left[0] -= 1
        return execute(ledger)

    sent = []
    with monkeypatch.context() as patch:
        patch.setattr(PrivacyLedger, "writing", counted)
        with contextlib.suppress(Killed):
            sent.append(sites["north"].reply(request, collector.fingerprint))
    again = sites_of(study, rows, tmp_path)["north"]
    sent.append(again.reply(request, collector.fingerprint))
    assert len({*sent}) == 1
    entries = ledger_at(tmp_path, "north").entries()
    assert len(entries) == 1
    assert entries[0].epsilon == pytest.approx(study.privacy_spent.epsilon, rel=1e-6)


def test_of_two_processes_at_once_one_reply_is_sent(rows, tmp_path, monkeypatch):
    study = study_of(rows)
    sites = sites_of(study, rows, tmp_path)
    collector = collector_of(study, sites)
    request, other = collector.request(), sites_of(study, rows, tmp_path)["north"]
    draw, found = NoiseSource.discrete_gaussian, []

    def meanwhile(noise, sigma, shape):
        with monkeypatch.context() as patch:
            patch.setattr(NoiseSource, "discrete_gaussian", draw)
            found.append(other.reply(request, collector.fingerprint))
        return draw(noise, sigma, shape)

    with monkeypatch.context() as patch:
        patch.setattr(NoiseSource, "discrete_gaussian", meanwhile)
        found.append(sites["north"].reply(request, collector.fingerprint))
    assert found[0] == found[1]
    assert len(ledger_at(tmp_path, "north").entries()) == 1


def test_a_site_is_charged_the_whole_cost_before_its_first_reply(rows, tmp_path):
    study = study_of(rows)
    small = PrivacyLedger(tmp_path / "small.sqlite", epsilon=0.5, delta=1e-5)
    X, y, *_ = rows
    sites = sites_of(study, rows, tmp_path)
    sites["north"] = poor = Site(study, "north", X[:1500], y[:1500], ledger=small)
    collector = collector_of(study, sites)
    with pytest.raises(BudgetExceededError, match="charged before the first reply"):
        poor.reply(collector.request(), collector.fingerprint)
    assert small.entries() == []
    sites["south"].reply(collector.request(), collector.fingerprint)
    [entry] = ledger_at(tmp_path, "south").entries()
    assert entry.epsilon == pytest.approx(study.privacy_spent.epsilon, rel=1e-6)
    assert "study of 3 sites" in entry.description


def test_a_site_that_changed_its_rows_is_told(rows, tmp_path):
    study = study_of(rows)
    sites = sites_of(study, rows, tmp_path)
    collector = collector_of(study, sites)
    one_round(collector, sites)
    X, y, *_ = rows
    moved = sites_of(study, (X[::-1], y[::-1]), tmp_path)["north"]
    with pytest.raises(
        ValueError, match="differ from those of this site's first reply"
    ):
        moved.reply(collector.request(), collector.fingerprint)


# What a collector cannot do.


def test_a_replaced_key_changes_the_fingerprint(rows, tmp_path):
    study = study_of(rows)
    sites = sites_of(study, rows, tmp_path)
    keys = {name: site.public_key for name, site in sites.items()}
    (tmp_path / "spy").mkdir()
    spy = sites_of(study, rows, tmp_path / "spy")["south"]
    true, forged = (
        Collector(study, keys),
        Collector(study, keys | {"south": spy.public_key}),
    )
    assert true.fingerprint != forged.fingerprint
    with pytest.raises(ValueError, match="the collector may have replaced a key"):
        sites["north"].reply(forged.request(), true.fingerprint)
    with pytest.raises(
        ValueError, match="another public key of south than this ledger"
    ):
        sites["south"].reply(forged.request(), forged.fingerprint)
    assert ledger_at(tmp_path, "north").entries() == []


def copied_key(public_key):
    """Return another public key that has the same secret with every other site."""
    key = bytearray.fromhex(public_key)
    key[31] ^= 0x80  # X25519 ignores this bit
    return key.hex()


def test_a_copy_of_another_key_cancels_no_mask(rows, tmp_path):
    # East colludes, and is a copy of north: the masks of south with both of them would
    # cancel if they depended on the secret alone.
    study = study_of(rows, VOTES)
    sites = sites_of(study, rows, tmp_path)
    keys = {name: site.public_key for name, site in sites.items()}
    keys["east"] = copied_key(keys["north"])
    collector = Collector(study, keys)
    reply = sites["south"].reply(collector.request(), collector.fingerprint)
    assert np.min(np.abs(numbers_of(reply).view(np.int64))) > 2**40


def test_many_processes_that_ask_the_same_leave_the_study_as_it_is(
    rows, tmp_path, monkeypatch
):
    study = study_of(rows)
    sites = sites_of(study, rows, tmp_path)
    collector = collector_of(study, sites)
    request, others = collector.request(), []
    draw = NoiseSource.discrete_gaussian

    def meanwhile(noise, sigma, shape):
        if len(others) < 6:
            others.append(None)
            sites["north"].reply(request, collector.fingerprint)
        return draw(noise, sigma, shape)

    with monkeypatch.context() as patch:
        patch.setattr(NoiseSource, "discrete_gaussian", meanwhile)
        first = sites["north"].reply(request, collector.fingerprint)
    assert sites["north"].reply(request, collector.fingerprint) == first
    while collector.request() is not None:
        one_round(collector, sites)
    assert len(ledger_at(tmp_path, "north").entries()) == 1


def test_what_a_site_cannot_do_is_told_before_any_site_is_charged(rows, tmp_path):
    study = study_of(rows, VOTES)
    X, y, *_ = rows
    ledger = ledger_at(tmp_path, "north")
    for private, labels, message in (
        (X[:10], y[:10], "n_teachers"),
        (X[:100], y[:100] + 5, "No private row of y has a label"),
        (X[:100, :1], y[:100], "feature"),
        (np.tile(X, (2, 1)), np.tile(y, 2), "more rows than n_rows=3000"),
    ):
        with pytest.raises(ValueError, match=message):
            Site(study, "north", private, labels, ledger=ledger)
    assert ledger.entries() == []


def test_a_site_whose_teachers_all_fail_sends_a_sum_without_votes(rows, tmp_path):
    X, y, *_ = rows
    private = X.copy()
    private[PARTS["south"]] = np.nan  # GaussianNB refuses these rows
    study = study_of(rows, VOTES)
    sites = sites_of(study, (private, y), tmp_path)
    model = run(study, sites).result()
    assert model.score(*rows[3:]) > 0.6


def test_what_was_agreed_on_does_not_change_afterwards(rows, tmp_path):
    newton = DPNewtonClassifier(classes=[0, 1], random_state=0)
    public = rows[2].copy()
    study = Study(newton, public, sites=NAMES, n_rows=np.int64(3000))
    sites = sites_of(study, rows, tmp_path)
    newton.set_params(epsilon=9.0)
    public[:] = 0
    assert run(study, sites).result().privacy_spent_.epsilon <= 1
    assert study.X_public.any()


def test_released_sums_of_another_fit_give_no_model(rows, tmp_path):
    study = study_of(rows)
    sites = sites_of(study, rows, tmp_path)
    collector = run(study, sites)
    one = collector._rounds[-1]
    collector._rounds[-1] = type(one)(one.numbers + 10, one.sums)
    with pytest.raises(ValueError, match="not those that the study asks for"):
        collector.result()


def test_replies_that_do_not_belong_together_release_nothing(rows, tmp_path):
    study = study_of(rows)
    sites = sites_of(study, rows, tmp_path)
    collector = collector_of(study, sites)
    request = collector.request()
    replies = [one.reply(request, collector.fingerprint) for one in sites.values()]
    with pytest.raises(ValueError, match="No reply of east: without it"):
        collector.add(replies[:2])
    with pytest.raises(ValueError, match="not in the study or replied twice"):
        collector.add([*replies, replies[0]])
    wrong = json.loads(replies[0])
    wrong["masked"] = json.loads(replies[1])["masked"]
    with pytest.raises(ValueError, match="masks of the replies do not cancel"):
        collector.add([json.dumps(wrong).encode(), *replies[1:]])
    with pytest.raises(ValueError, match="A reply is not a reply"):
        collector.add([request, *replies[1:]])
    with pytest.raises(ValueError, match="0 of 5 sums are known"):
        collector.result()
    collector.add(replies)
    with pytest.raises(ValueError, match="is to another request"):
        collector.add(replies)


def test_a_collector_goes_on_in_another_process(rows, tmp_path):
    study = study_of(rows)
    sites = sites_of(study, rows, tmp_path)
    collector = collector_of(study, sites)
    one_round(collector, sites)
    other = Collector.of_request(study, collector.request())
    assert other.request() == collector.request()
    assert other.fingerprint == collector.fingerprint


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("study", "00"),
        ("format_version", 2),
        ("format", "sklearn_pate reply"),
        ("public_keys", {"north": "00"}),
        ("public_keys", {}),
        ("public_keys", None),
        ("released", None),
        ("released", [{"numbers": "AAAAAAAAAAA=", "sums": "AAA"}]),
        ("released", [{"numbers": "AAAAAAAAAAA=", "sums": "/////////38="}]),
    ],
)
def test_a_damaged_request_is_refused(rows, tmp_path, field, value):
    study = study_of(rows)
    sites = sites_of(study, rows, tmp_path)
    collector = collector_of(study, sites)
    values = json.loads(collector.request())
    values[field] = value
    with pytest.raises(ValueError, match=r"[;,:] \w|must be|is of another study"):
        sites["north"].reply(json.dumps(values).encode(), collector.fingerprint)
    assert ledger_at(tmp_path, "north").entries() == []


@pytest.mark.parametrize("size", [1, 2**40, 2**55])
def test_any_released_numbers_give_a_bounded_reply(rows, tmp_path, size):
    study = study_of(rows)
    sites = sites_of(study, rows, tmp_path)
    collector = collector_of(study, sites)
    for _ in range(2):
        one_round(collector, sites)
        last = collector._rounds[-1]
        signs = np.where(np.arange(last.sums.size) % 2, size, -size)
        collector._rounds[-1] = type(last)(last.numbers, signs.reshape(last.sums.shape))
    replies = {
        name: one.reply(collector.request(), collector.fingerprint)
        for name, one in sites.items()
    }
    total = sum(numbers_of(one) for one in replies.values()).view(np.int64)
    # Each row adds a vector no longer than sqrt(.23) * 1024; and noise.
    assert np.linalg.norm(total) < 3000 * 0.48 * 1024 + 20_000 * np.sqrt(len(total))


# Studies in files, and wrong input.


def test_a_study_in_a_file_is_that_of_all_sites(rows, tmp_path):
    study = study_of(rows)
    study.save(tmp_path / "study.json")
    loaded = Study.load(tmp_path / "study.json", NEWTON, rows[2])
    assert loaded.digest == study.digest
    assert "1.22 times that of a fit on all rows" in str(loaded)
    with pytest.raises(FileExistsError):
        study.save(tmp_path / "study.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda study: {
                "estimator": NEWTON.__class__(classes=[0, 1], random_state=1)
            },
            "estimator differs",
        ),
        (lambda study: {"X_public": study.X_public[::-1]}, "public_rows differs"),
        (lambda study: {"X_public": study.X_public * 2}, "public_rows differs"),
    ],
)
def test_another_estimator_or_other_public_rows_are_refused(
    rows, tmp_path, change, message
):
    study = study_of(rows)
    study.save(tmp_path / "study.json")
    given = {"estimator": NEWTON, "X_public": study.X_public} | change(study)
    with pytest.raises(ValueError, match=message):
        Study.load(tmp_path / "study.json", **given)


def test_a_machine_with_other_features_is_told(rows, tmp_path):
    study = study_of(rows)
    study._content["features"][3] *= -1
    study.save(tmp_path / "study.json")
    with pytest.raises(ValueError, match="computes other features from X_public"):
        Study.load(tmp_path / "study.json", NEWTON, rows[2])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sites": "north"}, "must be a list of names"),
        ({"sites": ["north"]}, r"len\(sites\)=1"),
        ({"sites": ["a", "a"]}, "no site twice"),
        ({"n_rows": None}, "n_rows=None, but privacy_unit='row'"),
        ({"n_rows": -1}, "n_rows=-1"),
        ({"n_colluding": 0}, "n_colluding=0"),
        ({"n_colluding": 3}, "n_colluding=3"),
        ({"estimator": RandomForestClassifier()}, "cannot be fitted over sites"),
        ({"estimator": DPLogisticRegression()}, "cannot be fitted over sites"),
        ({"estimator": DPNewtonClassifier(random_state=0)}, "classes=None"),
        ({"estimator": DPNewtonClassifier(classes=[0, 1])}, "random_state=None"),
        (
            {
                "estimator": PATEClassifier(
                    GaussianNB(), mechanism="gnmax", classes=[0, 1], random_state=0
                )
            },
            "use mechanism='histogram'",
        ),
        (
            {
                "estimator": PATEClassifier(
                    GaussianNB(),
                    mechanism="histogram",
                    epsilon=20.0,
                    n_teachers=60,
                    n_queries=2,
                    classes=[0, 1],
                    random_state=0,
                )
            },
            "too little to be drawn",
        ),
        (
            {
                "estimator": PATEClassifier(
                    mechanism="histogram", n_teachers=50, classes=[0, 1], random_state=0
                )
            },
            "n_teachers=50 cannot be split evenly over 3 sites",
        ),
        (
            {
                "estimator": DPNewtonClassifier(
                    classes=[0, 1], random_state=0, public_size=0.1
                )
            },
            "set public_size=None",
        ),
        ({"measure": {"epsilon": 1.0, "groups": [1]}}, "measure="),
        ({"measure": {"delta": 1e-5}}, "must have epsilon"),
        (
            {
                "estimator": PATEClassifier(
                    DPNewtonClassifier(), classes=[0, 1], random_state=0
                )
            },
            "has a private classifier as a parameter",
        ),
    ],
)
def test_wrong_parameters_of_a_study(rows, changed, message):
    estimator = changed.pop("estimator", NEWTON)
    with pytest.raises(ValueError, match=message):
        study_of(rows, estimator, **changed)


def test_wrong_arguments_of_a_site(rows, tmp_path):
    study, ledger = study_of(rows), ledger_at(tmp_path, "north")
    X, y, *_ = rows
    with pytest.raises(ValueError, match="site='nord' is not one of the sites"):
        Site(study, "nord", X, y, ledger=ledger)
    with pytest.raises(ValueError, match="must be a PrivacyLedger"):
        Site(study, "north", X, y, ledger=None)
    with pytest.raises(ValueError, match="the unit of this study is a row"):
        Site(study, "north", X, y, groups=y, ledger=ledger)
    site = Site(study, "north", X, y, ledger=ledger)
    keys = dict.fromkeys(NAMES, site.public_key)
    with pytest.raises(ValueError, match="Two sites have one key"):
        Collector(study, keys)
    with pytest.raises(ValueError, match="south, east lacks one"):
        Collector(study, {"north": site.public_key})


def test_a_key_of_low_order_is_refused(rows, tmp_path):
    study = study_of(rows)
    sites = sites_of(study, rows, tmp_path)
    keys = {name: site.public_key for name, site in sites.items()}
    collector = Collector(study, keys | {"south": 64 * "0"})
    with pytest.raises(ValueError, match="public key of south cannot be used"):
        sites["north"].reply(collector.request(), collector.fingerprint)
    assert ledger_at(tmp_path, "north").entries() == []


def test_the_ledger_holds_no_secret_of_the_rows(rows, tmp_path):
    study = study_of(rows)
    sites = sites_of(study, rows, tmp_path)
    collector = collector_of(study, sites)
    one_round(collector, sites)
    with sqlite3.connect(tmp_path / "north.sqlite") as file:
        [(content,)] = file.execute("SELECT histogram FROM answers").fetchall()
    stored = np.frombuffer(content, dtype="<i8")
    assert abs(int(stored[-2])) > 2**40  # masked, but for one time in 2^23
