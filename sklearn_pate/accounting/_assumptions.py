"""Assumptions of a private fit: what the data holder has to confirm."""

from dataclasses import dataclass

from sklearn_pate.accounting._value_checks import read_table


@dataclass(frozen=True)
class Assumption:
    """Assumption of a private fit, for the data holder to confirm.

    If an assumption is false, there is no guarantee. ``str(assumption)`` is `sentence`.

    Parameters
    ----------
    code : str
        Short permanent name in privacy cards and reports. An estimator of another
        package needs codes that this package does not use.

    sentence : str
        The assumption as a clause that can follow "assumes that", without a capital or
        a full stop.

    question : str, default=""
        Question in a privacy report to the person who confirms the assumption. Empty
        for a defect, such as seeded noise, that voids the guarantee. Privacy cards do
        not contain the question.

    Examples
    --------
    The assumption of a third-party estimator:

    >>> from sklearn_pate.accounting import Assumption
    >>> consent = Assumption(
    ...     code="clinic-consent",
    ...     sentence="everybody in the data has consented",
    ...     question="Is there a signed form of each patient?",
    ... )
    >>> print(f"The guarantee assumes that {consent}.")
    The guarantee assumes that everybody in the data has consented.
    """

    __module__ = "sklearn_pate.accounting"  # its name in files

    code: str
    sentence: str
    question: str = ""

    def __str__(self) -> str:
        return self.sentence


#: All assumptions of this package, by code.
ASSUMPTIONS = {
    code: Assumption(code, **texts)
    for code, texts in read_table("sklearn_pate.accounting", "assumptions.toml").items()
}
LABEL_SET = ASSUMPTIONS["label-set-public"]
LABEL_SET_READ = ASSUMPTIONS["label-set-read"]
COLUMNS = ASSUMPTIONS["columns-public"]
DOMAIN_DECLARED = ASSUMPTIONS["domain-declared"]
PUBLIC_ROWS = ASSUMPTIONS["public-rows"]
HELD_OUT_ROWS = ASSUMPTIONS["held-out-rows-public"]
QUALITY_ROWS_PUBLIC = ASSUMPTIONS["quality-rows-public"]
N_ROWS_PUBLIC = ASSUMPTIONS["n-rows-public"]
N_ROWS = ASSUMPTIONS["sampling-rate-public"]
N_FITTED = ASSUMPTIONS["n-fitted-public"]
OWN_DATA = ASSUMPTIONS["party-own-data"]
ONE_PARTY = ASSUMPTIONS["one-party-each"]
SHARDS_BY_KEY = ASSUMPTIONS["shards-by-key"]
OWN_SHARD = ASSUMPTIONS["shard-own-rows"]
ONE_SITE = ASSUMPTIONS["one-site-each"]
CHOSEN_BLINDLY = ASSUMPTIONS["parameters-chosen-blindly"]
OTHER_RANDOM_STATE = ASSUMPTIONS["other-random-state"]
PUBLIC_REPRESENTATION = ASSUMPTIONS["representation-public"]
ROW_ALONE = ASSUMPTIONS["representation-row-alone"]
FROZEN_IS_PUBLIC = ASSUMPTIONS["frozen-public"]
BOUNDS = ASSUMPTIONS["bounds-public"]
ROW_BY_ROW = ASSUMPTIONS["network-row-by-row"]
FLOATING_POINT = ASSUMPTIONS["floating-point"]
SECRET = ASSUMPTIONS["search-secret"]
ALIKE = ASSUMPTIONS["fits-alike"]
MODEL_IS_PUBLIC = ASSUMPTIONS["model-is-public"]
FITTED_APART = ASSUMPTIONS["fitted-apart"]
SCORES_OF_ROW = ASSUMPTIONS["scores-of-row"]
SUBGROUPS_DECLARED = ASSUMPTIONS["subgroups-declared"]
FITTED_ROWS_UNPROTECTED = ASSUMPTIONS["fitted-rows-unprotected"]
SEEDED = ASSUMPTIONS["noise-seeded"]
NORM_READ = ASSUMPTIONS["norm-read"]
