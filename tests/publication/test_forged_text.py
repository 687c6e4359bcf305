"""Files whose words, fields or student were forged."""

import io
import json
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.publication import PublishedClassifier, publish
from tests.private import read_released
from tests.publication.forging import (
    READERS,
    card_of,
    edit_index,
    forge,
    hold,
    members_of,
    setting,
    vote,
    write,
)

# Characters that a terminal or a page takes for something else.

CONTROLS = ["\x1b[2J", "\x07", "\x9b31m", "\n", "\u2028", "\u202e", "\u2066", "\u00ad"]


@pytest.mark.parametrize("control", CONTROLS, ids=ascii)
@pytest.mark.parametrize(
    ("field", "change"),
    [
        (
            "assumptions",
            lambda card, text: card["assumptions"].append(
                {"code": "mine", "sentence": text}
            ),
        ),
        ("classes", lambda card, text: card["classes"].append(text)),
        ("feature_names", lambda card, text: card.update(feature_names=[text])),
        ("statement", lambda card, text: card.update(statement=text)),
        ("versions", lambda card, text: card["versions"].update({text: "1"})),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_control_characters_in_a_card_are_refused(honest, control, field, change):
    path = honest("GNMax")
    forge(path, lambda card: change(card, f"all is {control} well"))
    message = rf"has the control character U\+{ord(control[0]):04X} in its {field}, "
    for read in (PublishedClassifier.load, read_released):
        with pytest.raises(ValueError, match=message) as caught:
            read(path)
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("text", ["é", "中", "می‌خواهم", "a b", "—", "😀"])
def test_letters_of_any_language_are_no_control_characters(honest, text):
    path = honest("GNMax")
    forge(path, setting(feature_names=[text, "b"]))
    assert read_released(path).feature_names_in_[0] == text


@pytest.mark.slow
def test_control_characters_are_refused_before_anything_is_saved(blobs, tmp_path):
    pd = pytest.importorskip("pandas")
    X, y, X_public, _ = blobs
    names = ["height\n", "weight"]
    pate = PATEClassifier(GaussianNB(), GaussianNB(), n_teachers=20, epsilon=9.0)
    pate.fit(
        pd.DataFrame(X, columns=names),
        y,
        X_public=PublicData(pd.DataFrame(X_public, columns=names)),
    )
    with pytest.raises(ValueError, match=r"U\+000A in its feature_names.* remove it"):
        publish(pate).save(tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


def test_the_name_of_an_unknown_type_is_printable(honest):
    path = honest("GNMax")
    members, card = members_of(path), card_of(path)
    schema = json.loads(members["schema.json"])
    schema["content"]["student"]["__module__"] = "os\x1b[2J"
    members["schema.json"] = json.dumps(schema).encode()
    write(path, members, card)
    with pytest.raises(ValueError, match="model") as caught:
        PublishedClassifier.load(path)
    assert str(caught.value).isprintable()


# Fields of a card.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"delta": 1e999}', "a number is too large"),
        ('{"n_queries": ' + "9" * 200 + "}", "a number is too long"),
        ('{"classes": ' + "[" * 20 + "]" * 20 + "}", "nested more than 16 deep"),
    ],
)
def test_numbers_and_nesting_are_bounded(honest, text, message):
    path = honest("GNMax")
    path.with_suffix(".json").write_text(text)
    for read in (PublishedClassifier.load, read_released):
        with pytest.raises(ValueError, match=message):
            read(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (setting(remark="approved"), "an unknown field 'remark'"),
        (lambda card: card.pop("unit") and None, "no field 'unit'"),
        (setting(n_queries=True), "its n_queries has the wrong type"),
        (setting(n_queries=0), "its n_queries is 0"),
        (setting(n_teachers=2**60), "its n_teachers is 1152921504606846976"),
        (setting(classes=[0, None]), "its classes has the wrong type"),
        (setting(versions={"a": 1}), "its versions has the wrong type"),
        *(
            (setting(versions=versions), "its versions has '")
            for versions in (
                {"python": "<script>alert(1)</script>"},
                {"<b>numpy</b>": "2.0"},
                {"python": ""},
                {"python": "3.11 (certified)"},
                {"python": "3" * 100},
            )
        ),
        *(
            (setting(date=date), "its date has '")
            for date in (
                *("2099-13-77 lies", "2099-13-77", "2025-02-30", "2099-12-31"),
                *("", "today", "20250101", "2025-01-01T00:00", "<b>2025-01-01</b>"),
            )
        ),
        *(
            (setting(model_fingerprint=text), "its model_fingerprint has '")
            for text in ("", "<b>", 64 * "A", 63 * "a")
        ),
        (setting(assumptions=["it rains"]), "its assumptions has the wrong type"),
        (setting(assumptions=[]), "its assumptions must be at least one pair"),
        (setting(assumptions=[{"code": "rain"}]), "its assumptions must be at least"),
        (
            setting(assumptions=[{"code": "rain", "sentence": ["it rains"]}]),
            "its assumptions must be at least one",
        ),
        (
            setting(assumptions=[{"code": "rain", "sentence": "it rains", "x": "y"}]),
            "its assumptions must be at least one",
        ),
        (lambda card: card.pop("relation") and None, "no field 'relation'"),
        (setting(relation=None), "its relation has the wrong type"),
    ],
)
def test_a_field_of_another_kind_is_refused(honest, change, message):
    path = honest("GNMax")
    forge(path, change)
    for read in (PublishedClassifier.load, read_released):
        with pytest.raises(ValueError, match=f"model.json is damaged: .*{message}"):
            read(path)


# Display of a forged student.


@pytest.mark.parametrize(
    "attribute", ["_doc_link_template", "__doc_link_template", "_doc_link_module"]
)
@pytest.mark.parametrize("where", ["itself", "in a list"])
def test_a_student_with_html_of_its_own_is_refused(honest, attribute, where):
    path = honest("GNMax")
    inner = LogisticRegression()
    vars(inner)[attribute] = text = '"><img src=x onerror=alert(document.cookie)>'
    hold(path, **({attribute: text} if where == "itself" else {"parts": [inner]}))
    with pytest.raises(ValueError, match="has its own link to documentation"):
        PublishedClassifier.load(path)


@pytest.mark.parametrize(
    "names",
    [["\x1b[2J", "b"], ["a"], "ab", ["a", 2], ["a", "\u202eb"]],
    ids=ascii,
)
def test_names_of_columns_are_printable_texts(honest, names):
    path = honest("GNMax")
    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(names))) as archive:
        node = json.loads(archive.read("schema.json"))
    edit_index(path, lambda index: index["content"].update(column_names=node))
    with pytest.raises(ValueError, match="column names must be 2 printable") as message:
        PublishedClassifier.load(path)
    assert str(message.value).isprintable()


@READERS
def test_a_student_of_another_class_than_on_the_card_is_refused(honest, read):
    path = honest("GNMax")
    forge(path, setting(model="Trusted by NIST"))
    with pytest.raises(ValueError, match=r"is a sklearn\.naive_bayes\.GaussianNB, but"):
        read(path)


@pytest.mark.parametrize(
    "change",
    [
        setting(n_features=3),
        setting(feature_names=["b", "a"]),
        setting(model_fingerprint=64 * "0"),
    ],
)
@pytest.mark.parametrize("student", [DummyClassifier(), GaussianNB()])
def test_a_card_of_another_model_is_refused(tmp_path, student, change):
    path = tmp_path / "model.skops"
    pate = vote(GNMax(sigma=8.0))
    pate.student_ = student.fit(np.eye(2), [0, 1])
    publish(pate).save(path)
    PublishedClassifier.load(path)
    forge(path, change)
    with pytest.raises(ValueError, match=r"holds another model than|has 2 features"):
        PublishedClassifier.load(path)


def test_a_number_of_features_that_the_student_does_not_take_is_refused(honest):
    path = honest("GNMax")
    forge(path, setting(n_features=2**53))
    with pytest.raises(ValueError, match="has 2 features, but the card has 9007"):
        PublishedClassifier.load(path)
