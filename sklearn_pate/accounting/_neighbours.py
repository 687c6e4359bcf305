"""Units of privacy and neighbour relations, for which costs are stated."""

from sklearn_pate.accounting._value_checks import read_table


def by_unit_and_relation(name: str) -> dict[tuple[str, str], str]:
    """Return texts of the statement by unit of privacy and relation."""
    texts = read_table("sklearn_pate.accounting", "statement.toml")[name]
    return {
        (unit, relation): text
        for unit, of_unit in texts.items()
        for relation, text in of_unit.items()
    }


#: Difference between neighbouring data sets, by unit of privacy and relation.
NEIGHBOURS = by_unit_and_relation("neighbours")


def check_neighbours(unit: str | None, relation: str | None) -> None:
    """Raise unless a neighbour relation is known for a unit of privacy."""
    if (unit, relation) not in [*NEIGHBOURS]:  # a list finds what has no hash, too
        raise ValueError(
            f"unit={unit!r} with relation={relation!r} is unknown; (unit, relation) "
            f"must be one of {[*NEIGHBOURS]}."
        )


def check_add_up(costs: str, one: tuple[str, str], other: tuple[str, str]) -> None:
    """Raise unless two costs are for one unit and one relation."""
    if one != other:
        raise ValueError(
            f"{costs} for unit={one[0]!r} with relation={one[1]!r} and for "
            f"unit={other[0]!r} with relation={other[1]!r} do not add up; state both "
            "for the same unit and relation."
        )
