"""Fields of the registry of differential privacy deployments, to check records with.

Written from its schema, of which it has the structure, the required fields and the
words that are allowed. A record has no other fields.
"""

import re

TEXT, NUMBER, INTEGER = "a text", "a number", "an integer"


class Words(tuple):
    """Texts that are allowed."""


class Required(str):
    """Name of a field that must be there."""

    __slots__ = ()


R = Required
SCHEMA = {
    R("url_slug"): TEXT,
    R("deployment"): {
        R("basic"): {
            R("name"): TEXT,
            R("data_curators"): [
                {
                    R("data_curator_name"): TEXT,
                    R("data_curator_type"): Words(
                        ("Government", "Industry", "Nonprofit")
                    ),
                }
            ],
            R("description"): TEXT,
            R("intended_use"): TEXT,
            R("data_product_type"): Words(
                (
                    "Summary statistics",
                    "Machine learning model",
                    "Dataset",
                    "Synthetic data",
                    "Interactive API",
                    "SQL queries",
                )
            ),
            R("data_product_region"): TEXT,
            "data_product_sector": Words(
                (
                    "Technology",
                    "Healthcare",
                    "Education",
                    "Government",
                    "Energy",
                    "Finance",
                )
            ),
            R("publication_date"): re.compile(r"\d{4}-\d{2}-\d{2}"),
        },
        "dp_variant": {
            "variant_name": Words(
                (
                    "Pure DP",
                    "Approximate DP",
                    "Zero-concentrated DP",
                    "Renyi DP",
                    "Custom",
                )
            ),
            "data_domain": TEXT,
            "unprotected_quantities": TEXT,
        },
        "privacy_loss": {
            "privacy_unit": TEXT,
            "privacy_unit_details": TEXT,
            "number_of_privacy_units": INTEGER,
            "privacy_parameters": {"epsilon": NUMBER, "delta": NUMBER, "rho": NUMBER},
            "privacy_parameters_details": TEXT,
        },
        "deployment_model": {
            "model_name": Words(("Local", "Central", "Shuffle", "Federated", "Varies")),
            "model_name_details": TEXT,
            "trust_assumptions": TEXT,
            "actors": TEXT,
            "release_type": Words(("One release", "Many releases")),
            "release_type_details": TEXT,
            "data_source_type": Words(("Static", "Dynamic")),
            "data_source_type_details": TEXT,
            "access_type": Words(("Interactive", "Non-interactive")),
            "access_type_details": TEXT,
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": TEXT,
            "mechanisms": TEXT,
            "composition": TEXT,
            "post_processing": TEXT,
            "justification": TEXT,
            "utility": TEXT,
            "additional_information": TEXT,
        },
        R("administrative"): {
            R("status"): Words(
                (
                    "Converted",
                    "Draft",
                    "Pending",
                    "Changes Required",
                    "Approved",
                    "Approved (Update Requested)",
                    "Approved (Pending)",
                )
            ),
            R("registry_authors"): [TEXT],
            R("tier"): INTEGER,
        },
    },
}


def violations(value, schema=SCHEMA, where=""):
    """List the places of a record that the schema does not allow."""
    if isinstance(schema, dict):
        if not isinstance(value, dict):
            return [where]
        missing = [
            f"{where}/{name}"
            for name in schema
            if isinstance(name, Required) and name not in value
        ]
        unknown = [f"{where}/{name}" for name in value if name not in schema]
        inside = [
            found
            for name, one in value.items()
            if name in schema
            for found in violations(one, schema[name], f"{where}/{name}")
        ]
        return missing + unknown + inside
    if isinstance(schema, list):
        if not isinstance(value, list) or not value:
            return [where]
        return [
            found for one in value for found in violations(one, schema[0], f"{where}[]")
        ]
    if isinstance(schema, Words):
        is_right = value in schema
    elif isinstance(schema, re.Pattern):
        is_right = isinstance(value, str) and bool(schema.fullmatch(value))
    elif schema == TEXT:
        is_right = isinstance(value, str) and bool(value)
    elif schema == INTEGER:
        is_right = type(value) is int
    else:
        is_right = type(value) in (int, float)
    return [] if is_right else [where]
