"""Every private classifier is published, saved, loaded and reported."""

import pickle
import warnings
from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from sklearn_pate import (
    PATEClassifier,
    PrivacyLeakWarning,
    PrivacyLedger,
    PublicData,
    PublishedClassifier,
)
from sklearn_pate._estimators._delegation import last_step
from sklearn_pate.accounting._statement import NEIGHBOURS
from sklearn_pate.baselines import (
    DPLinearSVC,
    DPLogisticRegression,
    DPSGDClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.model_selection import PrivateSearchCV
from sklearn_pate.publication import publish
from sklearn_pate.publication._mechanism_fields import rebuilt
from sklearn_pate.publication._student_state import restored, taken_apart

torch = pytest.importorskip("torch")
skorch = pytest.importorskip("skorch")
pytest.importorskip("opacus")
pytest.importorskip("skops")

CLASSES = ["ill", "unsure", "well"]
LINEAR = {"feature_bounds": (-15.0, 15.0), "classes": CLASSES}


class Net(torch.nn.Module):
    """A network of somebody's own."""

    def __init__(self, n_hidden=4):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(2, n_hidden), torch.nn.ReLU(), torch.nn.Linear(n_hidden, 3)
        )

    def forward(self, X):
        return self.layers(X)


def network(module=Net, **parameters):
    given = {"batch_size": 100, "max_epochs": 2, "lr": 0.5} | parameters
    return skorch.NeuralNetClassifier(
        module, **({"criterion": torch.nn.CrossEntropyLoss} | given)
    )


PUBLIC = {"n_queries": 20, "classes": CLASSES, "random_state": 0}
LEARNERS = {
    "pate": PATEClassifier(LogisticRegression(), n_teachers=40, **PUBLIC),
    "knn": PrivateKNNClassifier(LogisticRegression(), **PUBLIC),
    "petdl": PETDLClassifier(
        LogisticRegression(),
        LogisticRegression(),
        n_teachers=40,
        public_batch_size=20,
        classes=CLASSES,
        random_state=0,
    ),
    "objective": DPLogisticRegression(**LINEAR),
    "output": DPLogisticRegression(method="output", **LINEAR),
    "gaussian": DPLinearSVC(method="gaussian", **LINEAR),
    "dpsgd": DPSGDClassifier(network(module__n_hidden=5), classes=CLASSES),
    "pure search": PrivateSearchCV(
        make_pipeline(Normalizer(), DPLogisticRegression(data_norm=1.0)),
        {"dplogisticregression__C": [0.1, 1.0]},
        n_trials_distribution="geometric",
        mean_n_trials=2,
        classes=CLASSES,
    ),
    "search": PrivateSearchCV(
        PATEClassifier(LogisticRegression(), n_teachers=40, n_queries=20),
        {"epsilon": [0.5, 1.0]},
        mean_n_trials=2,
        classes=CLASSES,
    ),
    "disjoint search": PrivateSearchCV(
        PrivateKNNClassifier(LogisticRegression(), n_queries=20),
        {"epsilon": [0.5, 1.0]},
        n_trials_distribution="disjoint",
        classes=CLASSES,
    ),
    "search of networks": PrivateSearchCV(
        make_pipeline(Normalizer(), DPSGDClassifier(network())),
        {"dpsgdclassifier__max_grad_norm": [0.5, 1.0]},
        mean_n_trials=2,
        classes=CLASSES,
    ),
}
TRUSTED = [Net]
WITHOUT_PUBLIC = ("objective", "output", "gaussian", "dpsgd", "pure search")


@pytest.fixture(scope="module")
def rows():
    X, codes = make_blobs(2400, centers=3, random_state=0)
    return X.astype(np.float32), np.array(CLASSES)[codes]


def fit(learner, rows, *, public=True):
    X, y = rows
    given = {"X_public": PublicData(X[2000:2200])} if public else {}
    return clone(learner).fit(X[:2000], y[:2000], **given)


@pytest.fixture(scope="module")
def originals(rows):
    """Published fits, each made once."""

    @cache
    def published(name):
        return fit(LEARNERS[name], rows, public=name not in WITHOUT_PUBLIC).publish()

    return published


@pytest.fixture(scope="module", params=LEARNERS)
def fitted(request, rows):
    name = request.param
    public = name not in (*WITHOUT_PUBLIC, "search of networks")
    return fit(LEARNERS[name], rows, public=public)


@pytest.fixture
def saved(fitted, tmp_path):
    path = tmp_path / "model.skops"
    fitted.publish().save(path)
    return path


def assert_predicts_alike(one, other, X):
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    for method in ("predict_proba", "decision_function"):
        assert hasattr(one, method) == hasattr(other, method)
        if hasattr(one, method):
            of_one, of_other = getattr(one, method)(X), getattr(other, method)(X)
            # A copy lies elsewhere in memory, which decides the last bits of a sum.
            np.testing.assert_allclose(of_one, of_other, rtol=1e-12, atol=1e-14)


def test_what_is_published_predicts_and_states_the_same(fitted, rows):
    published = fitted.publish()
    assert_predicts_alike(fitted, published, rows[0][2200:])
    assert published.privacy_spent_ == fitted.privacy_spent_
    assert published.card["statement"] == str(fitted.privacy_spent_)


def test_a_saved_model_comes_back(fitted, saved, rows):
    loaded = PublishedClassifier.load(saved, trusted=TRUSTED)
    assert_predicts_alike(fitted, loaded, rows[0][2200:])
    assert str(loaded.privacy_spent_) == str(fitted.privacy_spent_)
    assert loaded.privacy_spent_.epsilon == fitted.privacy_spent_.epsilon


@pytest.mark.parametrize("name", ["objective", "dpsgd"])
@pytest.mark.parametrize("value", [np.nan, np.inf, "unknown", None])
def test_a_value_that_is_no_number_is_read_as_the_fit_reads_it(name, value, rows):
    X = rows[0][2200:2210].astype(object if isinstance(value, str | None) else float)
    X[3, 0] = value
    fitted = fit(LEARNERS[name], rows, public=False)
    assert_predicts_alike(fitted, fitted.publish(), X)


def test_a_pickled_model_comes_back(fitted, rows):
    unpickled = pickle.loads(pickle.dumps(fitted.publish()))
    assert_predicts_alike(fitted, unpickled, rows[0][2200:])


def test_a_saved_model_is_reported_as_the_fit_is(fitted, saved):
    loaded = PublishedClassifier.load(saved, trusted=TRUSTED)
    of_fit = PrivacyReport.from_estimator(fitted).to_dict()
    of_file = PrivacyReport.from_estimator(loaded, model_file=saved).to_dict()
    for name in ("statement", "epsilon", "delta", "kind", "promise", "n_classes"):
        assert of_file[name] == of_fit[name]
    assert of_file["private"]


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_an_unfitted_classifier_is_not_published(learner):
    with pytest.raises(NotFittedError):
        clone(learner).publish()


def test_a_classifier_without_privacy_is_not_published(rows):
    with pytest.raises(ValueError, match="pass a private classifier of sklearn_pate"):
        publish(LogisticRegression().fit(rows[0][:200], rows[1][:200]))


@pytest.mark.parametrize("name", ["pate", "knn", "petdl", "objective", "dpsgd"])
def test_a_plan_takes_the_arguments_of_fit(name, rows):
    learner = LEARNERS[name]
    with pytest.raises(TypeError, match=r"arguments of fit, and .*'X_pubic'"):
        learner.plan_privacy(*rows, X_pubic=rows[0])


@pytest.mark.parametrize("name", ["pate", "petdl", "objective", "dpsgd"])
def test_a_published_model_does_not_name_the_ledger(name, rows, tmp_path):
    ledger = PrivacyLedger(tmp_path / "patients.sqlite", epsilon=10, delta=1e-5)
    learner = clone(LEARNERS[name]).set_params(ledger=ledger)
    fitted = fit(learner, rows, public=name not in WITHOUT_PUBLIC)
    content = pickle.dumps(fitted.publish())
    assert b"patients.sqlite" in pickle.dumps(fitted)
    assert b"patients.sqlite" not in content


def test_the_winner_of_a_search_is_published_under_the_cost_of_the_search(
    rows, tmp_path
):
    search = fit(LEARNERS["search"], rows)
    published = search.best_estimator_.publish()
    assert published.privacy_spent_.epsilon == search.privacy_spent_.epsilon
    published.save(tmp_path / "winner.skops")
    loaded = PublishedClassifier.load(tmp_path / "winner.skops")
    assert loaded.privacy_spent_.epsilon == search.privacy_spent_.epsilon
    assert loaded.privacy_spent_.release == "search"


def test_steps_in_front_of_a_winner_are_published_without_folders(rows, tmp_path):
    public = make_pipeline(StandardScaler(), memory=str(tmp_path)).fit(rows[0][2000:])
    front = FrozenEstimator(public)
    learner = PrivateSearchCV(
        make_pipeline(front, DPLogisticRegression(data_norm=3.0)),
        {"dplogisticregression__C": [0.1, 1.0]},
        mean_n_trials=2,
        classes=CLASSES,
    )
    search = fit(learner, rows, public=False)
    published = search.publish()
    assert_predicts_alike(search, published, rows[0][2200:])
    assert str(tmp_path).encode() not in pickle.dumps(published)
    before = published.predict_proba(rows[0][2200:])
    public[-1].scale_[:] = 1e9  # what is published is a copy
    np.testing.assert_array_equal(published.predict_proba(rows[0][2200:]), before)


def test_the_winner_of_a_search_of_searches_comes_back(rows, tmp_path):
    learner = PrivateSearchCV(
        LEARNERS["search"], {"mean_n_trials": [2, 3]}, mean_n_trials=2
    )
    search = fit(learner, rows)
    winner = search.best_estimator_.best_estimator_
    winner.publish().save(tmp_path / "winner.skops")
    loaded = PublishedClassifier.load(tmp_path / "winner.skops")
    assert_predicts_alike(search, loaded, rows[0][2200:])
    assert loaded.privacy_spent_.epsilon == search.privacy_spent_.epsilon


def test_the_winner_of_a_seeded_search_comes_back_without_a_guarantee(rows, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        winner = fit(clone(LEARNERS["search"]).set_params(noise_seed=5), rows)
        winner = winner.best_estimator_
        winner.publish().save(tmp_path / "void.skops")
    loaded = PublishedClassifier.load(tmp_path / "void.skops")
    assert not loaded.card["private"]
    assert np.isinf(loaded.privacy_spent_.epsilon)


@pytest.mark.parametrize("name", ["search", "pure search"])
def test_a_winner_that_is_fitted_again_is_published_under_that_fit(
    name, rows, tmp_path
):
    search = fit(LEARNERS[name], rows, public=name not in WITHOUT_PUBLIC)
    winner = last_step(search.best_estimator_)
    again = {"X_public": PublicData(rows[0][2000:2200])} if name == "search" else {}
    winner.fit(rows[0][:2000], rows[1][:2000], **again)
    winner.publish().save(tmp_path / "again.skops")
    loaded = PublishedClassifier.load(tmp_path / "again.skops")
    assert str(loaded.privacy_spent_) == str(winner.privacy_spent_)
    assert "PrivateSearchCV" not in str(loaded.privacy_spent_)


def test_the_seed_of_the_noise_of_a_winner_is_not_published(rows):
    learner = clone(LEARNERS["search"]).set_params(
        estimator__mechanism=GNMax(sigma=10.0),
        estimator__noise_seed=314159265,
        param_grid={"epsilon": [None]},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        winner = fit(learner, rows).best_estimator_
        published = winner.publish()
    assert "314159265" in str(winner.privacy_spent_)
    assert "314159265" not in str(published.card) + str(published.privacy_spent_)
    assert b"314159265" not in pickle.dumps(published)


def test_a_network_of_an_untrusted_class_is_not_loaded(rows, tmp_path):
    fitted = fit(LEARNERS["dpsgd"], rows, public=False)
    fitted.publish().save(tmp_path / "net.skops")
    with pytest.raises(ValueError, match=r"not loaded unless you trust them: .*Net"):
        PublishedClassifier.load(tmp_path / "net.skops")


def test_a_network_without_weights_is_not_loaded(originals):
    content = taken_apart(originals("dpsgd").student_)
    del content["weights"]
    with pytest.raises(ValueError, match="a TrainedNetwork without weights"):
        restored(content)


class Probable(Net):
    """Outputs are probabilities, as the default criterion of skorch takes them."""

    def forward(self, X):
        return super().forward(X).softmax(dim=-1)


class Weighted(torch.nn.CrossEntropyLoss):
    """A loss with a parameter that it cannot do without."""

    def __init__(self, factor, reduction="mean"):
        super().__init__(reduction=reduction)
        self.factor = factor

    def forward(self, X, y):
        return self.factor * super().forward(X, y)


def halved(outputs):
    return torch.softmax(outputs / 2, dim=-1)


@pytest.mark.parametrize(
    ("module", "parameters"),
    [
        (Probable, {"criterion": torch.nn.NLLLoss}),
        (Net, {"criterion": Weighted, "criterion__factor": 0.5}),
        (Net, {"criterion": torch.nn.CrossEntropyLoss()}),
        (Net, {"predict_nonlinearity": halved}),
        (Net, {"predict_nonlinearity": None}),
    ],
)
def test_a_network_comes_back_with_its_probabilities(
    module, parameters, rows, tmp_path
):
    fitted = fit(
        DPSGDClassifier(network(module, **parameters), classes=CLASSES),
        rows,
        public=False,
    )
    fitted.publish().save(tmp_path / "net.skops")
    trusted = [module, f"{__name__}.halved"]
    loaded = PublishedClassifier.load(tmp_path / "net.skops", trusted=trusted)
    assert_predicts_alike(fitted, loaded, rows[0][2200:])


class Scaling(skorch.NeuralNetClassifier):
    def infer(self, x, **fit_params):
        return super().infer(x / 10, **fit_params)


def test_a_network_that_predicts_in_its_own_way_is_not_published(rows):
    net = Scaling(
        Net, criterion=torch.nn.CrossEntropyLoss, batch_size=100, max_epochs=1
    )
    fitted = fit(DPSGDClassifier(net, classes=CLASSES), rows, public=False)
    with pytest.raises(ValueError, match="is a Scaling with infer of its own"):
        fitted.publish()


class Shifted(Net):
    """A network with numbers that are in no state_dict."""

    def __init__(self):
        super().__init__()
        self.shift = torch.ones(2)

    def forward(self, X):
        return super().forward(X + self.shift)


class Buffered(Net):
    """The same in a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.ones(2), persistent=False)

    def forward(self, X):
        return super().forward(X + self.shift)


@pytest.mark.parametrize("module", [Shifted, Buffered])
def test_a_network_with_numbers_beside_its_weights_is_not_saved(module, rows, tmp_path):
    fitted = fit(DPSGDClassifier(network(module), classes=CLASSES), rows, public=False)
    with pytest.raises(ValueError, match="register them as persistent buffers"):
        fitted.publish().save(tmp_path / "net.skops")


def test_a_module_that_is_no_class_is_pickled_but_not_saved(rows, tmp_path):
    learner = DPSGDClassifier(network(Net()), classes=CLASSES)
    published = fit(learner, rows, public=False).publish()
    assert_predicts_alike(
        published, pickle.loads(pickle.dumps(published)), rows[0][2200:]
    )
    with pytest.raises(ValueError, match="pass the module's class to skorch"):
        published.save(tmp_path / "net.skops")


def test_bounds_that_were_read_from_the_rows_are_published_with_a_warning(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = fit(DPLogisticRegression(classes=CLASSES), rows, public=False)
    with pytest.warns(PrivacyLeakWarning, match="no privacy guarantee"):
        published = fitted.publish()
    assert not published.card["private"]


#: Each costs more than is stated, or is not what the words say.
FORGERIES = [
    ("output", "output_scale", 1e9),
    ("output", "n_problems", 1),
    ("objective", "linear_scale", 1e9),
    ("objective", "curvature", 1e3),
    ("gaussian", "linear_scale", 1e3),
    ("dpsgd", "noise_multiplier", 1e3),
    ("dpsgd", "n_steps", 1),
    ("dpsgd", "n_steps", 0.5),
    ("pure search", "mean_n_trials", 1.01),
    ("pure search", "fits", [{"pure_epsilon": 5.0, "values": None}]),
    ("search", "score_scale", 1e9),
    ("search", "n_trials_distribution", "disjoint"),
    ("search", "fits", []),
]


def forge(path, change):
    """Write a card and a model anew, alike, with a changed statement."""
    published = PublishedClassifier.load(path, trusted=TRUSTED)
    change(published)
    published._card["statement"] = str(published.privacy_spent_)
    published.save(path, overwrite=True)


@pytest.mark.parametrize("part", [2e-6, 2e-5])
def test_rounding_of_steps_on_another_platform_is_no_contradiction(
    part, rows, tmp_path
):
    path = tmp_path / "model.skops"
    fit(LEARNERS["dpsgd"], rows, public=False).publish().save(path)

    def lower(published):
        spent = published.privacy_spent_
        epsilon = published._card["epsilon"] = spent.epsilon * (1 - part)
        published.privacy_spent_ = replace(spent, epsilon=epsilon)

    forge(path, lower)
    if part > 1e-5:
        with pytest.raises(ValueError, match="it states epsilon="):
            PublishedClassifier.load(path, trusted=TRUSTED)
    else:
        PublishedClassifier.load(path, trusted=TRUSTED)


@pytest.mark.parametrize("name", ["output", "gaussian", "dpsgd", "search"])
def test_an_epsilon_below_the_price_is_refused(name, rows, tmp_path):
    path = tmp_path / "model.skops"
    fit(LEARNERS[name], rows, public=name not in WITHOUT_PUBLIC).publish().save(path)

    def halve(published):
        spent = published.privacy_spent_
        epsilon = published._card["epsilon"] = spent.epsilon / 2
        published.privacy_spent_ = replace(spent, epsilon=epsilon)

    forge(path, halve)
    with pytest.raises(ValueError, match=r"it states epsilon=.*, and .* cost"):
        PublishedClassifier.load(path, trusted=TRUSTED)


#: In each, the fit that won costs more than the search accounts for.
WINNERS = [
    ("search", "sigma", 0.1, "costs more than each"),
    ("search of networks", "noise_multiplier", 0.3, "costs more than each"),
    ("pure search", "output_scale", 1e-6, "costs more than each"),
]


def restate(published, fields):
    """Let the card say of a winner what its changed mechanism is in words."""
    text = rebuilt(fields, seeded=False).in_one_line()
    published._card["mechanism"] = text
    published.privacy_spent_ = replace(published.privacy_spent_, mechanism=text)


@pytest.mark.parametrize(("name", "parameter", "value", "message"), WINNERS)
def test_a_winner_that_costs_more_than_its_search_is_refused(
    name, parameter, value, message, rows, tmp_path
):
    path = tmp_path / "winner.skops"
    search = fit(LEARNERS[name], rows, public=name == "search")
    last_step(search.best_estimator_).publish().save(path)

    def change(published):
        fields = published._card["mechanism_fields"]
        fields["parameters"]["fit"]["parameters"][parameter] = value
        restate(published, fields)

    forge(path, change)
    with pytest.raises(ValueError, match=message):
        PublishedClassifier.load(path, trusted=TRUSTED)


def test_a_winner_without_its_number_of_queries_is_refused(rows, tmp_path):
    path = tmp_path / "winner.skops"
    fit(LEARNERS["search"], rows).best_estimator_.publish().save(path)

    def change(published):
        published._card["n_queries"] = None
        published.privacy_spent_ = replace(published.privacy_spent_, n_queries=None)

    forge(path, change)
    with pytest.raises(ValueError, match="by GNMax, has no n_queries"):
        PublishedClassifier.load(path)


def test_a_winner_of_another_relation_than_its_search_is_refused(rows, tmp_path):
    path = tmp_path / "winner.skops"
    search = fit(LEARNERS["search of networks"], rows, public=False)
    last_step(search.best_estimator_).publish().save(path)
    stronger = "replace-one"

    def change(published):
        published._card["mechanism_fields"]["parameters"]["add_remove"] = False
        published._card["relation"] = stronger
        published._card["neighbours"] = NEIGHBOURS["row", stronger]
        published.privacy_spent_ = replace(published.privacy_spent_, relation=stronger)

    forge(path, change)
    with pytest.raises(ValueError, match=r"by DPSGDSteps, does not"):
        PublishedClassifier.load(path, trusted=TRUSTED)


PURE = {"pure_epsilon": 1.0, "values": None}
#: Values of another kind than a parameter has, also where they change no cost.
ODD_VALUES = [
    ("output", "linear_scale", 1e9),
    ("output", "curvature", True),
    ("output", "learner", "a model without any noise, by DPLogisticRegression"),
    ("output", "learner", None),
    ("output", "method", None),
    ("gaussian", "output_scale", "1.0"),
    ("dpsgd", "expected_batch_size", None),
    ("dpsgd", "expected_batch_size", -1),
    ("dpsgd", "max_grad_norm", "nan"),
    ("dpsgd", "accountant", True),
    ("search", "fit", 1.0),
    ("search", "pure_scores", None),
    ("search", "add_remove", 0),
    ("search", "mean_n_trials", True),
    ("search", "score_scale", {"class": "GNMax", "parameters": {"sigma": 1.0}}),
    ("search", "fits", [PURE | {"pure_epsilon": True}]),
    ("search", "fits", [PURE | {"pure_epsilon": "1"}]),
    ("search", "fits", [PURE | {"values": ["1"] * 385}]),
    ("search", "fits", [PURE | {"values": [True] * 385}]),
    ("search", "fits", 10_001 * [PURE]),
]


@pytest.mark.parametrize(("name", "parameter", "value"), ODD_VALUES)
def test_a_parameter_of_another_kind_is_refused(name, parameter, value, originals):
    fields = deepcopy(originals(name).card["mechanism_fields"])
    rebuilt(fields, seeded=False)
    fields["parameters"][parameter] = value
    with pytest.raises(ValueError, match=rf"{parameter}|epsilon=|curve"):
        rebuilt(fields, seeded=False)


@pytest.mark.parametrize(("name", "parameter", "value"), FORGERIES)
def test_a_mechanism_that_is_not_the_one_in_words_is_refused(
    name, parameter, value, rows, tmp_path
):
    path = tmp_path / "model.skops"
    fit(LEARNERS[name], rows, public=name not in WITHOUT_PUBLIC).publish().save(path)

    def change(published):
        fields = published._card["mechanism_fields"]["parameters"]
        assert fields[parameter] != value
        fields[parameter] = value

    forge(path, change)
    with pytest.raises(ValueError, match="contradicts itself or its model"):
        PublishedClassifier.load(path, trusted=TRUSTED)
