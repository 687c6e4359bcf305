"""Files of JSON that another program could read in another way are refused."""

import json

import pytest

from sklearn_pate import Votes
from tests.private import VoteStudy, _read_json, parse_card, strict_json

NOT_STRICT = {
    "nothing": b"",
    "cut off": b'{"a": [1, 2',
    "nested": b"[" * 100_000,
    "17 deep": b"[" * 17 + b"]" * 17,
    "NaN": b'{"a": NaN}',
    "Infinity": b'{"a": -Infinity}',
    "a float that is infinite": b'{"a": 1e999}',
    "a long integer": b'{"a": 1' + 5000 * b"0" + b"}",
    "a name twice": b'{"a": 1, "a": 2}',
    "no text": b'{"a": "\xff"}',
    "a second value": b"{} {}",
    "single quotes": b"{'a': 1}",
}


def of_votes(path):
    path.write_bytes(b"sklearn_pate votes, format 1\n" + path.read_bytes() + b"\n")
    return Votes.load(path)


READERS = {
    "header of votes": of_votes,
    "study": VoteStudy.read,
    "domain or deployment": lambda path: _read_json("domain", str(path)),
    "card": lambda path: parse_card(path.read_bytes(), path),
}


@pytest.mark.parametrize("content", NOT_STRICT.values(), ids=NOT_STRICT)
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_every_reader_refuses_it_and_names_the_file(tmp_path, read, content):
    path = tmp_path / "given.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"given\.json") as refused:
        read(path)
    assert refused.type is ValueError
    assert len(str(refused.value)) < 300


def test_strict_json_is_read():
    value = {"a": [1, 1.5, True, None, "é"], "b": {"c": 10**99}}
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        assert strict_json(json.dumps(value).encode(encoding)) == value
