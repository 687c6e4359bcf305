"""Released files in which one part was forged, or all of them alike."""

import hashlib
import io
import json
import shutil
import struct
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
import zlib
from dataclasses import replace

import numpy as np
import pytest
import skops.io
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PATEClassifier, PrivacyLeakWarning, PrivacyLedger, PublicData
from sklearn_pate._cli._report_command import read_released
from sklearn_pate.accounting import DEFAULT_ORDERS, Assumption
from sklearn_pate.accounting._statement import NEIGHBOURS
from sklearn_pate.baselines import PETDLClassifier, PrivateKNNClassifier
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    InteractiveGNMax,
    LNMax,
    PermuteAndFlip,
)
from sklearn_pate.publication import PublishedClassifier, _bounded_files, publish
from sklearn_pate.students import DistillationClassifier, VATClassifier

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
        public_batch_size=20,
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
    "LNMax": lambda blobs: vote(LNMax(gamma=0.05), n_classes=2),
    "GumbelMax": lambda blobs: vote(GumbelMax(c=0.2)),
    "PermuteAndFlip": lambda blobs: vote(PermuteAndFlip(c=np.float64(0.2))),
    "InteractiveGNMax": lambda blobs: vote(
        InteractiveGNMax(20, sigma_threshold=20.0, sigma=8.0),
        query_strategy="interactive",
    ),
    "NoisyHistogram": lambda blobs: vote(GNMax(sigma=9.0), release="histogram"),
    "Private-kNN with a check": lambda blobs: nearest(blobs, mechanism="confident"),
    "nothing private": lambda blobs: void(blobs),
    "nothing private of a sample": lambda blobs: nearest(
        blobs, mechanism=GNMax(sigma=5.0), noise_seed=1, epsilon=None
    ),
}


def void(blobs):
    with pytest.warns(PrivacyLeakWarning):
        return vote(GNMax(sigma=8.0), noise_seed=12345)


@pytest.fixture(scope="module")
def originals(blobs, tmp_path_factory):
    """Published fits, each made once."""
    made, folder = {}, tmp_path_factory.mktemp("originals")

    def original(kind):
        if kind not in made:
            path = folder / f"{len(made)}.skops"
            published_of(kind, blobs).save(path)
            made[kind] = path
        return made[kind]

    return original


@pytest.fixture
def saved(originals, tmp_path):
    """Give a copy of the files of a fit, to be forged."""

    def copy(kind):
        path = tmp_path / "model.skops"
        for suffix in (".skops", ".json"):
            shutil.copy(originals(kind).with_suffix(suffix), path.with_suffix(suffix))
        return path

    return copy


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


def forge(path, change=dict, *, curve=None, statement=None):
    """Change the card, both copies, and what the model file has of the statement."""
    members, card = members_of(path), card_of(path)
    changed = change(card)
    card = card if changed is None else changed
    index = json.loads(members["schema.json"])["content"]
    for name, edit in (curve or {}).items():
        array = np.load(io.BytesIO(members[index[name]["file"]]))
        out = io.BytesIO()
        np.save(out, edit(array))
        members[index[name]["file"]] = out.getvalue()
    if statement is not None:
        card["statement"] = statement
        schema = json.loads(members["schema.json"])
        schema["content"]["statement"]["content"] = json.dumps(statement)
        members["schema.json"] = json.dumps(schema).encode()
    write(path, members, card)


def setting(**changes):
    return lambda card: card | changes


def number(name, value):
    """Change a parameter of the mechanism, in numbers and in words."""

    def change(card):
        fields = card["mechanism_fields"]
        if name not in fields["parameters"]:
            fields = fields["parameters"]["mechanism"]
        old = fields["parameters"][name]
        fields["parameters"][name] = value
        card["mechanism"] = card["mechanism"].replace(
            f"{name}={old!r}", f"{name}={value!r}"
        )

    return change


def refused(path):
    """Return the error when a forged model is read, in both ways."""
    with pytest.raises(ValueError, match="contradicts itself or its model") as loaded:
        PublishedClassifier.load(path)
    with pytest.raises(ValueError, match="contradicts itself or its model") as read:
        read_released(path)
    assert str(loaded.value) == str(read.value)
    message = str(loaded.value).partition("its model: ")[2]
    assert message.endswith(".")
    assert "\n" not in message
    return message


# Files without changes.


@pytest.mark.parametrize("kind", FITS | OTHER_FITS)
def test_an_honest_file_is_read_with_its_statement(saved, kind):
    path = saved(kind)
    loaded, read = PublishedClassifier.load(path), read_released(path)
    assert loaded.privacy_spent_ == read.privacy_spent_
    assert str(loaded.privacy_spent_) == loaded.card["statement"]
    assert len(loaded.privacy_spent_.curve.orders) == len(DEFAULT_ORDERS)
    is_pure = kind in ("LNMax", "GumbelMax", "PermuteAndFlip")
    assert np.isfinite(loaded.privacy_spent_.curve.pure_epsilon) == is_pure


def test_a_fit_through_a_ledger_is_read_with_its_statement(tmp_path):
    ledger = PrivacyLedger(tmp_path / "a.sqlite", epsilon=90, delta=1e-5)
    published = publish(vote(GNMax(sigma=8.0), ledger=ledger))
    published.save(tmp_path / "model.skops")
    loaded = PublishedClassifier.load(tmp_path / "model.skops")
    assert loaded.privacy_spent_ == published.privacy_spent_


def test_another_process_reads_the_file_and_writes_it_again(saved):
    path = saved("ConfidentGNMax")
    code = (
        "import sys; from sklearn_pate.publication import PublishedClassifier; "
        "PublishedClassifier.load(sys.argv[1]).save(sys.argv[2])"
    )
    again = path.with_name("again.skops")
    subprocess.run([sys.executable, "-c", code, path, again], check=True)
    assert PublishedClassifier.load(again).card == card_of(path)


def test_a_card_that_promises_less_is_read(saved):
    path = saved("GNMax")
    spent = PublishedClassifier.load(path).privacy_spent_
    old, new = f"(epsilon={spent.epsilon:.3f}", "(epsilon=99.000"
    text = card_of(path)["statement"]
    assert text.count(new) == 0
    text = text.replace(text[text.index("(epsilon=") : text.index(", delta")], new)
    forge(path, setting(epsilon=99.0), statement=text)
    assert PublishedClassifier.load(path).privacy_spent_.epsilon == 99.0, old


def test_rounding_of_another_platform_is_no_contradiction(saved):
    path = saved("GNMax")
    epsilon = card_of(path)["epsilon"]
    forge(
        path,
        setting(epsilon=epsilon * (1 - 1e-12)),
        curve={"divergences": lambda values: values * (1 - 1e-12)},
    )
    assert PublishedClassifier.load(path).privacy_spent_.epsilon < epsilon
    forge(path, setting(epsilon=epsilon * (1 - 1e-8)))
    assert "it states epsilon=" in refused(path)


# One part forged: each kind of fit, each part.


@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("everywhere", [False, True])
def test_a_smaller_epsilon_than_the_price_is_refused(saved, kind, everywhere):
    path = saved(kind)
    card, wanted = card_of(path), "(epsilon=0.100, delta=1e-05)"
    text = None
    if everywhere:  # the sentence on both cards and in the model file as well
        text = card["statement"]
        start, end = text.index("(epsilon="), text.index(")-diff") + 1
        text = text[:start] + wanted + text[end:]
    forge(path, setting(epsilon=0.1), statement=text)
    assert f"it states epsilon=0.1, and {card['n_queries']} queries" in refused(path)


@pytest.mark.parametrize("kind", FITS)
def test_a_smaller_curve_than_the_price_is_refused(saved, kind):
    path = saved(kind)
    forge(path, curve={"divergences": lambda values: values / 2})
    assert "its Renyi curve is" in refused(path)
    path = saved(kind)

    def one_order(values):
        values = values.copy()
        values[100] *= 1 - 1e-6
        return values

    forge(path, curve={"divergences": one_order})
    assert "its Renyi curve is" in refused(path)


@pytest.mark.parametrize("kind", FITS)
def test_a_curve_at_other_orders_is_refused(saved, kind):
    path = saved(kind)
    forge(path, curve={"orders": lambda orders: orders * 1.5})
    assert "its Renyi curve is at other orders" in refused(path)


@pytest.mark.parametrize("kind", FITS)
def test_another_unit_or_relation_is_refused(saved, kind):
    card = card_of(saved(kind))
    for unit, relation in NEIGHBOURS.keys() - {(card["unit"], card["relation"])}:
        stated = {"unit": unit, "relation": relation}
        forge(path := saved(kind), setting(**stated))
        message = f"not those of unit={unit!r} with relation={relation!r}"
        assert message in refused(path)
        stated["neighbours"] = NEIGHBOURS[unit, relation]
        forge(path := saved(kind), setting(**stated))
        fits = (relation == "add-remove") == (kind == "Private-kNN")
        message = "its statement in words differs" if fits else "it protects unit="
        assert message in refused(path)


@pytest.mark.parametrize(
    ("unit", "relation"),
    [("party", "add-remove"), ("group", "replace-one"), ("row", "add"), ("rows", "")],
)
def test_a_relation_that_no_unit_has_is_refused(saved, unit, relation):
    path = saved("GNMax")
    forge(path, setting(unit=unit, relation=relation))
    message = f"not those of unit={unit!r} with relation={relation!r}"
    assert message in refused(path)


@pytest.mark.parametrize("kind", FITS)
def test_other_neighbours_in_words_are_refused(saved, kind):
    path = saved(kind)
    forge(path, setting(neighbours="change all rows at once"))
    assert "its neighbours are 'change all rows at once', which are" in refused(path)


@pytest.mark.parametrize("kind", FITS)
def test_another_release_is_refused(saved, kind):
    true = card_of(saved(kind))["release"]
    for release in {"answers", "sum", "model", "search", "a promise"} - {true}:
        forge(path := saved(kind), setting(release=release))
        assert f"it states release={release!r}, which" in refused(path)


@pytest.mark.parametrize("kind", FITS)
def test_another_sentence_of_an_assumption_is_refused(saved, kind):
    path = saved(kind)
    forged = [*card_of(path)["assumptions"]]
    forged[0] = {"code": forged[0]["code"], "sentence": "nothing is assumed"}
    forge(path, setting(assumptions=forged))
    code = forged[0]["code"]
    message = f"its assumption {code!r} is 'nothing is assumed' instead of 'the"
    assert message in refused(path)


def test_an_assumption_under_the_code_of_another_is_refused(saved):
    path = saved("GNMax")
    first, second, *rest = card_of(path)["assumptions"]
    forge(path, setting(assumptions=[first | {"code": second["code"]}, second, *rest]))
    assert f"its assumption {second['code']!r} is" in refused(path)


def test_an_assumption_of_somebody_else_keeps_its_sentence(tmp_path):
    pate = vote(GNMax(sigma=8.0))
    consent = Assumption("clinic-consent", "everybody consented", "Is there a form?")
    spent = pate.privacy_spent_
    pate.privacy_spent_ = replace(spent, assumptions=(*spent.assumptions, consent))
    publish(pate).save(tmp_path / "model.skops")
    loaded = PublishedClassifier.load(tmp_path / "model.skops")
    assert loaded.privacy_spent_.assumptions == (
        *spent.assumptions,
        Assumption("clinic-consent", "everybody consented"),
    )
    assert str(loaded.privacy_spent_) == str(pate.privacy_spent_)


@pytest.mark.parametrize("kind", FITS)
def test_another_mechanism_in_words_is_refused(saved, kind):
    path = saved(kind)
    forge(path, setting(mechanism="GNMax(sigma=1000.0)"))
    assert "its mechanism is GNMax(sigma=1000.0) in words, and" in refused(path)


@pytest.mark.parametrize("kind", FITS)
def test_another_kind_of_mechanism_is_refused(saved, kind):
    path = saved(kind)
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
def test_less_noise_than_the_price_is_for_is_refused(saved, kind, name, in_words):
    path = saved(kind)
    words = card_of(path)["mechanism"]

    def change(card):
        number(name, 0.7)(card)
        if not in_words:
            card["mechanism"] = words

    forge(path, change)
    message = refused(path)
    assert ("its Renyi curve is" if in_words else "in numbers") in message


@pytest.mark.parametrize("kind", FITS)
def test_more_noise_than_was_drawn_is_refused(saved, kind):
    path = saved(kind)
    forge(path, number(MORE_NOISE[kind][0], 500.0))
    assert "its statement in words differs" in refused(path)


def test_another_sampling_rate_is_refused(saved):
    path = saved("Private-kNN")
    forge(path, number("sampling_rate", 0.9))
    assert "its Renyi curve is" in refused(path)


@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("factor", [0.5, 3])
def test_another_number_of_queries_is_refused(saved, kind, factor):
    path = saved(kind)
    n_queries = int(card_of(path)["n_queries"] * factor)
    forge(path, setting(n_queries=n_queries))
    message = refused(path)
    if kind == "PETDL":
        assert (
            f"it states n_queries={n_queries}, and its mechanism has n_parts" in message
        )
    elif factor > 1:
        assert "its Renyi curve is" in message


def test_more_answers_than_were_paid_for_are_refused(saved):
    path = saved("ConfidentGNMax")
    forge(path, number("max_answers", 40))
    assert "its Renyi curve is" in refused(path)


@pytest.mark.parametrize("kind", FITS)
def test_another_number_of_teachers_is_refused(saved, kind):
    path = saved(kind)
    forge(path, setting(n_teachers=7))
    assert "its statement in words" in refused(path)


def test_the_teachers_that_are_counted_are_those_of_the_statement(saved):
    path = saved("InteractiveGNMax")
    forge(path, number("n_teachers", 10))
    assert f"it states n_teachers={N_PARTIES}, and its mechanism has" in refused(path)


@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_another_delta_is_refused(saved, kind, delta):
    path = saved(kind)
    forge(path, setting(delta=delta))
    message = refused(path)
    assert (
        "it states epsilon=" if delta < 1e-5 else "its statement in words"
    ) in message


@pytest.mark.parametrize("kind", FITS)
def test_other_classes_are_refused(saved, kind):
    path = saved(kind)
    forge(path, setting(classes=[0, 1]))
    with pytest.raises(ValueError, match="the classes in the model are not those on"):
        PublishedClassifier.load(path)
    with pytest.raises(ValueError, match="it has 2 classes, and the model has 3"):
        read_released(path)


def test_fewer_assumptions_are_refused(saved):
    path = saved("GNMax")
    forge(path, setting(assumptions=card_of(path)["assumptions"][1:]))
    assert "its statement in words" in refused(path)


def test_a_statement_in_the_model_alone_is_compared(saved):
    path = saved("GNMax")
    text = card_of(path)["statement"]
    forge(path, statement="This fit is private.")
    forge(path, setting(statement=text))
    assert "or from the statement in the model file" in refused(path)


@pytest.mark.parametrize("changes", [{"private": True}, {"epsilon": 1.0}])
def test_seeded_noise_promises_nothing(saved, changes):
    path = saved("nothing private")
    forge(path, setting(**changes))
    assert "its noise was seeded, which gives no privacy" in refused(path)


def test_seeded_noise_has_no_curve(saved):
    path = saved("nothing private")
    forge(path, curve={"divergences": lambda values: np.zeros_like(values)})
    assert "its noise was seeded" in refused(path)


def test_a_guarantee_is_not_private_and_void_at_once(saved):
    path = saved("GNMax")
    forge(path, setting(private=False))
    assert "and private=False" in refused(path)


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
def test_a_mechanism_that_is_none_is_refused(saved, fields, message):
    path = saved("GNMax")
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
    published.save(tmp_path / "model.skops")
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
        ("mechanism", lambda card, text: card.update(mechanism=text)),
        ("versions", lambda card, text: card["versions"].update({text: "1"})),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_control_characters_in_a_card_are_refused(saved, control, field, change):
    path = saved("GNMax")
    forge(path, lambda card: change(card, f"all is {control} well"))
    message = rf"has the control character U\+{ord(control[0]):04X} in its {field}, "
    for read in (PublishedClassifier.load, read_released):
        with pytest.raises(ValueError, match=message) as caught:
            read(path)
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("text", ["é", "中", "می‌خواهم", "a b", "—", "😀"])
def test_letters_of_any_language_are_no_control_characters(saved, text):
    path = saved("GNMax")
    forge(path, setting(feature_names=[text, "b"]))
    assert read_released(path).feature_names_in_[0] == text


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
    with pytest.raises(ValueError, match=r"U\+000A in its feature_names.* rename that"):
        publish(pate).save(tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


def test_the_name_of_an_unknown_type_is_printable(saved):
    path = saved("GNMax")
    members, card = members_of(path), card_of(path)
    schema = json.loads(members["schema.json"])
    schema["content"]["student"]["__module__"] = "os\x1b[2J"
    members["schema.json"] = json.dumps(schema).encode()
    write(path, members, card)
    with pytest.raises(ValueError, match="model") as caught:
        PublishedClassifier.load(path)
    assert str(caught.value).isprintable()


# Files that unpack to more than their size.

GIGABYTE = 2**30


@pytest.fixture(scope="module")
def zeros():
    """A gigabyte of zeros as a deflate stream, and its checksum."""
    block, checksum = bytes(2**24), 0
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    n_blocks = GIGABYTE // len(block)
    for _ in range(n_blocks):
        checksum = zlib.crc32(block, checksum)
    return packed * n_blocks + packer.flush(), checksum


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


@pytest.fixture
def bomb(saved, zeros):
    """Give a model file, one member of which is a gigabyte of zeros."""

    def make(name, declared=GIGABYTE):
        path, (packed, checksum) = saved("GNMax"), zeros
        if declared < GIGABYTE:
            checksum = zlib.crc32(bytes(declared))
        members, card = members_of(path), card_of(path)
        members["privacy_card.json"] = json.dumps(card, sort_keys=True).encode()
        members.pop(name, None)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for one, content in members.items():
                archive.writestr(one, content)
            archive.writestr(zipfile.ZipInfo(name), packed)
        # It was stored as it is: say that it is compressed, and how long it is.
        content = bytearray(path.read_bytes())
        for signature, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
            start = content.rindex(signature) + at
            struct.pack_into("<H", content, start, zipfile.ZIP_DEFLATED)
            numbers = (checksum, len(packed), declared)
            struct.pack_into("<III", content, start + 6, *numbers)
        path.write_bytes(content)
        card["sha256"] = hashlib.sha256(content).hexdigest()
        path.with_suffix(".json").write_text(json.dumps(card))
        return path

    return make


READERS = pytest.mark.parametrize("read", [PublishedClassifier.load, read_released])


@READERS
@pytest.mark.parametrize("declared", [GIGABYTE, 1000], ids=["declared", "hidden"])
def test_a_card_of_a_gigabyte_is_not_unpacked(bomb, read, declared):
    message, memory = peak_memory(read, bomb("privacy_card.json", declared))
    assert (
        "no copy of its privacy card" in message or "differs from the copy" in message
    )
    assert memory < 100


@READERS
def test_an_index_of_a_gigabyte_is_not_unpacked(bomb, read):
    message, memory = peak_memory(read, bomb("schema.json"))
    assert "schema.json is larger than" in message
    assert memory < 100


@READERS
@pytest.mark.parametrize("name", ["more.npy", "classes"])
def test_what_a_member_hides_is_not_unpacked(bomb, saved, read, name):
    if name == "classes":
        name = json.loads(members_of(saved("GNMax"))["schema.json"])["content"]
        name = name["classes"]["file"]
    message, memory = peak_memory(read, bomb(name, declared=1000))
    refused_by_load = (
        f"does not name {name}" in message or "cannot be loaded" in message
    )
    assert message == "was read" if read is read_released else refused_by_load
    assert memory < 100


def test_a_model_larger_than_may_be_is_refused(saved, monkeypatch):
    path = saved("GNMax")
    monkeypatch.setattr(_bounded_files, "LARGEST_MODEL", 5000)
    with pytest.raises(ValueError, match="larger than the model may be, 5000 bytes"):
        PublishedClassifier.load(path)
    monkeypatch.setattr(_bounded_files, "LARGEST_MODEL", path.stat().st_size)
    with pytest.raises(ValueError, match=r"no file that skops can read .* larger than"):
        PublishedClassifier.load(path)


def test_what_would_not_be_read_again_is_not_saved(saved, monkeypatch):
    loaded = PublishedClassifier.load(path := saved("GNMax"))
    monkeypatch.setattr(_bounded_files, "LARGEST_MODEL", 5000)
    with pytest.raises(ValueError, match="publish a smaller student"):
        loaded.save(path.with_name("other.skops"))
    assert not path.with_name("other.skops").exists()


def test_a_card_file_larger_than_may_be_is_refused(saved):
    path = saved("GNMax")
    with open(path.with_suffix(".json"), "ab") as file:
        file.write(b" " * _bounded_files.LARGEST_CARD)
    for read in (PublishedClassifier.load, read_released):
        with pytest.raises(ValueError, match="larger than the privacy card may be"):
            read(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_member_whose_size_is_not_bounded_is_refused(saved, method):
    path = saved("GNMax")
    members, card = members_of(path), card_of(path)
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    card["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_suffix(".json").write_text(json.dumps(card))
    with pytest.raises(ValueError, match="is packed by method"):
        PublishedClassifier.load(path)


def test_a_member_that_occurs_twice_is_refused(saved):
    path = saved("GNMax")
    card = card_of(path)
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        zipfile.ZipFile(path, "a") as archive,
    ):
        archive.writestr("schema.json", archive.read("schema.json"))
    card["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_suffix(".json").write_text(json.dumps(card))
    with pytest.raises(ValueError, match="a member occurs twice"):
        PublishedClassifier.load(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"delta": 1e999}', "a number is too large"),
        ('{"n_queries": ' + "9" * 200 + "}", "a number is too long"),
        ('{"classes": ' + "[" * 20 + "]" * 20 + "}", "nested more than 16 deep"),
    ],
)
def test_numbers_and_nesting_are_bounded(saved, text, message):
    path = saved("GNMax")
    path.with_suffix(".json").write_text(text)
    for read in (PublishedClassifier.load, read_released):
        with pytest.raises(ValueError, match=message):
            read(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (setting(remark="approved"), "an unknown field 'remark'"),
        (lambda card: card.pop("unit") and None, "no field 'unit'"),
        (setting(n_queries=True), "its n_queries is of another type"),
        (setting(n_queries=0), "its n_queries is 0"),
        (setting(n_teachers=2**60), "its n_teachers is 1152921504606846976"),
        (setting(classes=[0, None]), "its classes is of another type"),
        (setting(versions={"a": 1}), "its versions is of another type"),
        (setting(assumptions=["it rains"]), "its assumptions is of another type"),
        (setting(assumptions=[]), "its assumptions must be at least one, each a"),
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
        (setting(release=None), "its release is of another type"),
    ],
)
def test_a_field_of_another_kind_is_refused(saved, change, message):
    path = saved("GNMax")
    forge(path, change)
    for read in (PublishedClassifier.load, read_released):
        with pytest.raises(ValueError, match=f"model.json is damaged: .*{message}"):
            read(path)


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


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_an_archive_in_a_member_is_not_unpacked(saved, packing):
    path = saved("GNMax")
    hold(path, extra_=sparse.csr_matrix(np.eye(2)))
    (name,) = (one for one in members_of(path) if one.endswith(".npz"))
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w", packing) as archive:
        for part, array in (
            ("format", np.array(b"csr")),
            ("shape", np.array([2, 2])),
            ("indices", np.array([0, 1], np.int32)),
            ("indptr", np.array([0, 1, 2], np.int32)),
            ("data", np.zeros(200 * 2**20, np.int8)),
        ):
            content = io.BytesIO()
            np.save(content, array)
            archive.writestr(f"{part}.npy", content.getvalue())

    def change(index):
        attributes = index["content"]["student"]["content"]["content"]
        # skops trusts this loader.
        attributes["extra_"] |= {"__class__": "spmatrix", "__module__": "scipy.sparse"}

    edit_index(path, change, **{name: outer.getvalue()})
    message, memory = peak_memory(PublishedClassifier.load, path)
    assert "is larger than" in message or "is packed by method 12" in message
    assert memory < 100


@READERS
def test_an_index_of_many_empty_parts_is_not_parsed(saved, read):
    path = saved("GNMax")
    edit_index(
        path, lambda index: json.dumps(index)[:-1] + f', "x": [{"[]," * 10**6}[]]}}'
    )
    message, memory = peak_memory(read, path)
    assert "schema.json has more than" in message
    assert memory < 60


@pytest.mark.parametrize("shape", [(20_000_000,), (20_000_000, 0)])
def test_classes_without_a_byte_are_not_listed(saved, shape):
    path = saved("GNMax")
    members = members_of(path)
    index = json.loads(members["schema.json"])
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|V0", "fortran_order": False, "shape": shape}
    )
    members[index["content"]["classes"]["file"]] = header.getvalue()
    write(path, members, card_of(path))
    message, memory = peak_memory(PublishedClassifier.load, path)
    assert "the classes in the model are not those on the card" in message
    assert memory < 60


def test_a_member_is_read_once_only(saved):
    path = saved("GNMax")

    def change(index):
        copy = dict(index["content"]["classes"], __id__=7)
        index["content"]["student"]["content"]["content"]["copy"] = copy

    edit_index(path, change)
    with pytest.raises(ValueError, match=r"schema\.json names .* for two objects"):
        PublishedClassifier.load(path)


def test_a_member_that_the_index_does_not_name_is_refused(saved):
    path = saved("GNMax")
    write(path, members_of(path) | {"big.npy": bytes(1000)}, card_of(path))
    with pytest.raises(ValueError, match=r"its index does not name big\.npy"):
        PublishedClassifier.load(path)


def test_a_member_far_larger_than_the_file_is_refused(saved):
    path = saved("GNMax")
    hold(path, extra_=np.zeros(100 * 2**20, np.int8))
    message, memory = peak_memory(PublishedClassifier.load, path)
    assert "no file that skops can read" in message
    assert "is larger than" in message
    assert memory < 100


def test_an_honest_student_of_zeros_comes_back(tmp_path):
    published = publish(vote(GNMax(sigma=8.0)))
    published.student_.extra_ = np.zeros(60 * 2**20, np.int8)
    published.save(tmp_path / "model.skops")
    loaded = PublishedClassifier.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.student_.extra_, 0)


def test_honest_sparse_and_packed_parts_come_back(tmp_path):
    published = publish(vote(GNMax(sigma=8.0)))
    packed = io.BytesIO()
    np.savez_compressed(packed, a=np.arange(9))
    published.student_.rows_ = sparse.csr_matrix(np.eye(5))
    published.student_.archive_ = packed.getvalue()
    published.save(tmp_path / "model.skops")
    trusted = ["scipy.sparse._csr.csr_matrix"]
    loaded = PublishedClassifier.load(tmp_path / "model.skops", trusted=trusted)
    np.testing.assert_array_equal(loaded.student_.rows_.toarray(), np.eye(5))
    assert loaded.student_.archive_ == packed.getvalue()


def test_a_network_is_not_built_for_more_features_than_its_weights(tmp_path):
    pytest.importorskip("skorch")
    X = np.random.default_rng(0).normal(size=(30, 2))
    pate = PATEClassifier(
        GaussianNB(),
        VATClassifier(max_epochs=1),
        mechanism=GNMax(sigma=8.0),
        epsilon=None,
        classes=[0, 1],
    )
    path = tmp_path / "model.skops"
    publish(pate.fit_from_votes(X, np.tile(X[:, 0] > 0, (60, 1)).astype(int))).save(
        path
    )

    def change(index):
        state = index["content"]["student"]["content"]["content"]
        # More than any machine could allocate, for the number that is shared no more.
        state["input_shape_"]["content"][0] |= {"content": str(10**13), "__id__": None}

    edit_index(path, change)
    with pytest.raises(ValueError, match=r"size mismatch for 0\.weight"):
        PublishedClassifier.load(path)


# Display of a forged student.


@pytest.mark.parametrize(
    "attribute", ["_doc_link_template", "__doc_link_template", "_doc_link_module"]
)
@pytest.mark.parametrize("where", ["itself", "in a list"])
def test_a_student_with_html_of_its_own_is_refused(saved, attribute, where):
    path = saved("GNMax")
    inner = LogisticRegression()
    vars(inner)[attribute] = text = '"><img src=x onerror=alert(document.cookie)>'
    hold(path, **({attribute: text} if where == "itself" else {"parts": [inner]}))
    with pytest.raises(ValueError, match="links to documentation of its own"):
        PublishedClassifier.load(path)


@pytest.mark.parametrize(
    "names",
    [["\x1b[2J", "b"], ["a"], "ab", ["a", 2], ["a", "\u202eb"]],
    ids=ascii,
)
def test_names_of_columns_are_printable_texts(saved, names):
    path = saved("GNMax")
    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(names))) as archive:
        node = json.loads(archive.read("schema.json"))
    edit_index(path, lambda index: index["content"].update(column_names=node))
    with pytest.raises(ValueError, match="column names must be 2 printable") as message:
        PublishedClassifier.load(path)
    assert str(message.value).isprintable()


@READERS
def test_a_student_of_another_class_than_on_the_card_is_refused(saved, read):
    path = saved("GNMax")
    forge(path, setting(student="Trusted by NIST"))
    with pytest.raises(ValueError, match=r"is a sklearn\.naive_bayes\.GaussianNB, and"):
        read(path)


def test_a_number_of_features_that_the_student_does_not_take_is_refused(saved):
    path = saved("GNMax")
    forge(path, setting(n_features=2**53))
    with pytest.raises(ValueError, match="takes 2 features, and that of the card 9007"):
        PublishedClassifier.load(path)
