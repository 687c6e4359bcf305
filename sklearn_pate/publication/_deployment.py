"""Description of a published model by the people responsible for it."""

import re
from dataclasses import dataclass, fields
from typing import Any

from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.accounting._value_checks import (
    check_count,
    check_option,
    control_character,
)

CURATOR_KINDS = ("government", "industry", "nonprofit")
SECTORS = ("technology", "healthcare", "education", "government", "energy", "finance")
_CHOICES = {"curator_kind": CURATOR_KINDS, "sector": SECTORS}
_LISTS = ("audits", "authors")
_LONGEST = 2000
# One to three words that follow "one".
_UNIT_NAME = re.compile(r"[^\W\d_](?:[^\W_]|['-])*(?: (?:[^\W_]|['-])+){0,2}")
_ARTICLES = ("a", "an", "one", "the", "each", "every")


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """Description of a published model by the people responsible for it.

    All fields are optional. A privacy report has a line to fill in for each missing
    field that readers expect. **All fields are published, and no privacy statement
    covers the fields**: write no number that was computed on private rows.

    Parameters
    ----------
    name : str, default=None
        Name of the model.

    prediction : str, default=None
        Predicted quantity, and people for whom it is predicted.

    one_row : str, default=None
        Content of one row of the data, such as "one stay in hospital".

    unit_name : str, default=None
        Name of one unit of privacy, such as "patient": a noun in the singular, to
        follow "one". The report asks the data holder to confirm that each patient is
        one unit.

    n_units : int, default=None
        Number of rows or parties, if public by the privacy statement. Refused if groups
        are the unit, as the number of groups is protected.

    intended_use : str, default=None
        Users and purposes of the model.

    description : str, default=None
        People in the private data, and collection of the data.

    region : str, default=None
        Region of the people in the data.

    sector : {"technology", "healthcare", "education", "government", "energy", \
"finance"}, default=None
        Sector of the data holder.

    curator : str, default=None
        Organisation that holds the private data.

    curator_kind : {"government", "industry", "nonprofit"}, default=None
        Kind of `curator`.

    controller : str, default=None
        Organisation responsible by data protection law.

    model_owner : str, default=None
        Person or team who maintains the model.

    contact : str, default=None
        Address for questions and complaints.

    recipients : str, default=None
        Recipients of the model.

    retention : str, default=None
        Time for which data and model are stored.

    data_security : str, default=None
        Protection of the private data before and during the fit.

    epsilon_justification : str, default=None
        Reason why this epsilon is acceptable.

    tuning : str, default=None
        Method that chose the parameters, and data that the method used.

    audits : sequence of str, default=()
        Tests against attacks, with their results, one text each. The result of an audit
        on private rows is sensitive: state such a result only if it may be published.

    legal_basis : str, default=None
        Legal basis of the processing.

    impact_assessment : str, default=None
        Reference of the data protection impact assessment.

    authors : sequence of str, default=()
        Authors of this description.

    Raises
    ------
    ValueError
        If a field is invalid, such as a text that is empty, longer than 2000
        characters, or with control characters.

    Notes
    -----
    The fields follow the registry of differential privacy deployments
    (https://registry.opendp.org), NIST SP 800-226 (2025), "Guidelines for evaluating
    differential privacy guarantees", and Opinion 28/2024 of the European Data
    Protection Board on AI models. See :doc:`/guide/statement`.

    Examples
    --------
    >>> from sklearn_pate.publication import Deployment
    >>> deployment = Deployment(
    ...     name="Readmission within 30 days",
    ...     unit_name="patient",
    ...     curator="City Hospital",
    ...     curator_kind="nonprofit",
    ...     audits=["membership inference on public rows: no better than chance"],
    ... )
    >>> deployment.to_dict()["unit_name"]
    'patient'
    >>> "contact" in deployment.missing()
    True
    """

    name: str | None = None
    prediction: str | None = None
    one_row: str | None = None
    unit_name: str | None = None
    n_units: int | None = None
    intended_use: str | None = None
    description: str | None = None
    region: str | None = None
    sector: str | None = None
    curator: str | None = None
    curator_kind: str | None = None
    controller: str | None = None
    model_owner: str | None = None
    contact: str | None = None
    recipients: str | None = None
    retention: str | None = None
    data_security: str | None = None
    epsilon_justification: str | None = None
    tuning: str | None = None
    audits: tuple[str, ...] = ()
    legal_basis: str | None = None
    impact_assessment: str | None = None
    authors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name in _LISTS:
                object.__setattr__(self, one.name, _texts(one.name, value))
            elif one.name != "n_units" and value is not None:
                object.__setattr__(self, one.name, one_line(one.name, value))
        for name, choices in _CHOICES.items():
            if getattr(self, name) is not None:
                check_option(name, getattr(self, name), choices)
        _check_unit_name(self.unit_name)
        check_count("n_units", self.n_units, also=(None,))
        if self.n_units is not None:
            object.__setattr__(self, "n_units", int(self.n_units))

    def missing(self) -> list[str]:
        """List the fields that are not filled in.

        Returns
        -------
        names : list of str
            Names of the fields, in the order of reports.
        """
        given = self.to_dict()
        return [one.name for one in fields(self) if one.name not in given]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are filled in as plain values.

        Returns
        -------
        given : dict
            Values for strict JSON, in the order of reports. ``Deployment(**given)`` is
            an equal description.
        """
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        return {
            name: [*value] if isinstance(value, tuple) else value
            for name, value in given.items()
            if value not in (None, ())
        }

    def check_for(self, spent: PrivacySpent) -> None:
        """Raise ValueError if a field contradicts a privacy statement.

        Parameters
        ----------
        spent : PrivacySpent
            Statement of the fit to publish.

        Raises
        ------
        ValueError
            If `n_units` is given but not public by the statement.
        """
        if self.n_units is not None and not spent.facts.count_is_public:
            raise ValueError(
                f"n_units={self.n_units!r} must not be published: the statement hides "
                f"whether one {spent.unit} is in the data, and so hides the exact "
                "number. Leave n_units at None, and write an order of magnitude in "
                "description."
            )


def checked_deployment(
    deployment: Deployment | None, spent: PrivacySpent
) -> Deployment:
    """Return a deployment that fits a statement, an empty one for None."""
    if deployment is None:
        return Deployment()
    if not isinstance(deployment, Deployment):
        raise ValueError(
            f"deployment={deployment!r} must be a Deployment; create one by "
            "Deployment(name=..., intended_use=...)."
        )
    deployment.check_for(spent)
    return deployment


def one_line(name: str, value: Any) -> str:
    """Return a text in one line."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(
            f"{name}={value!r} must be a text of at least one letter; leave it out if "
            "nothing is known."
        )
    text = " ".join(value.split())
    if len(text) > _LONGEST:
        raise ValueError(
            f"{name} has {len(text)} characters, more than {_LONGEST}; shorten it, and "
            "name a document that has the rest."
        )
    if character := control_character(text):
        raise ValueError(
            f"{name} has the control character {character}, which could hide or "
            "reorder text; remove it."
        )
    return text


def _texts(name: str, values: Any) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, (list, tuple)):
        raise ValueError(
            f"{name}={values!r} must be a list of texts, such as {name}=['...']."
        )
    return tuple(one_line(f"an item of {name}", one) for one in values)


def _check_unit_name(name: str | None) -> None:
    if name is None:
        return
    first = name.split()[0].lower()
    if not _UNIT_NAME.fullmatch(name) or first in _ARTICLES or len(name) > 40:
        raise ValueError(
            f"unit_name={name!r} must be one to three words without an article, to be "
            "read after 'one', such as 'patient' or 'school class'."
        )
