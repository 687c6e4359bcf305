"""Published networks of users, and what stays behind."""

import pickle

import pytest
import skorch
import torch

from sklearn_pate import PublishedClassifier
from sklearn_pate.learners import DPSGDClassifier
from tests.private import model_fingerprint, restored, taken_apart
from tests.publication.learners import (
    CLASSES,
    LEARNERS,
    Net,
    assert_predicts_alike,
    fit,
    network,
)


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
    with pytest.raises(ValueError, match="is a Scaling that overrides infer"):
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


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model.module_.__setitem__(1, torch.nn.Tanh()),
        lambda model: model.module_.__setitem__(1, torch.nn.LeakyReLU(0.5)),
        lambda model: model.set_params(predict_nonlinearity=None),
        lambda model: model.set_params(criterion=torch.nn.NLLLoss),
    ],
    ids=["layer", "parameter of a layer", "nonlinearity", "criterion"],
)
def test_what_a_network_computes_from_its_weights_counts(change):
    layers = torch.nn.Linear(2, 4), torch.nn.LeakyReLU(), torch.nn.Linear(4, 3)
    model = skorch.NeuralNetClassifier(
        torch.nn.Sequential(*layers), criterion=torch.nn.CrossEntropyLoss
    ).initialize()
    fingerprint = model_fingerprint(model)
    change(model)
    assert model_fingerprint(model) != fingerprint
