"""Training of a discriminator and a generator, in turns of one step."""

import torch
from skorch.utils import to_device
from torch.nn import functional
from torch.nn.utils import parametrize

from sklearn_pate._estimators._hidden_layer import hidden_passes
from sklearn_pate.students.networks._generative_modules import Discriminator
from sklearn_pate.students.networks._network_training import SemiSupervisedNet

__all__ = ["GANNet", "adversarial_loss", "feature_matching_loss"]

# Two players swing about their optimum; a long mean smooths that out.
AVERAGING = 0.999
# Gradients of two players change direction; a long memory of them does harm.
BETAS = (0.5, 0.999)
# Enough rows for the scale of a layer's outputs.
N_FIRST = 500


class GANNet(SemiSupervisedNet):
    """Training of :class:`GANClassifier`.

    Parameters
    ----------
    module : torch.nn.Module
        The discriminator, from a batch of inputs to logits.

    make_generator : callable
        Without arguments; makes a module from latent vectors to inputs.

    n_latent : int
        Length of a latent vector.

    generator_lr : float
        Learning rate of the generator.

    augmentation : object or None
        With methods ``weak`` and ``strong``.

    adversarial_weight, guess_weight, threshold : float
        As in :class:`GANClassifier`.

    **parameters : dict
        As for :class:`SemiSupervisedNet`.
    """

    def __init__(
        self,
        module,
        *,
        make_generator,
        n_latent,
        generator_lr,
        augmentation,
        adversarial_weight,
        guess_weight,
        threshold,
        **parameters,
    ):
        super().__init__(module, averaging=AVERAGING, **parameters)
        self.make_generator = make_generator
        self.n_latent = n_latent
        self.generator_lr = generator_lr
        self.augmentation = augmentation
        self.adversarial_weight = adversarial_weight
        self.guess_weight = guess_weight
        self.threshold = threshold

    def initialize_module(self):
        """Set up both networks.

        Returns
        -------
        self : GANNet
            With `module_` and `generator_`.
        """
        super().initialize_module()
        self.generator_ = self.make_generator()
        return self

    def initialize_optimizer(self):
        """Give each network an optimiser of its own.

        Returns
        -------
        self : GANNet
            With `optimizer_` and `generator_optimizer_`.
        """
        self.optimizer_ = torch.optim.Adam(
            _trainable(self.module_), lr=self.lr, betas=BETAS
        )
        self.generator_optimizer_ = torch.optim.Adam(
            _trainable(self.generator_), lr=self.generator_lr, betas=BETAS
        )
        return self

    def on_train_begin(self, net, X=None, y=None, **kwargs):
        """Initialise the default discriminator from the first rows.

        Parameters
        ----------
        net : GANNet
            This one.

        X : PublicRows
            All rows.

        y : None
            Not used.

        **kwargs : dict
            For skorch.
        """
        super().on_train_begin(net, X=X, y=y, **kwargs)
        if isinstance(self.module_, Discriminator):
            self.module_.standardize_outputs(X.inputs[:N_FIRST].to(self.device))

    def on_train_end(self, net, X=None, y=None, **kwargs):
        """Make plain weights of normalised ones, as those cannot be pickled.

        Parameters
        ----------
        net : GANNet
            This one.

        X : PublicRows
            All rows.

        y : None
            Not used.

        **kwargs : dict
            For skorch.
        """
        super().on_train_end(net, X=X, y=y, **kwargs)
        for layer in list(self.averaged_.modules()):
            if parametrize.is_parametrized(layer):
                for name in list(layer.parametrizations):
                    parametrize.remove_parametrizations(layer, name)
                # What weight_norm leaves behind cannot be pickled either.
                layer._load_state_dict_pre_hooks.clear()

    def train_step(self, batch, **fit_params):
        """Follow the gradients of both networks once.

        Parameters
        ----------
        batch : tuple of Tensors
            What :class:`PairedBatches` yields.

        **fit_params : dict
            None are used.

        Returns
        -------
        step : dict
            The loss of the discriminator.
        """
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

    def _guess_loss(self, logits, unlabeled):
        """Cross entropy with confident guesses on less changed inputs."""
        self.module_.eval()
        with torch.no_grad():
            guesses = self.module_(self._change(unlabeled, "weak")).softmax(dim=1)
        self.module_.train()
        confidence, classes = guesses.max(dim=1)
        losses = functional.cross_entropy(logits, classes, reduction="none")
        return (losses * (confidence >= self.threshold)).mean()

    def _change(self, inputs, how):
        if self.augmentation is None:
            return inputs
        return getattr(self.augmentation, how)(inputs)


def adversarial_loss(of_unlabeled, of_generated):
    """Compute -(E ln D(x) + E ln(1 - D(G(z)))) / 2, where D = Z / (Z + 1).

    Parameters
    ----------
    of_unlabeled : Tensor of shape (n_unlabeled, n_classes)
        Logits of real inputs.

    of_generated : Tensor of shape (n_generated, n_classes)
        Logits of generated ones.

    Returns
    -------
    loss : Tensor
        A number.

    Notes
    -----
    Salimans et al. (2016), section 5, with the logit of the class "generated" fixed at
    0. Z is the sum of the exponentials of the logits l, so that
    -ln D(x) = softplus(-ln Z) and -ln(1 - D(x)) = softplus(ln Z).
    """
    log_z_real = of_unlabeled.logsumexp(dim=1)
    log_z_generated = of_generated.logsumexp(dim=1)
    real = functional.softplus(-log_z_real).mean()
    return (real + functional.softplus(log_z_generated).mean()) / 2


def feature_matching_loss(of_real, of_generated):
    """Compute the mean squared difference of mean features.

    Parameters
    ----------
    of_real : Tensor of shape (n_real, n_dimensions)
        Features of real inputs.

    of_generated : Tensor of shape (n_generated, n_dimensions)
        Features of generated ones.

    Returns
    -------
    loss : Tensor
        A number.

    Notes
    -----
    Salimans et al. (2016), section 3.1, divided by the number of dimensions.
    """
    return (of_real.mean(dim=0) - of_generated.mean(dim=0)).square().mean()


def _trainable(module):
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def _set_gradients(optimizer, loss, **how):
    """Set the gradients of this optimiser's parameters, and of no others."""
    optimizer.zero_grad()
    (group,) = optimizer.param_groups
    loss.backward(inputs=group["params"], **how)
