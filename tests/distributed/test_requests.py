"""Tests of requests, of files of studies, and of wrong input."""

import json
import sqlite3

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
)
from sklearn_pate.distributed import Collector, Site, Study
from sklearn_pate.learners import DPLogisticRegression
from tests.distributed.studies import (
    NAMES,
    NEWTON,
    OF_STUDIES,
    PARTS,
    VOTES,
    collector_of,
    ledger_at,
    numbers_of,
    one_round,
    run,
    sites_of,
    study_of,
)
from tests.private import NoiseSource

pytestmark = OF_STUDIES


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
    with pytest.raises(ValueError, match="has 0 of 5 sums; send"):
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


def test_a_study_in_a_file_is_that_of_all_sites(rows, tmp_path):
    study = study_of(rows)
    study.save(tmp_path / "study.json")
    own = clone(NEWTON).set_params(verbose=1)
    loaded = Study.load(tmp_path / "study.json", own, rows[2])
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


@pytest.mark.parametrize(("n_sites", "n_colluding"), [(2, 1), (3, 1), (4, 1), (5, 2)])
def test_fewer_than_half_of_the_sites_may_collude(rows, n_sites, n_colluding):
    study = study_of(rows, sites=[*"abcde"[:n_sites]])
    assert study.n_colluding == n_colluding


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
    with pytest.raises(ValueError, match="has X, y, but this one got X, y, groups"):
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
