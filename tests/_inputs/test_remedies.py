"""Remedies of teachers and students that fail on public rows: each row of the table."""

import re

import lightgbm
import numpy as np
import pandas as pd
import pytest
import skorch
import torch
import xgboost
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline as make_sampling_pipeline
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.mechanisms import GNMax
from tests.private import _REMEDIES

NUMBERS = np.random.default_rng(0).normal(size=(400, 2))
Y = (NUMBERS[:, 0] > 0).astype(int)
# So many words that some rows lack most of them.
WORDS = pd.DataFrame({"x": NUMBERS[:, 0], "word": [f"w{i % 100}" for i in range(400)]})
HASHING = HashingVectorizer(n_features=64)


class TwoLayers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, X):
        return self.layer(X)


def as_float32(X):
    return np.asarray(X, dtype=np.float32)


def as_words(X):
    return np.char.add("w", np.asarray(X).astype(int).astype(str)).astype(object)


def with_a_number_for_a_name(X):
    return pd.DataFrame(X, columns=["a", 0])


def with_names(X):
    return pd.DataFrame(X, columns=["a", "b"])


def in_front(step, *others):
    """Return a classifier behind a step."""
    step = step if hasattr(step, "fit") else FunctionTransformer(step)
    return make_pipeline(step, *others, LogisticRegression())


def of_words(encoder):
    return in_front(
        make_column_transformer((encoder, ["word"]), remainder="passthrough")
    )


def named(*columns):
    return pd.DataFrame(NUMBERS, columns=columns)


NETWORK = skorch.NeuralNetClassifier(
    TwoLayers,
    criterion=torch.nn.CrossEntropyLoss,
    max_epochs=1,
    train_split=None,
    verbose=0,
)
BOOSTED = {
    "xgboost": xgboost.XGBClassifier(n_estimators=3),
    "lightgbm": lightgbm.LGBMClassifier(n_estimators=3, verbose=-1),
}


def resampled_to(label):
    resample = RandomOverSampler(sampling_strategy={label: 150})
    return make_sampling_pipeline(resample, BOOSTED["xgboost"])


NO_VALIDATION = "in {name}=, turn early stopping off"
GIVE_ENCODER = "In {name}=, set handle_unknown='ignore' in the encoder"
# Estimator and rows that fail, what is wrong, the advice, and what follows it.
CASES = {
    "missing values of a step": (
        (in_front(np.log), NUMBERS),
        "Input X contains NaN",
        "an imputer for missing values, before the step that refuses",
        (in_front(np.log, SimpleImputer()), NUMBERS),
    ),
    "text of a step": (
        (in_front(as_words), NUMBERS),
        "could not convert string to float",
        "put an encoder with handle_unknown='ignore' for text",
        (in_front(as_words, OneHotEncoder(handle_unknown="ignore")), NUMBERS),
    ),
    "early stopping of xgboost": (
        (xgboost.XGBClassifier(early_stopping_rounds=2), NUMBERS),
        "Must have at least 1 validation dataset",
        NO_VALIDATION,
        (BOOSTED["xgboost"], NUMBERS),
    ),
    "early stopping of lightgbm": (
        (lightgbm.LGBMClassifier(early_stopping_round=2, verbose=-1), NUMBERS),
        "For early stopping, at least one dataset",
        NO_VALIDATION,
        (BOOSTED["lightgbm"], NUMBERS),
    ),
    "unknown words": (
        (of_words(OneHotEncoder()), WORDS),
        "Found unknown categories",
        GIVE_ENCODER,
        (of_words(OneHotEncoder(handle_unknown="ignore")), WORDS),
    ),
    "unknown words in order": (
        (of_words(OrdinalEncoder()), WORDS),
        "Found unknown categories",
        "handle_unknown='use_encoded_value' and unknown_value=-1 in an OrdinalEncoder",
        (
            of_words(
                OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
            ),
            WORDS,
        ),
    ),
    "a vectorizer of a table": (
        (in_front(HASHING), WORDS),
        "inconsistent numbers of samples",
        "as in make_column_transformer((vectorizer, 'text'))",
        (in_front(make_column_transformer((HASHING, "word"))), WORDS),
    ),
    "numbers of double precision": (
        (NETWORK, NUMBERS),
        "Double and Float",
        "Cast X and X_public to float32",
        (NETWORK, as_float32(NUMBERS)),
    ),
    "numbers of double precision, cast by a step": (
        (NETWORK, NUMBERS),
        "Double and Float",
        "add a step in {name}= that casts them",
        (make_pipeline(FunctionTransformer(as_float32), NETWORK), NUMBERS),
    ),
    "labels of xgboost, after a step that names them": (
        (resampled_to(1), NUMBERS, 1),
        "Invalid classes inferred",
        "Replace the labels in y and classes= by the numbers 0, 1, ...",
        (resampled_to(0), NUMBERS),
    ),
    "names of xgboost": (
        (BOOSTED["xgboost"], named("a[1]", "b")),
        "feature_names must be string",
        "Rename the columns of X and X_public",
        (BOOSTED["xgboost"], named("a_1", "b")),
    ),
    "names of lightgbm": (
        (BOOSTED["lightgbm"], named('a":1', "b")),
        "special JSON characters in feature name",
        "Rename the columns of X and X_public",
        (BOOSTED["lightgbm"], named("a_1", "b")),
    ),
    "names of a step": (
        (in_front(with_a_number_for_a_name), NUMBERS),
        "string names",
        "or those that a step in {name}= creates",
        (in_front(with_names), NUMBERS),
    ),
}


OF_ANY_WORDS = of_words(OneHotEncoder(handle_unknown="ignore"))


def plan(role, estimator, rows, first=0):
    """Plan a fit on half of the rows, in which the estimator has this role.

    Labels are numbers from the `first` one.
    """
    other = LogisticRegression() if rows is not WORDS else OF_ANY_WORDS
    clf = PATEClassifier(
        **({"estimator": other, "student": other} | {role: estimator}),
        n_teachers=4,
        n_queries=60,
        mechanism=GNMax(sigma=1.0),
        epsilon=None,
        random_state=0,
    )
    half = slice(200, None)
    public = rows.iloc[half] if hasattr(rows, "iloc") else rows[half]
    return clf.plan_privacy(rows[:200], first + Y[:200], X_public=PublicData(public))


@pytest.mark.filterwarnings("ignore:invalid value")  # of the logarithm
@pytest.mark.parametrize("role", ["estimator", "student"])
@pytest.mark.parametrize("case", CASES)
def test_the_cause_comes_first_and_its_remedy_last(case, role):
    failing, cause, advice, _ = CASES[case]
    advice = advice.format(name=role)
    told = rf"^{role}=.* fails: .*{cause}.*Nothing was charged\. .*{re.escape(advice)}"
    with pytest.raises(ValueError, match=told):
        plan(role, *failing)


@pytest.mark.filterwarnings("ignore:invalid value")  # of the logarithm
@pytest.mark.parametrize("role", ["estimator", "student"])
@pytest.mark.parametrize("case", CASES)
def test_the_remedy_helps(case, role):
    mended = CASES[case][-1]
    plan(role, *mended)


def test_every_remedy_has_a_case():
    def remedy(cause):
        return next(part for part in _REMEDIES if re.search(part, cause))

    assert {remedy(cause) for _, cause, *_ in CASES.values()} == {*_REMEDIES}
