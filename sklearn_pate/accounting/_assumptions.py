"""Assumptions of a private fit: what the data holder has to confirm."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Assumption:
    """Assumption of a private fit, for the data holder to confirm.

    If an assumption is false, there is no guarantee. ``str(assumption)`` is its
    sentence.

    Parameters
    ----------
    code : str
        Short permanent name in privacy cards and reports. An assumption of a
        third-party estimator needs a code that is not used in this package.

    sentence : str
        Sentence to follow "that", without a capital or a full stop.

    question : str, default=""
        Question in a privacy report to the person who signs the assumption. Empty for
        an assumption that voids privacy. Privacy cards do not contain it: reports on
        released files use the questions of this package.

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

    code: str
    sentence: str
    question: str = ""

    def __str__(self) -> str:
        return self.sentence


# Cards contain codes and sentences: a sentence that changes needs a new code.

# Labels and columns.
LABEL_SET = Assumption(
    "label-set-public",
    "the label set is public",
    "Would a stranger know every label that may occur?",
)
LABEL_SET_READ = Assumption(
    "label-set-read",
    "the label set (read from y) is public",
    "A rare label, such as a diagnosis, reveals that a person has it. "
    "Were all labels known beforehand?",
)
COLUMNS = Assumption(
    "columns-public",
    "the columns of X, their types and their categories are public",
    "Would a stranger know the columns and the values that are possible in them?",
)
DOMAIN_DECLARED = Assumption(
    "domain-declared",
    "the domain (columns, values, ranges) was declared without a look at private rows",
    "The possible values of each column were written down by hand. Do they come from "
    "general knowledge, such as a list of codes or an age between 0 and 120, and not "
    "from the private rows?",
)

# Rows.
PUBLIC_ROWS = Assumption(
    "public-rows",
    "X_public is public",
    "X_public contains the rows without labels. The people in them are not "
    "protected. May everybody see them, and were they chosen without using the "
    "private rows?",
)
HELD_OUT_ROWS = Assumption(
    "held-out-rows-public",
    "the rows held out by public_size are public",
    "These are rows of the private table, drawn at random and used without their "
    "labels. The people in them are not protected, and the model may reveal their "
    "values. May everybody see them?",
)
QUALITY_ROWS_PUBLIC = Assumption(
    "quality-rows-public",
    "the rows behind the figures of quality are public",
    "May everybody see them, labels included?",
)
N_ROWS_PUBLIC = Assumption(
    "n-rows-public",
    "the number of rows is public, as public_size holds out a share of them (a row "
    "that is removed leaves its place empty)",
    "May everybody know exactly how many rows the table has?",
)
N_ROWS = Assumption(
    "sampling-rate-public",
    "the number of rows, which makes the sampling rate, is public",
    "May everybody know exactly how many rows the model was trained on?",
)
N_FITTED = Assumption(
    "n-fitted-public",
    "the number of rows that were fitted on, which the cost depends on, is public",
    "May everybody know exactly how many rows the model was trained on?",
)

# Parties.
OWN_DATA = Assumption(
    "party-own-data",
    "what each party sent was made from its own data alone",
    "Did every party label the public rows by itself, with a model trained on "
    "no other party's private rows?",
)
ONE_PARTY = Assumption(
    "one-party-each",
    "each person has data at one party only",
    "Can two parties have data of one person, such as a patient of two hospitals? "
    "The guarantee for this person is then weaker: see the table.",
)

# Shards whose teachers were trained elsewhere.
SHARDS_BY_KEY = Assumption(
    "shards-by-key",
    "each row's shard is the keyed hash of its id, whatever its values",
    "For the engineer: were all rows assigned to shards by shard_of, with the one key, "
    "and did no step between drop or move rows by their values?",
)
OWN_SHARD = Assumption(
    "shard-own-rows",
    "the votes of a shard were cast by a teacher that was trained on that shard alone",
    "For the engineer: did every site or worker train by cast_votes, with a model "
    "that had seen no other private row?",
)
ONE_SITE = Assumption(
    "one-site-each",
    "each person has data at one site only",
    "Can two sites have data of one person, such as a patient of two hospitals? The "
    "guarantee for this person is then weaker: see the table.",
)

# Choices.
CHOSEN_BLINDLY = Assumption(
    "parameters-chosen-blindly",
    "all parameters were chosen independently of private data",
    "Were models, thresholds, numbers and all other parameters chosen without these "
    "data, for instance on public data?",
)
OTHER_RANDOM_STATE = Assumption(
    "other-random-state",
    "rows that were prepared in another way were fitted with another random_state",
    "For the engineer: were these data also fitted after another preparation, such "
    "as clipping or cleaning? If so, did each preparation have a different "
    "random_state? Otherwise, two equal models reveal that it changed nothing.",
)
PUBLIC_ROWS_IN_MODEL = Assumption(
    "public-rows-in-model",
    "everybody may see the public rows that the model holds",
    "The published model holds up to a thousand public rows. May everybody see them? "
    "If not, fit with basis='linear'.",
)
PUBLIC_REPRESENTATION = Assumption(
    "representation-public",
    "the representation was fitted on public rows alone",
    "For the engineer: were the representation and its starting point (pretrained "
    "weights, a FrozenEstimator) fitted on public rows alone, and may everybody see "
    "these?",
)
ROW_ALONE = Assumption(
    "representation-row-alone",
    "the representation makes each row's features from that row alone, the same each "
    "time",
    "For the engineer: every private row is transformed alone. If a row is added "
    "or removed, do the features of all others stay the same, bit by bit? They would "
    "not if the representation kept a state from one call to the next.",
)
FROZEN_IS_PUBLIC = Assumption(
    "frozen-public",
    "what is in a FrozenEstimator was fitted on public rows",
    "For the engineer: which estimators are frozen here, on which rows were they "
    "fitted, and may everybody see these?",
)

# Bounds and arithmetic.
BOUNDS = Assumption(
    "bounds-public",
    "the bounds of the features and of the rows' norm are public",
    "For the engineer: the lower and upper bounds were set by hand. Do they come "
    "from general knowledge, such as an age between 0 and 120, and not from the "
    "private rows?",
)
ROW_BY_ROW = Assumption(
    "network-row-by-row",
    "the network and its loss treat each row of a batch by itself, and what they draw "
    "at random, such as dropout masks, is secret",
    "For the engineer: is the network free of layers that mix the rows of a batch, "
    "such as batch normalisation, and are its seeds secret?",
)
FLOATING_POINT = Assumption(
    "floating-point",
    "floating-point arithmetic is close enough to that of real numbers: no attack uses "
    "the last bits of the noise",
    "For the engineer: computers round, and the last digits of published weights "
    "may reveal more than the proof allows. Is this gap acceptable for these data?",
)

# Searches.
SECRET = Assumption(
    "search-secret",
    "the number of fits, their scores and the duration of the search stay secret",
    "Do logs, timings and results of the search stay with the data holder?",
)
ALIKE = Assumption(
    "fits-alike",
    "each fit fails, if it does, as privately as it succeeds, and predicts each row by "
    "itself",
    "For the engineer: can a single row never stop a fit, and does each prediction "
    "depend on its own row alone?",
)

# Metrics.
MODEL_IS_PUBLIC = Assumption(
    "model-is-public",
    "the measured model depends on the scored rows through stated releases alone",
    "Were these rows kept out of training and of every choice of the model, except "
    "through releases whose cost is stated? The rows that a model without a privacy "
    "statement was fitted on are not protected.",
)
SCORES_OF_ROW = Assumption(
    "scores-of-row",
    "the model's scores of a row depend on the row alone",
    "Does predict_proba neither draw random numbers nor remember rows?",
)
SUBGROUPS_PUBLIC = Assumption(
    "subgroups-public",
    "the set of subgroups is public",
    "Would a stranger know every value that a subgroup may have?",
)

FITTED_ROWS_UNPROTECTED = Assumption(
    "fitted-rows-unprotected",
    "the rows that the recalibrated model was fitted on are public, as its fit has no "
    "privacy statement",
    "May a stranger have the rows that the model was fitted on?",
)

# What voids privacy.
SEEDED = Assumption("noise-seeded", "the noise was seeded, which voids privacy")
NORM_READ = Assumption(
    "norm-read", "the bound of the rows' norm was read from X, which voids privacy"
)

#: All assumptions of this package, by code.
ASSUMPTIONS = {
    one.code: one for one in list(globals().values()) if isinstance(one, Assumption)
}
