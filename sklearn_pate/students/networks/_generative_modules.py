"""Networks that a GAN is made of unless the user brings some."""

import math

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

__all__ = ["Discriminator", "default_discriminator", "default_generator"]

HIDDEN_SIZES = (400, 200, 200)
# Salimans et al. add noise of 0.3 to inputs and 0.5 to hidden layers.
INPUT_NOISE = 0.6


class GaussianNoise(nn.Module):
    """Add noise to inputs during training.

    Parameters
    ----------
    scale : float
        Standard deviation.
    """

    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, inputs):
        """Add noise, or in evaluation nothing.

        Parameters
        ----------
        inputs : Tensor
            Any.

        Returns
        -------
        outputs : Tensor
            Of the same shape.
        """
        if not self.training or self.scale == 0:
            return inputs
        return inputs + self.scale * torch.randn_like(inputs)


class Discriminator(nn.Sequential):
    """A perceptron with weight normalisation, and noise in every layer.

    Parameters
    ----------
    input_shape : tuple of int
        (n_features,), or (channels, height, width).

    n_classes : int
        Number of outputs.

    noise : float, default=0.5
        Standard deviation of the noise behind each hidden layer; 0.6 of it is added to
        inputs.
    """

    def __init__(self, input_shape, n_classes, noise=0.5):
        layers = [nn.Flatten(), GaussianNoise(INPUT_NOISE * noise)]
        n_in = math.prod(input_shape)
        for n_out in HIDDEN_SIZES:
            layers += [weight_norm(nn.Linear(n_in, n_out)), nn.ReLU()]
            layers += [GaussianNoise(noise)]
            n_in = n_out
        super().__init__(*layers, weight_norm(nn.Linear(n_in, n_classes)))

    @torch.no_grad()
    def standardize_outputs(self, inputs):
        """Initialise lengths of weights, and biases, from data.

        Parameters
        ----------
        inputs : Tensor of shape (n_rows, *input_shape)
            On these, the outputs of each layer will have mean 0 and deviation 1.

        Notes
        -----
        Salimans, Kingma (2016), "Weight normalization: a simple reparameterization to
        accelerate training of deep neural networks", section 3.
        """
        for layer in self:
            outputs = layer(inputs)
            if isinstance(layer, nn.Linear):
                mean, scale = outputs.mean(dim=0), outputs.std(dim=0).clamp_min(1e-6)
                layer.parametrizations.weight.original0.div_(scale[:, None])
                layer.bias.copy_((layer.bias - mean) / scale)
                outputs = layer(inputs)
            inputs = outputs


def default_discriminator(input_shape, n_classes, noise):
    """Build a perceptron for rows, or a convolutional network for images.

    Parameters
    ----------
    input_shape : tuple of int
        (n_features,), or (channels, height, width).

    n_classes : int
        Number of outputs.

    noise : float
        As of :class:`Discriminator`.

    Returns
    -------
    module : torch.nn.Module
        From a batch of inputs to logits of shape (n_rows, n_classes).
    """
    if len(input_shape) == 1:
        return Discriminator(input_shape, n_classes, noise)
    channels, height, width = input_shape
    n_coarse = 64 * math.ceil(height / 4) * math.ceil(width / 4)
    return nn.Sequential(
        nn.Conv2d(channels, 32, 5, stride=2, padding=2, bias=False),
        nn.BatchNorm2d(32),
        nn.LeakyReLU(0.1),
        nn.Conv2d(32, 64, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(64),
        nn.LeakyReLU(0.1),
        nn.Flatten(),
        nn.Linear(n_coarse, 128),
        nn.ReLU(),
        nn.Linear(128, n_classes),
    )


def default_generator(n_latent, input_shape):
    """Build a perceptron that makes rows, or a convolutional network for images.

    Parameters
    ----------
    n_latent : int
        Number of random numbers that an output is made from.

    input_shape : tuple of int
        (n_features,), or (channels, height, width).

    Returns
    -------
    module : torch.nn.Module
        From latent vectors of shape (n_rows, n_latent) to (n_rows, *input_shape).
        Images lie between 0 and 1, as scaled inputs do.
    """
    if len(input_shape) == 1:
        layers = []
        for n_in in (n_latent, 500):
            layers += [nn.Linear(n_in, 500, bias=False), nn.BatchNorm1d(500)]
            layers += [nn.Softplus()]
        return nn.Sequential(*layers, nn.Linear(500, *input_shape))
    channels, height, width = input_shape
    # Doubled twice; what is too much is cut off.
    coarse = (32, math.ceil(height / 4), math.ceil(width / 4))
    n_coarse = math.prod(coarse)
    return nn.Sequential(
        nn.Linear(n_latent, n_coarse, bias=False),
        nn.BatchNorm1d(n_coarse),
        nn.ReLU(),
        nn.Unflatten(1, coarse),
        nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.ConvTranspose2d(16, channels, 4, stride=2, padding=1),
        nn.Sigmoid(),
        Crop(height, width),
    )


class Crop(nn.Module):
    """Cut images to a size.

    Parameters
    ----------
    height, width : int
        At most those of the images.
    """

    def __init__(self, height, width):
        super().__init__()
        self.height = height
        self.width = width

    def forward(self, images):
        """Keep the upper left part.

        Parameters
        ----------
        images : Tensor of shape (n_images, channels, any height, any width)
            A batch.

        Returns
        -------
        images : Tensor of shape (n_images, channels, height, width)
            Views.
        """
        return images[..., : self.height, : self.width]
