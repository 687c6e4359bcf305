"""Files that unpack to more than their size."""

import hashlib
import io
import json
import struct
import zipfile
import zlib

import numpy as np
import pytest
from scipy import sparse
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PATEClassifier
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.publication import PublishedClassifier, publish
from sklearn_pate.students import FixMatchClassifier
from tests.private import _model_file, read_released
from tests.publication.forging import (
    READERS,
    card_of,
    edit_index,
    hold,
    members_of,
    peak_memory,
    vote,
    write,
)

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


@pytest.fixture
def bomb(honest, zeros):
    """Give a model file, one member of which is a gigabyte of zeros."""

    def make(name, declared=GIGABYTE):
        path, (packed, checksum) = honest("GNMax"), zeros
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
def test_what_a_member_hides_is_not_unpacked(bomb, honest, read, name):
    if name == "classes":
        name = json.loads(members_of(honest("GNMax"))["schema.json"])["content"]
        name = name["classes"]["file"]
    message, memory = peak_memory(read, bomb(name, declared=1000))
    refused_by_load = (
        f"does not name {name}" in message or "cannot be loaded" in message
    )
    assert message == "was read" if read is read_released else refused_by_load
    assert memory < 100


def test_a_model_larger_than_may_be_is_refused(honest, monkeypatch):
    path = honest("GNMax")
    monkeypatch.setattr(_model_file, "LARGEST_MODEL", 3000)
    with pytest.raises(
        ValueError, match="larger than 3000 bytes, the limit for the model"
    ):
        PublishedClassifier.load(path)
    monkeypatch.setattr(_model_file, "LARGEST_MODEL", path.stat().st_size)
    with pytest.raises(ValueError, match=r"no file that skops can read .* larger than"):
        PublishedClassifier.load(path)


def test_what_would_not_be_read_again_is_not_saved(honest, monkeypatch):
    loaded = PublishedClassifier.load(path := honest("GNMax"))
    monkeypatch.setattr(_model_file, "LARGEST_MODEL", 3000)
    with pytest.raises(ValueError, match="publish a smaller student"):
        loaded.save(path.with_name("other.skops"))
    assert not path.with_name("other.skops").exists()


def test_a_card_file_larger_than_may_be_is_refused(honest):
    path = honest("GNMax")
    with open(path.with_suffix(".json"), "ab") as file:
        file.write(b" " * _model_file.LARGEST_CARD)
    for read in (PublishedClassifier.load, read_released):
        with pytest.raises(
            ValueError,
            match="larger than 16777216 bytes, the limit for the privacy card",
        ):
            read(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_member_whose_size_is_not_bounded_is_refused(honest, method):
    path = honest("GNMax")
    members, card = members_of(path), card_of(path)
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    card["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_suffix(".json").write_text(json.dumps(card))
    with pytest.raises(ValueError, match="is packed by method"):
        PublishedClassifier.load(path)


def test_a_member_that_occurs_twice_is_refused(honest):
    path = honest("GNMax")
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


@pytest.mark.thorough
@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_an_archive_in_a_member_is_not_unpacked(honest, packing):
    path = honest("GNMax")
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
def test_an_index_of_many_empty_parts_is_not_parsed(honest, read):
    path = honest("GNMax")
    edit_index(
        path, lambda index: json.dumps(index)[:-1] + f', "x": [{"[]," * 10**6}[]]}}'
    )
    message, memory = peak_memory(read, path)
    assert "schema.json has more than" in message
    assert memory < 60


@pytest.mark.parametrize("shape", [(20_000_000,), (20_000_000, 0)])
def test_classes_without_a_byte_are_not_listed(honest, shape):
    path = honest("GNMax")
    members = members_of(path)
    index = json.loads(members["schema.json"])
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|V0", "fortran_order": False, "shape": shape}
    )
    members[index["content"]["classes"]["file"]] = header.getvalue()
    write(path, members, card_of(path))
    message, memory = peak_memory(PublishedClassifier.load, path)
    assert "the classes of the model differ from those on the card" in message
    assert memory < 60


def test_a_member_is_read_once_only(honest):
    path = honest("GNMax")

    def change(index):
        copy = dict(index["content"]["classes"], __id__=7)
        index["content"]["student"]["content"]["content"]["copy"] = copy

    edit_index(path, change)
    with pytest.raises(ValueError, match=r"schema\.json names .* for two objects"):
        PublishedClassifier.load(path)


def test_a_member_that_the_index_does_not_name_is_refused(honest):
    path = honest("GNMax")
    write(path, members_of(path) | {"big.npy": bytes(1000)}, card_of(path))
    with pytest.raises(ValueError, match=r"its index does not name big\.npy"):
        PublishedClassifier.load(path)


def test_a_member_far_larger_than_the_file_is_refused(honest):
    path = honest("GNMax")
    hold(path, extra_=np.zeros(100 * 2**20, np.int8))
    message, memory = peak_memory(PublishedClassifier.load, path)
    assert "no file that skops can read" in message
    assert "is larger than" in message
    assert memory < 100


@pytest.mark.thorough
def test_an_unchanged_student_of_zeros_is_read(tmp_path):
    pate = vote(GNMax(sigma=8.0))
    pate.student_.extra_ = np.zeros(60 * 2**20, np.int8)
    publish(pate).save(tmp_path / "model.skops")
    loaded = PublishedClassifier.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.student_.extra_, 0)


def test_unchanged_sparse_and_packed_parts_are_read(tmp_path):
    pate = vote(GNMax(sigma=8.0))
    packed = io.BytesIO()
    np.savez_compressed(packed, a=np.arange(9))
    pate.student_.rows_ = sparse.csr_matrix(np.eye(5))
    pate.student_.archive_ = packed.getvalue()
    publish(pate).save(tmp_path / "model.skops")
    trusted = ["scipy.sparse._csr.csr_matrix"]
    loaded = PublishedClassifier.load(tmp_path / "model.skops", trusted=trusted)
    np.testing.assert_array_equal(loaded.student_.rows_.toarray(), np.eye(5))
    assert loaded.student_.archive_ == packed.getvalue()


def test_a_network_is_not_built_for_more_features_than_its_weights(tmp_path):
    pytest.importorskip("skorch")
    X = np.random.default_rng(0).normal(size=(30, 2))
    pate = PATEClassifier(
        GaussianNB(),
        FixMatchClassifier(max_epochs=1),
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
