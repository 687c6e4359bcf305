"""Header of votes of shards: what they were cast on, and by which teachers."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.accounting.plurality._unique_queries import LARGEST_COUNT

__all__ = ["VoteHeader"]


@dataclass(frozen=True)
class VoteHeader:
    """What votes of shards were cast on, and by the teachers of which shards."""

    #: Unit of privacy that a shard holds whole: "row" or "group".
    unit: str
    #: Number of shards of each site.
    n_teachers: int
    #: SHA-256 of the public rows.
    public_rows: str
    #: Commitment to the key that assigns ids to shards.
    key: str
    #: Shards of these votes, by site; the name of a single table is "".
    shards: dict[str, list[int]]

    def __post_init__(self) -> None:
        if self.unit not in ("row", "group"):
            raise ValueError(
                f"privacy_unit={self.unit!r} must be 'row' or 'group', which a shard "
                "holds whole."
            )
        check_count("n_teachers", self.n_teachers, largest=LARGEST_COUNT)
        if not isinstance(self.public_rows, str) or not isinstance(self.key, str):
            raise ValueError("public_rows and key must be texts, as they were written.")
        for of_site in self.shards.values():
            if len(set(of_site)) < len(of_site):
                raise ValueError("A shard occurs twice; pass each shard once.")
            for one in of_site:
                if not 0 <= one < self.n_teachers:
                    raise ValueError(
                        f"There is no shard {one} of n_teachers={self.n_teachers}; "
                        "shards are numbered from 0."
                    )

    @property
    def n_of_all_sites(self) -> int:
        """Number of shards of all sites, empty ones included."""
        return self.n_teachers * len(self.shards)

    def merged(self, other: Self, part: str, first: str) -> Self:
        """Add the shards of another part; names of both are for messages."""
        for name, what in (
            ("unit", "protects another unit"),
            ("n_teachers", "has another number of teachers"),
            ("public_rows", "was cast on other public rows"),
            ("key", "has shards of another key"),
        ):
            mine, its = getattr(self, name), getattr(other, name)
            if mine != its:
                values = (
                    "" if name in ("public_rows", "key") else f" ({its}, not {mine})"
                )
                raise ValueError(
                    f"{part} {what} than {first}{values}; ask its site to vote again "
                    "with the same study."
                )
        shards = dict(self.shards)
        for site, more in other.shards.items():
            twice = set(more) & set(shards.get(site, ()))
            if twice:
                of_site = f" of site {site!r}" if site else ""
                raise ValueError(
                    f"{part} has votes of shard {min(twice)}{of_site}, as an earlier "
                    "part has: it was sent twice, or its rows were split over two "
                    "teachers; pass each shard once."
                )
            shards[site] = sorted([*shards.get(site, ()), *more])
        return replace(self, shards=shards)

    def to_dict(self) -> dict[str, Any]:
        """Return the header as plain Python values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Read a header, or raise TypeError, KeyError or ValueError."""
        header = cls(**{one.name: values[one.name] for one in fields(cls)})
        if not all(
            isinstance(site, str) and all(type(one) is int for one in of_site)
            for site, of_site in header.shards.items()
        ):
            raise TypeError("a field is of another type")
        return header
