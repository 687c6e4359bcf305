"""Text and missing values that a teacher or student does not take."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from sklearn_pate import PATEClassifier, PrivacyLedger, PublicData, PublicDataWarning
from sklearn_pate.inspection import plan
from sklearn_pate.learners import PETDLClassifier

RNG = np.random.default_rng(0)
Y = np.arange(600) % 2
# As private rows are moved away, a teacher can tell them from public ones.
FAR = 1000.0


class Teacher(GaussianNB):
    """Counts its fits on private rows in this process."""

    private_fits = 0

    def fit(self, X, y):
        super().fit(X, y)
        type(self).private_fits += np.max(np.asarray(X)) > FAR / 2
        return self


@pytest.fixture
def ledger(tmp_path):
    Teacher.private_fits = 0
    return PrivacyLedger(tmp_path / "patients.sqlite", epsilon=10, delta=1e-6)


def stays(n_rows, far=0.0):
    """Return rows of numbers, of which some are missing, and text."""
    age = RNG.normal(size=n_rows) + np.arange(n_rows) % 2 + far
    frame = pd.DataFrame({"age": age, "ward": RNG.choice(["A", "B"], n_rows)})
    return frame.assign(hba1c=np.where(np.arange(n_rows) % 5 == 0, np.nan, age))


PRIVATE, PUBLIC = stays(600, FAR), stays(200)
NUMBERS = ["age", "hba1c"]
# Without missing values; the logarithm makes some.
NEGATIVE = PUBLIC.assign(hba1c=-1.0)


def pate(ledger, estimator=None, **parameters):
    given = {"n_teachers": 10, "n_queries": 20, "epsilon": 5.0, "classes": [0, 1]}
    return PATEClassifier(estimator, ledger=ledger, **(given | parameters))


def refused(clf, columns, container=lambda frame: frame, **arguments):
    """Fit, and return the text of the error."""
    public = PublicData(container(PUBLIC[columns]))
    given = {"X_public": public} | arguments
    with pytest.raises(ValueError, match=r"Put an|Pass X") as caught:
        clf.fit(container(PRIVATE[columns]), Y, **given)
    assert clf.ledger.entries() == []
    assert Teacher.private_fits == 0
    # It tells users to impute in front.
    assert "https://scikit-learn.org" not in str(caught.value)
    return str(caught.value)


def as_strings(frame):
    """Return an array of one type, text."""
    return np.asarray(frame).astype(str)


# Names in the code of messages.
NAMED = (
    GaussianNB,
    LogisticRegression,
    OneHotEncoder,
    PCA,
    RandomForestClassifier,
    SimpleImputer,
    StandardScaler,
    Teacher,
    make_column_transformer,
    make_pipeline,
)


def follow(text, clf):
    """Set the parameters to the code of a message."""
    code = text.partition("without protection: ")[2].removesuffix(".")
    return clf.set_params(**eval(f"dict({code})", {one.__name__: one for one in NAMED}))


NO_MISSING = "never in front of this classifier, where a step learns from private rows"
CASES = {
    "a teacher of unknown kind": ({"estimator": Teacher()}, ["estimator"]),
    "a teacher": ({"estimator": LogisticRegression()}, ["estimator"]),
    "a student": (
        {"student": GaussianNB(), "representation": "auto"},
        ["student"],
    ),
    "both": (
        {"estimator": GaussianNB(), "student": LogisticRegression()},
        ["estimator", "student"],
    ),
    "a representation": (
        {"estimator": Teacher(), "representation": PCA(1)},
        ["representation"],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("container", [lambda frame: frame, np.asarray])
@pytest.mark.parametrize("case", CASES)
def test_missing_values_lead_to_an_imputer_inside(case, container, ledger):
    parameters, names = CASES[case]
    clf = pate(ledger, **({"representation": None} | parameters))
    text = refused(clf, NUMBERS, container)
    inside = " and ".join(f"{name}=" for name in names)
    assert f"Put an imputer inside {inside}, {NO_MISSING}" in text
    for name in names:
        assert f"{name}=make_pipeline(SimpleImputer(), " in text
    public = PublicData(container(PUBLIC[NUMBERS]))
    follow(text, clf).plan_privacy(container(PRIVATE[NUMBERS]), Y, X_public=public)


@pytest.mark.slow
@pytest.mark.parametrize("container", [lambda frame: frame, np.asarray])
@pytest.mark.parametrize("columns", [["age", "ward"], ["age", "ward", "hba1c"]])
@pytest.mark.parametrize("teacher", [Teacher(), RandomForestClassifier(3)])
@pytest.mark.parametrize("parameters", [{}, {"n_queries": "auto", "n_teachers": 30}])
def test_text_leads_to_an_encoder_inside(
    teacher, columns, container, parameters, ledger
):
    clf = pate(ledger, teacher, **parameters)
    text = refused(clf, columns, container)
    if container is np.asarray and "hba1c" in columns:
        assert (
            "Pass X and X_public as dataframes, so that each column has a type" in text
        )
        return
    assert "could not convert string to float" in text
    assert "inside estimator=, never in front" in text
    column = "ward" if container is not np.asarray else 1
    assert (
        f"OneHotEncoder(handle_unknown='ignore', sparse_output=False), [{column!r}"
        in text
    )
    public = PublicData(container(PUBLIC[columns]))
    follow(text, clf).plan_privacy(container(PRIVATE[columns]), Y, X_public=public)


@pytest.mark.slow
def test_text_and_missing_values_of_a_teacher_are_told_at_once(ledger):
    text = refused(pate(ledger, Teacher()), ["age", "ward", "hba1c"])
    assert "Put an encoder and an imputer inside estimator=" in text
    assert "remainder=SimpleImputer()), Teacher())" in text


@pytest.mark.parametrize("n_public", [1, 20, 150])
def test_text_is_found_with_few_public_rows(n_public, ledger):
    clf = pate(ledger, Teacher(), n_queries=1, privacy_unit="group")
    public = PublicData(PUBLIC[["age", "ward"]][:n_public])
    text = refused(clf, ["age", "ward"], X_public=public, groups=np.arange(600))
    assert "['ward']" in text


def test_a_pipeline_with_its_own_encoder_keeps_it(ledger):
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["ward"]), remainder="passthrough"
    )
    teacher = make_pipeline(encoder, LogisticRegression())
    text = refused(pate(ledger, teacher), ["age", "ward", "hba1c"])
    assert "Put an imputer for ['hba1c'] into estimator=" in text
    assert "without protection" in text


def test_missing_values_of_a_step_need_no_imputer_of_columns(ledger):
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["ward"]), remainder="passthrough"
    )
    teacher = make_pipeline(encoder, FunctionTransformer(np.log), GaussianNB())
    with pytest.raises(ValueError, match=r"NaN\. .* before the step"):
        pate(ledger, teacher).fit(PRIVATE, Y, X_public=PublicData(NEGATIVE))


def test_the_number_of_public_rows_in_a_message_counts_each_once(ledger):
    public = PublicData(PUBLIC[NUMBERS[:1]].assign(ward="A")[:20])
    private = PRIVATE[["age", "ward"]]
    with pytest.raises(ValueError, match="on 20 public rows"):
        pate(ledger, Teacher()).fit(private, Y, X_public=public)


def test_an_array_of_strings_leads_to_a_dataframe(ledger):
    with pytest.warns(PublicDataWarning, match="numbers stored as text"):
        text = refused(pate(ledger, Teacher()), ["age", "ward"], as_strings)
    assert "Pass X and X_public as dataframes" in text


@pytest.mark.parametrize("mechanism", ["auto", "gnmax"])
def test_text_leads_to_an_encoder_inside_the_representation(mechanism, ledger):
    columns = ["age", "ward"]
    scaler = StandardScaler()
    clf = pate(ledger, LogisticRegression(), representation=scaler, mechanism=mechanism)
    text = refused(clf, columns)
    assert text.startswith("representation=StandardScaler() fails on the public rows")
    assert "inside representation=, never in front" in text
    public = PublicData(PUBLIC[columns])
    follow(text, clf).plan_privacy(PRIVATE[columns], Y, X_public=public)


def test_a_long_estimator_is_named_in_short(ledger):
    teacher = make_pipeline(StandardScaler(), LogisticRegression())
    text = refused(pate(ledger, teacher), NUMBERS)
    assert text.endswith("estimator=make_pipeline(SimpleImputer(), Pipeline(...)).")


@pytest.mark.slow
def test_other_learners_lead_there_too(ledger):
    clf = PETDLClassifier(Teacher(), n_teachers=10, ledger=ledger, classes=[0, 1])
    assert "=make_pipeline(SimpleImputer(), " in refused(clf, NUMBERS, np.asarray)


NOTES = pd.DataFrame({"note": [f"note {row} of ward {row % 7}" for row in range(600)]})
WORDS = make_column_transformer((TfidfVectorizer(), "note"))


@pytest.mark.filterwarnings("ignore::sklearn_pate.PublicDataWarning")
@pytest.mark.parametrize(
    ("parameters", "remedy"),
    [
        (
            {"mechanism": "scores", "n_queries": "auto", "representation": WORDS},
            "put a TruncatedSVD behind",
        ),
        (
            {"mechanism": "gnmax", "representation": TfidfVectorizer()},
            r"name it, as in make_column_transformer\(\(vectorizer, 'text'\)\)",
        ),
    ],
)
def test_words_lead_to_numbers_of_one_column(parameters, remedy, ledger):
    clf = pate(ledger, LogisticRegression(), **parameters)
    with pytest.raises(ValueError, match=remedy):
        clf.fit(NOTES, Y, X_public=PublicData(NOTES[:200].copy()))
    assert ledger.entries() == []


def test_texts_lead_to_a_dataframe(ledger):
    with pytest.raises(ValueError, match="texts to a dataframe with one column"):
        pate(ledger).fit(NOTES["note"], Y, X_public=PublicData(NOTES))


def test_texts_as_categories_lead_to_a_vectorizer(ledger):
    with pytest.warns(PublicDataWarning, match="For words, use a vectorizer"):
        plan(pate(ledger), NOTES, Y, X_public=PublicData(NOTES[:200].copy()))


@pytest.mark.slow
def test_a_default_fit_takes_both(ledger):
    clf = PATEClassifier(ledger=ledger, classes=[0, 1], epsilon=5.0)
    clf.fit(PRIVATE, Y, X_public=PublicData(PUBLIC))
    assert len(ledger.entries()) == 1
