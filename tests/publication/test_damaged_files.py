"""Damaged and edited files."""

import hashlib
import io
import json
import os
import pickle
import sys
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.naive_bayes import GaussianNB

from sklearn_pate.publication import PublishedClassifier
from tests.publication.saving import card_of, rewrite_card, rewrite_model


@pytest.mark.slow
def test_a_missing_file_is_named(saved):
    content = card_of(saved).read_bytes()
    card_of(saved).unlink()
    with pytest.raises(FileNotFoundError, match=r"model\.json is missing"):
        PublishedClassifier.load(saved)
    card_of(saved).write_bytes(content)
    saved.unlink()
    with pytest.raises(FileNotFoundError, match=r"model\.skops is missing"):
        PublishedClassifier.load(saved)


@pytest.mark.parametrize("length", [0, 10, 1000, -1])
def test_a_truncated_model_is_refused(saved, length):
    saved.write_bytes(saved.read_bytes()[:length])
    with pytest.raises(ValueError, match=r"model\.skops .*damaged"):
        PublishedClassifier.load(saved)


def test_files_of_two_models_are_not_mixed(saved, void):
    other = saved.with_name("other.skops")
    void.save(other)
    os.replace(other, saved)
    with pytest.raises(ValueError, match="belongs to another model"):
        PublishedClassifier.load(saved)


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0.1},
        {"relation": "add-remove"},
        {"delta": 1e-9},
        {"n_queries": 200.0},
        {"assumptions": []},
        {"statement": "This fit is private."},
        {"classes": list("jihgfedcba")},
        {"remark": "approved"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_an_edited_card_is_refused(saved, changes):
    rewrite_card(saved, **changes)
    with pytest.raises(ValueError, match=r"model\.json was edited"):
        PublishedClassifier.load(saved)


@pytest.mark.parametrize("version", [0, 1, 15, 17, "16", None])
def test_an_unknown_format_is_refused(saved, version):
    rewrite_card(saved, format_version=version)
    with pytest.raises(ValueError, match="format_version"):
        PublishedClassifier.load(saved)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no.* strict JSON"),
        ("{", "strict JSON"),
        ("[]", "is not a sklearn_pate privacy card"),
        ("{}", "is not a sklearn_pate privacy card"),
        ('{"epsilon": NaN}', "NaN"),
        ('{"epsilon": 1, "epsilon": 2}', "twice"),
        ("[" * 100_000, "strict JSON"),
        ("\udcff", "strict JSON"),
        (
            '{"format": "sklearn_pate privacy card", "format_version": 16}',
            "has no sha256",
        ),
    ],
)
def test_what_is_no_card_is_refused(saved, text, message):
    card_of(saved).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=rf"model\.json .*{message}"):
        PublishedClassifier.load(saved)


def test_a_forged_pair_without_a_copy_of_the_card_is_refused(saved):
    rewrite_model(saved, lambda members: members.pop("privacy_card.json"))
    with pytest.raises(ValueError, match="no copy of its privacy card"):
        PublishedClassifier.load(saved)


def test_a_file_of_something_else_is_refused(saved):
    saved.write_bytes(pickle.dumps(GaussianNB()))
    rewrite_card(saved, sha256=hashlib.sha256(saved.read_bytes()).hexdigest())
    with pytest.raises(ValueError, match=r"model\.skops holds no copy"):
        PublishedClassifier.load(saved)


@pytest.mark.parametrize(
    "content",
    [
        {"student": GaussianNB()},
        {"student": 3, "classes": np.array(list("abcdefghij"))},
        {"student": GaussianNB(), "classes": np.arange(10)},
        [GaussianNB()],
    ],
)
def test_a_forged_model_that_lacks_its_parts_is_refused(saved, content):
    def change(members):
        card = members["privacy_card.json"]
        members.clear()
        with zipfile.ZipFile(io.BytesIO(skops.io.dumps(content))) as archive:
            members |= {name: archive.read(name) for name in archive.namelist()}
        members["privacy_card.json"] = card

    rewrite_model(saved, change)
    with pytest.raises(ValueError, match=r"model\.skops cannot be loaded"):
        PublishedClassifier.load(saved)


@pytest.mark.parametrize(
    "forge",
    [
        lambda columns: columns["kinds"]["content"].pop(),
        lambda columns: columns["is_exact"].update(content='"yes"', __id__=1),
    ],
    ids=["kinds", "is_exact"],
)
def test_what_a_forged_model_knows_of_its_columns_is_refused(saved, forge):
    def change(members):
        index = json.loads(members["schema.json"])
        forge(index["content"]["known_columns"]["content"])
        members["schema.json"] = json.dumps(index)

    rewrite_model(saved, change)
    with pytest.raises(ValueError, match=r"model\.skops cannot be loaded"):
        PublishedClassifier.load(saved)


def test_a_forged_model_runs_no_function_that_our_modules_import(saved, tmp_path):
    """sklearn_pate.students.import_module("...") would run a module."""

    def change(members):
        schema = json.loads(members["schema.json"])
        schema["content"]["student"] = {
            "__class__": "import_module",
            "__module__": "sklearn_pate.students",
            "__loader__": "ConstructorFromReduceNode",
            "content": {
                "__class__": "tuple",
                "__module__": "builtins",
                "__loader__": "TupleNode",
                "content": [
                    {
                        "__class__": "str",
                        "__module__": "builtins",
                        "__loader__": "JsonNode",
                        "content": '"this"',
                        "is_json": True,
                    }
                ],
            },
        }
        members["schema.json"] = json.dumps(schema).encode()
        for name in [*members]:  # without the parts of the student that was there
            if name.endswith(".npy") and name.encode() not in members["schema.json"]:
                del members[name]

    rewrite_model(saved, change)
    with pytest.raises(ValueError, match=r"sklearn_pate\.students\.import_module"):
        PublishedClassifier.load(saved)
    assert "this" not in sys.modules


@pytest.mark.slow
@pytest.mark.parametrize("which", ["model", "card"])
@pytest.mark.parametrize("how", ["flip a bit", "cut out", "insert"])
def test_no_damage_gives_another_answer(saved, published, digits, which, how):
    X = digits[0][::50]
    path = saved if which == "model" else card_of(saved)
    intact = path.read_bytes()
    expected = published.predict_proba(X)
    rng = np.random.default_rng(0)
    positions = rng.integers(len(intact), size=60 if which == "model" else 250)
    survived = 0
    for at in positions.tolist():
        damaged = bytearray(intact)
        if how == "flip a bit":
            damaged[at] ^= 1 << int(rng.integers(8))
        elif how == "cut out":
            del damaged[at : at + int(rng.integers(1, 9))]
        else:
            damaged[at:at] = rng.bytes(1)
        path.write_bytes(damaged)
        try:
            loaded = PublishedClassifier.load(saved)
        except ValueError:
            continue
        survived += 1
        assert loaded.card == published.card
        np.testing.assert_array_equal(loaded.predict_proba(X), expected)
    assert survived < len(positions) / 4, "blanks between the fields of the card"
