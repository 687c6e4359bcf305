"""Training of a discriminator and a generator, in alternating steps."""

from collections.abc import Callable
from typing import Any, Self

import torch
from skorch.utils import to_device
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrize

from sklearn_pate._estimators._hidden_layer import hidden_passes
from sklearn_pate.students.networks._modules import Discriminator
from sklearn_pate.students.networks._network_training import SemiSupervisedNet

__all__ = ["GANNet", "adversarial_loss", "feature_matching_loss"]

# Weights of both networks oscillate; a long running mean smooths that.
AVERAGING = 0.999
# Gradients change direction; a large first beta (memory) harms training.
BETAS = (0.5, 0.999)
# Number of rows from which the scale of a layer's outputs is estimated.
N_FIRST = 500


class GANNet(SemiSupervisedNet):
    """Training of :class:`GANClassifier`; the module is its discriminator."""

    def __init__(
        self,
        module: nn.Module,
        *,
        make_generator: Callable[[], nn.Module],
        n_latent: int,
        generator_lr: float,
        augmentation: Any,
        adversarial_weight: float,
        guess_weight: float,
        threshold: float,
        **parameters: Any,
    ) -> None:
        super().__init__(module, averaging=AVERAGING, **parameters)
        self.make_generator = make_generator
        self.n_latent = n_latent
        self.generator_lr = generator_lr
        self.augmentation = augmentation
        self.adversarial_weight = adversarial_weight
        self.guess_weight = guess_weight
        self.threshold = threshold

    def initialize_module(self) -> Self:
        """Set up both networks, `module_` and `generator_`."""
        super().initialize_module()
        self.generator_ = self.make_generator()
        return self

    def initialize_optimizer(self) -> Self:
        """Create one optimiser for each network."""
        self.optimizer_ = torch.optim.Adam(
            _trainable(self.module_), lr=self.lr, betas=BETAS
        )
        self.generator_optimizer_ = torch.optim.Adam(
            _trainable(self.generator_), lr=self.generator_lr, betas=BETAS
        )
        return self

    def on_train_begin(
        self, net: Any, X: Any = None, y: None = None, **kwargs: Any
    ) -> None:
        """Initialise the default discriminator from the first rows."""
        super().on_train_begin(net, X=X, y=y, **kwargs)
        if isinstance(self.module_, Discriminator):
            self.module_.standardize_outputs(X.inputs[:N_FIRST].to(self.device))

    def on_train_end(
        self, net: Any, X: Any = None, y: None = None, **kwargs: Any
    ) -> None:
        """Replace weight normalisation by plain weights, which can be pickled."""
        super().on_train_end(net, X=X, y=y, **kwargs)
        for layer in list(self.averaged_.modules()):
            if parametrize.is_parametrized(layer):
                for name in list(layer.parametrizations):  # type: ignore[arg-type]
                    parametrize.remove_parametrizations(layer, name)
                # Hooks left by weight_norm cannot be pickled either.
                layer._load_state_dict_pre_hooks.clear()

    def train_step(
        self, batch: tuple[Tensor, ...], **fit_params: Any
    ) -> dict[str, Tensor]:
        """Follow the gradients of both networks once, on a batch of `PairedBatches`."""
        self._set_training(True)
        labeled, targets, unlabeled = to_device(batch, self.device)
        n_labeled = len(labeled)
        real = self._change(torch.cat([labeled, unlabeled]), "strong")
        # Batch normalisation needs two rows.
        latent = torch.rand(max(len(unlabeled), 2), self.n_latent, device=self.device)
        # Normalised weights are computed once for all passes.
        with parametrize.cached(), hidden_passes(self.module_) as features:
            logits = self.module_(real)
            of_generated = self.module_(self.generator_(latent))
            of_labeled, of_unlabeled = logits[:n_labeled], logits[n_labeled:]
            loss = self.criterion_(of_labeled, targets)
            loss = loss + self.adversarial_weight * adversarial_loss(
                of_unlabeled, of_generated
            )
            if self.guess_weight > 0:
                loss = loss + self.guess_weight * self._guess_loss(
                    of_unlabeled, unlabeled
                )
            of_real, of_fake = features[:2]
            matching = feature_matching_loss(of_real[n_labeled:].detach(), of_fake)
            _set_gradients(self.optimizer_, loss, retain_graph=True)
            _set_gradients(self.generator_optimizer_, matching)
        self.optimizer_.step()
        self.generator_optimizer_.step()
        return {"loss": loss.detach()}

    def _guess_loss(self, logits: Tensor, unlabeled: Tensor) -> Tensor:
        """Compute the cross entropy with confident guesses on weakly changed inputs."""
        self.module_.eval()
        with torch.no_grad():
            guesses = self.module_(self._change(unlabeled, "weak")).softmax(dim=1)
        self.module_.train()
        confidence, classes = guesses.max(dim=1)
        losses = functional.cross_entropy(logits, classes, reduction="none")
        return (losses * (confidence >= self.threshold)).mean()

    def _change(self, inputs: Tensor, how: str) -> Tensor:
        if self.augmentation is None:
            return inputs
        return getattr(self.augmentation, how)(inputs)


def adversarial_loss(of_unlabeled: Tensor, of_generated: Tensor) -> Tensor:
    """Compute -(E ln D(x) + E ln(1 - D(G(z)))) / 2, where D = Z / (Z + 1).

    Salimans et al. (2016), section 5, with the logit of the class "generated" fixed at
    0. Z is the sum of the exponentials of the logits l, of shape (n_rows, n_classes),
    so that -ln D(x) = softplus(-ln Z) and -ln(1 - D(x)) = softplus(ln Z).
    """
    log_z_real = of_unlabeled.logsumexp(dim=1)
    log_z_generated = of_generated.logsumexp(dim=1)
    real = functional.softplus(-log_z_real).mean()
    return (real + functional.softplus(log_z_generated).mean()) / 2


def feature_matching_loss(of_real: Tensor, of_generated: Tensor) -> Tensor:
    """Compute the mean squared difference of mean features.

    Salimans et al. (2016), section 3.1, divided by the number of dimensions. Features
    have shape (n_rows, n_dimensions).
    """
    return (of_real.mean(dim=0) - of_generated.mean(dim=0)).square().mean()


def _trainable(module: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def _set_gradients(optimizer: torch.optim.Optimizer, loss: Tensor, **how: Any) -> None:
    """Set the gradients of the parameters of one optimiser only."""
    optimizer.zero_grad()
    (group,) = optimizer.param_groups
    loss.backward(inputs=group["params"], **how)
