"""Tests of replies of sites: masks, noise, ledgers, killed processes."""

import contextlib
import re
import shutil

import numpy as np
import pytest
from scipy import stats

from sklearn_pate import (
    BudgetExceededError,
    PrivacyLedger,
)
from sklearn_pate.distributed import Site
from tests.distributed.studies import (
    IN_ROUNDS,
    NAMES,
    OF_STUDIES,
    VOTES,
    collector_of,
    ledger_at,
    numbers_of,
    one_round,
    other_history,
    run,
    sites_of,
    study_of,
)
from tests.private import NoiseSource, SiteKey

pytestmark = OF_STUDIES


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


def test_masks_of_another_request_study_or_key_are_other_masks():
    keys = [SiteKey(bytes([place]) * 32, b"study", "north") for place in range(3)]
    public = {"north": keys[0].public, "south": keys[1].public}

    def masks(key=keys[0], public_keys=public, study=b"study", request=b"request"):
        return key.masks(public_keys, "north", study, request, 4)

    other = [
        masks(request=b"another"),
        masks(study=b"another"),
        masks(public_keys={**public, "south": keys[2].public}),
        masks(keys[2], {**public, "north": keys[2].public}),
    ]
    assert masks().tolist() == masks().tolist()
    assert not np.any(np.isin(other, masks()))
    assert len(np.unique(other)) == 16


@pytest.mark.thorough
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


@pytest.fixture(scope="module")
def after_two_rounds(rows, tmp_path_factory):
    """Return folder, sites and collector of a study whose queries follow answers."""
    folder = tmp_path_factory.mktemp("study")
    study = study_of(rows, IN_ROUNDS)
    sites = sites_of(study, rows, folder)
    collector = collector_of(study, sites)
    one_round(collector, sites)
    one_round(collector, sites)
    return folder, sites, collector


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
def test_a_history_that_did_not_happen_is_refused(after_two_rounds, change):
    folder, sites, collector = after_two_rounds
    forged = other_history(collector, change)
    with pytest.raises(ValueError, match=r"another request|other sums than this site"):
        sites["north"].reply(forged, collector.fingerprint)
    assert len(ledger_at(folder, "north").entries()) == 1


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
