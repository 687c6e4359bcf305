"""Teachers and students on images, with figures of the teachers' votes."""

import math

import numpy as np
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from skorch import NeuralNetClassifier
from torch import nn
from torch.nn import functional

from benchmarks.record import summary
from sklearn_pate import students
from sklearn_pate.mechanisms import LNMax

GAMMA = 0.05  # Laplace noise of scale 20


class Moved(nn.Module):
    """Layers on images that are rotated, scaled, sheared and shifted in training."""

    def __init__(self, layers, side=28):
        super().__init__()
        self.layers = layers
        self.side = side

    def forward(self, X):
        """Return logits."""
        images = X.reshape(-1, 1, self.side, self.side)
        return self.layers(_moved(images) if self.training else images)


class Network(Moved):
    """Two convolutions with max-pooling and one linear map, as in the 2017 paper."""

    def __init__(self, side=28, n_classes=10):
        n_left = ((side - 4) // 2 - 4) // 2
        layers = nn.Sequential(
            nn.Conv2d(1, 8, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(16 * n_left**2, n_classes),
        )
        super().__init__(layers, side)


def _moved(images):
    def uniform(bound):
        return (2 * torch.rand(len(images)) - 1) * bound

    angle, shear = uniform(math.radians(15)), uniform(0.2)
    width, height = torch.exp(uniform(0.15)), torch.exp(uniform(0.15))
    cos, sin = torch.cos(angle), torch.sin(angle)
    maps = torch.stack(
        [
            torch.stack([cos * width, shear - sin, uniform(0.2)], dim=1),
            torch.stack([sin, cos * height, uniform(0.2)], dim=1),
        ],
        dim=1,
    )
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)


def network(images, n_teachers):
    """Return the teacher of the papers; large shards take fewer epochs."""
    return NeuralNetClassifier(
        Network,
        module__side=images.shape[-1],
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.SGD,
        optimizer__momentum=0.9,
        lr=0.05,
        batch_size=24,
        max_epochs={10: 8, 100: 25}.get(n_teachers, 40),
        iterator_train__shuffle=True,
        train_split=None,
        verbose=0,
    )


def discriminant(images, n_teachers):
    """Return a linear teacher for a representation."""
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.3)


TEACHERS = {"network": network, "discriminant": discriminant}


def _graph(estimator, representation):
    return students.GraphSelfTrainingClassifier(
        estimator, representation, n_neighbors=5, share=1.0
    )


def _on_pixels(images, classifier):
    return make_pipeline(images.pixels(), classifier)


def distortion():
    """Return the augmentation of images for students."""
    return students.ImageAugmentation(shear=0.25, elastic=0.03, contrast=0.5)


def _fix_match(images):
    return _on_pixels(
        images,
        students.FixMatchClassifier(
            image_shape=images.shape, augmentation=distortion(), max_epochs=20
        ),
    )


def _gan(images):
    return _on_pixels(
        images,
        students.GANClassifier(
            image_shape=images.shape, augmentation=distortion(), max_epochs=15
        ),
    )


def _logistic(representation):
    return make_pipeline(representation, LogisticRegression(C=100, max_iter=1000))


#: Students as functions of images and a fitted representation.
STUDENTS = {
    "FixMatch": lambda images, _: _fix_match(images),
    "GAN": lambda images, _: _gan(images),
    "logistic": lambda _, representation: _logistic(representation),
    "distilled": lambda _, representation: students.DistillationClassifier(
        _logistic(representation)
    ),
    "distilled, T = 5": lambda _, representation: students.DistillationClassifier(
        _logistic(representation), temperature=5
    ),
    "graph, discriminant": lambda images, representation: _graph(
        make_pipeline(representation, discriminant(images, None)), representation
    ),
    "graph, FixMatch": lambda images, representation: _graph(
        _fix_match(images), representation
    ),
    "graph, GAN": lambda images, representation: _graph(_gan(images), representation),
}


def vote_figures(counts, y, n_teachers):
    """Measure accuracy and agreement of teachers."""
    ranked = np.sort(counts, axis=1)
    return {
        "mean_accuracy": float(counts[np.arange(len(y)), y].mean() / n_teachers),
        "gap": float((ranked[:, -1] - ranked[:, -2]).mean() / n_teachers),
        "plurality": float(np.mean(counts.argmax(axis=1) == y)),
    }


def answers_at_scale_20(counts, y):
    """Measure how many of the answers with Laplace noise are right, five times."""
    return summary(np.mean(LNMax(gamma=GAMMA).answer(counts) == y) for _ in range(5))
