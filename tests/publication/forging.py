"""Fits whose files are forged, and how to forge them."""

import hashlib
import io
import json
import tracemalloc
import warnings
import zipfile
from copy import deepcopy

import numpy as np
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.learners import Clusters, PETDLClassifier, PrivateKNNClassifier
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    InteractiveGNMax,
    LNMax,
    NoisyHistogram,
    PermuteAndFlip,
)
from sklearn_pate.publication import PublishedClassifier, publish
from sklearn_pate.students import DistillationClassifier
from tests.private import check_card, checked_statements, read_released
from tests.seeding import equal_noise

N_PARTIES, N_PUBLIC = 60, 40


def vote(mechanism, n_classes=3, **parameters):
    """Fit on made-up votes, by parties that nearly agree."""
    rng = np.random.default_rng(0)
    y = np.arange(N_PUBLIC) % n_classes
    X_public = rng.normal(size=(N_PUBLIC, 2)) + 4 * y[:, np.newaxis]
    wrong = rng.random((N_PARTIES, N_PUBLIC)) < 0.1
    votes = np.where(wrong, (y + 1) % n_classes, y)
    pate = PATEClassifier(
        GaussianNB(),
        GaussianNB(),
        mechanism=mechanism,
        epsilon=None,
        classes=list(range(n_classes)),
        random_state=0,
        **({"query_strategy": "random"} | parameters),
    )
    return pate.fit_from_votes(X_public, votes)


def nearest(blobs, **parameters):
    X, y, X_public, _ = blobs
    knn = PrivateKNNClassifier(
        student=GaussianNB(),
        n_neighbors=20,
        n_queries=20,
        sampling_rate=0.3,
        random_state=0,
        **parameters,
    )
    return knn.fit(X, y, X_public=PublicData(X_public))


def distil(blobs, **parameters):
    X, y, X_public, _ = blobs
    petdl = PETDLClassifier(
        GaussianNB(),
        DistillationClassifier(LogisticRegression()),
        n_teachers=30,
        batches=Clusters(20),
        random_state=0,
        **({"epsilon": 3.0} | parameters),
    )
    return petdl.fit(X, y, X_public=PublicData(X_public))


FITS = {
    "GNMax": lambda blobs: vote(GNMax(sigma=8.0)),
    "ConfidentGNMax": lambda blobs: vote(
        ConfidentGNMax(30, sigma_threshold=20.0, sigma=8.0, max_answers=25)
    ),
    "PETDL": distil,
    "Private-kNN": nearest,
}
OTHER_FITS = {
    "GNMax on two classes": lambda blobs: vote(GNMax(sigma=8.0), n_classes=2),
    "LNMax": lambda blobs: vote(LNMax(gamma=0.05), n_classes=2),
    "GumbelMax": lambda blobs: vote(GumbelMax(c=0.2)),
    "PermuteAndFlip": lambda blobs: vote(PermuteAndFlip(c=np.float64(0.2))),
    "InteractiveGNMax": lambda blobs: vote(
        InteractiveGNMax(20, sigma_threshold=20.0, sigma=8.0),
        query_strategy="interactive",
    ),
    "NoisyHistogram": lambda blobs: vote(NoisyHistogram(sigma=9.0)),
    "Private-kNN with a check": lambda blobs: nearest(blobs, mechanism="confident"),
    "nothing private": lambda blobs: equal_noise()(vote)(GNMax(sigma=8.0)),
    "nothing private of a sample": lambda blobs: equal_noise()(nearest)(
        blobs, mechanism=GNMax(sigma=5.0), epsilon=None
    ),
}


def published_of(kind, blobs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return publish((FITS | OTHER_FITS)[kind](blobs))


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, members, card):
    """Write a model file and its card so that all hashes and copies fit."""
    text = json.dumps(card, sort_keys=True).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (members | {"privacy_card.json": text}).items():
            archive.writestr(name, content)
    card = card | {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    path.with_suffix(".json").write_text(json.dumps(card))


def card_of(path):
    card = json.loads(path.with_suffix(".json").read_text())
    del card["sha256"]
    return card


def forge(path, change):
    """Change both copies of the card."""
    card = card_of(path)
    changed = change(card)
    write(path, members_of(path), card if changed is None else changed)


def setting(**changes):
    return lambda card: card | changes


def number(name, value):
    """Change a parameter of the mechanism."""

    def change(card):
        fields = card["mechanism"]
        if name not in fields["parameters"]:
            fields = fields["parameters"]["mechanism"]
        fields["parameters"][name] = value

    return change


#: Given by the publisher: nothing to compare these with.
FREE = {"deployment", "feature_names"}
#: Compared when the files are opened.
OF_FILE = {"format", "format_version", "model"}
#: Compared with the student, which a reader of the statement alone does not load.
OF_STUDENT = {"classes", "model_fingerprint", "n_features"}


#: Noisy counts, names of subgroups, and figures, which are compared but for the random
#: numbers of their intervals: see test_metrics_file.py.
OF_COUNTS = {
    ("metrics", name)
    for name in (
        *("figures", "by_subgroup", "subgroups", "n_rows", "confusion", "histograms"),
        *("edges", "middles", "middle_errors"),
    )
}


def mutated(value):
    """Return another value of the same type, if there is one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return f"{value} and more"
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return 0.9 * value if value else 0.1
    if isinstance(value, list):
        return value[1:] if value[1:] else [*value, *value]
    if isinstance(value, dict):
        name = next(iter(value), "name")
        return value | {name: mutated(value.get(name, "A model"))}
    return 1


def values_of(value, *path):
    """Give the place of every value on a card, and of the first in lists."""
    yield path
    if isinstance(value, dict):
        for name in value:
            yield from values_of(value[name], *path, name)
    elif isinstance(value, list) and value:
        yield from values_of(value[0], *path, 0)


def assert_every_value_is_compared(card):
    """Change the values of a card, one at a time: each changed card is refused.

    Parameters that a mechanism does not use decide nothing: they leave the statement as
    it is.
    """
    check_card(card, "card")
    spent = checked_statements(card)
    for path in values_of(card):
        if not path or path[0] in {*OF_FILE, *OF_STUDENT, *FREE}:
            continue
        if path[:2] in OF_COUNTS:
            continue
        forged = deepcopy(card)
        inner, last = forged, path[0]
        for one in path[1:]:
            inner, last = inner[last], one
        inner[last] = mutated(inner[last])
        try:
            check_card(forged, "card")
            found = checked_statements(forged)
        except ValueError:
            continue
        assert path[0] == "mechanism", path
        assert found == spent, path


def refused(path):
    """Return the error when a forged model is read, in both ways."""
    with pytest.raises(ValueError, match="is inconsistent: ") as loaded:
        PublishedClassifier.load(path)
    with pytest.raises(ValueError, match="is inconsistent: ") as read:
        read_released(path)
    assert str(loaded.value) == str(read.value)
    message = str(loaded.value).partition("is inconsistent: ")[2]
    assert message.endswith(".")
    assert "\n" not in message
    return message


def peak_memory(read, path):
    """Return why a file was not read, if so, and the most memory it took, in MiB."""
    message = "was read"
    tracemalloc.start()
    try:
        read(path)
    except ValueError as error:
        message = str(error)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return message, peak / 2**20


READERS = pytest.mark.parametrize("read", [PublishedClassifier.load, read_released])


def edit_index(path, change, **others):
    """Change the index of a model file, and add members or replace them."""
    members = members_of(path)
    index = json.loads(members["schema.json"])
    changed = change(index)
    index = json.dumps(index) if changed is None else changed
    write(path, members | {"schema.json": index.encode()} | others, card_of(path))


def hold(path, **attributes):
    """Give the student in a model file what its publisher did not."""
    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(attributes))) as archive:
        added = {name: archive.read(name) for name in archive.namelist()}
    nodes = json.loads(added.pop("schema.json"))["content"]

    def change(index):
        state = index["content"]["student"]["content"]
        state["content"] |= nodes
        state["key_types"]["content"] += [state["key_types"]["content"][0]] * len(nodes)

    edit_index(path, change, **added)
