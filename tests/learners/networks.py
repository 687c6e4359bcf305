"""A small network, and DP-SGD around it."""

import torch
from skorch import NeuralNetClassifier
from torch import nn

from sklearn_pate.learners import DPSGDClassifier

N_FEATURES, N_CLASSES = 64, 10


class Perceptron(nn.Module):
    def __init__(self, probabilities=False, dropout=0.0):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(N_FEATURES, 32),
            nn.Tanh(),
            nn.Dropout(dropout),
            nn.Linear(32, N_CLASSES),
            nn.Softmax(dim=1) if probabilities else nn.Identity(),
        )

    def forward(self, X):
        return self.layers(X)


def network(module=Perceptron, **parameters):
    defaults = {
        "criterion": nn.CrossEntropyLoss,
        "lr": 0.5,
        "batch_size": 100,
        "max_epochs": 1,
    }
    return NeuralNetClassifier(module, **(defaults | parameters))


def make(estimator=None, **parameters):
    defaults = {"epsilon": None, "noise_multiplier": 1.0, "random_state": 0}
    estimator = network() if estimator is None else estimator
    return DPSGDClassifier(estimator, **(defaults | parameters))


def weights(clf):
    module = clf.network_.module_
    return torch.cat([p.detach().flatten() for p in module.parameters()]).double()
