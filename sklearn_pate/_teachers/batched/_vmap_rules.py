"""What networks of many teachers do at once, where torch has no way or a slow one.

On a processor, torch would lay teachers side by side with the pixels innermost, where
its max-pooling, and its convolution of few channels, are slow. With the channels of all
teachers innermost ("channels last") both are several times as fast.
"""

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

__all__ = ["ManyTeachers"]

# Operations that keep teachers apart whatever the numbers are, by the names that torch
# gives them. Not every one does: torch.vmap makes an embedding take a category that it
# does not know from the table of the next teacher, and a sampler that rejects draws
# moves those of the teachers after it.
_NAMES = """
abs add addcdiv addcmul atan2 ceil clamp clamp_max clamp_min cos cosh deg2rad div eq
erf exp expm1 fill floor ge gt isfinite isinf isnan le lerp log log1p log2 logical_and
logical_not logical_or lt maximum minimum mul nan_to_num ne neg pow rad2deg reciprocal
relu round rsqrt sigmoid sign sin sinh sqrt square sub tan tanh true_divide where
__add__ __and__ __eq__ __floordiv__ __ge__ __gt__ __iadd__ __imul__ __invert__
__isub__ __itruediv__ __le__ __lt__ __mul__ __ne__ __neg__ __or__ __pow__ __radd__
__rdiv__ __rmul__ __rpow__ __rsub__ __rtruediv__ __sub__ __truediv__

alpha_dropout celu dropout dropout1d dropout2d elu feature_alpha_dropout gelu glu
hardsigmoid hardswish hardtanh leaky_relu log_softmax logsigmoid mish prelu relu6 selu
silu softmax softplus softsign tanhshrink threshold

addmm all amax amin any argmax argmin baddbmm bmm cumsum einsum linear logsumexp
matmul max mean min mm multi_head_attention_forward norm prod
scaled_dot_product_attention std sum var __matmul__ __rmatmul__

adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool2d affine_grid avg_pool1d
avg_pool2d conv2d grid_sample group_norm instance_norm interpolate layer_norm
local_response_norm max_pool1d max_pool2d normalize pad pixel_shuffle

bool broadcast_to cat chunk clone contiguous detach dim double expand expand_as
flatten flip float int is_contiguous is_floating_point long mT meshgrid movedim narrow
numel permute repeat reshape roll select size split squeeze stack stride swapaxes t
tile to transpose tril triu type type_as unbind unflatten unsqueeze view view_as
__get__ __getitem__ __iter__ __len__

arange as_tensor bernoulli empty empty_like eye full full_like linspace new_empty
new_full new_ones new_zeros normal ones ones_like rand rand_like randint randint_like
randn randn_like tensor uniform zero zeros zeros_like
"""
_KEEP_APART = frozenset(_NAMES.split())
# On a processor, these take longer for several teachers at once than one by one.
_KEEP_APART_ON_CUDA = _KEEP_APART | {
    "conv1d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
}


class ManyTeachers(TorchFunctionMode):
    """Within it, networks under `torch.vmap` find other ways for some operations.

    Parameters
    ----------
    device : torch.device
        Where they run.
    """

    def __init__(self, device):
        super().__init__()
        self._on_cpu = device.type == "cpu"

    def __torch_function__(self, func, types, args=(), kwargs=None):
        """Refuse what is not known, and replace what has another way."""
        kwargs = kwargs or {}
        known = _KEEP_APART if self._on_cpu else _KEEP_APART_ON_CUDA
        name = func.__name__
        if name not in known and name.removesuffix("_") not in known:
            raise NotImplementedError(
                f"{name} is not known to keep teachers apart, or is faster one by one"
            )
        if func is functional.affine_grid:
            return _affine_grid(*args, **kwargs)
        if self._on_cpu:
            if func is torch.conv2d:
                return _conv2d(*args, **kwargs)
            if func is functional.max_pool2d:
                return _max_pool2d(*args, **kwargs)
            if func is torch.Tensor.view and not any(
                isinstance(arg, torch.dtype) for arg in args
            ):
                # Numbers of a row are no longer neighbours, as a view wants them to be.
                return torch.Tensor.reshape(*args, *kwargs.values())
        return func(*args, **kwargs)


def _affine_grid(theta, size, align_corners=False):
    return _AffineGrid.apply(theta, tuple(size), bool(align_corners))


def _conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    if x.ndim != 4:
        return torch.conv2d(x, weight, bias, stride, padding, dilation, groups)
    return _Conv2d.apply(x, weight, bias, stride, padding, dilation, groups)


def _max_pool2d(x, kernel_size, *args, return_indices=False, **kwargs):
    if x.ndim != 4 or return_indices:
        return functional.max_pool2d(
            x, kernel_size, *args, return_indices=return_indices, **kwargs
        )
    return _MaxPool2d.apply(x, kernel_size, args, kwargs)


class _AffineGrid(torch.autograd.Function):
    @staticmethod
    def forward(theta, size, align_corners):
        return functional.affine_grid(theta, size, align_corners)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def vmap(info, in_dims, theta, size, align_corners):
        theta = theta.movedim(in_dims[0], 0).flatten(0, 1)
        size = len(theta), *size[1:]
        grid = functional.affine_grid(theta, size, align_corners)
        return grid.unflatten(0, (info.batch_size, -1)), 0


class _Conv2d(torch.autograd.Function):
    @staticmethod
    def forward(x, weight, bias, stride, padding, dilation, groups):
        return torch.conv2d(x, weight, bias, stride, padding, dilation, groups)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def vmap(info, in_dims, x, weight, bias, stride, padding, dilation, groups):
        n_teachers = info.batch_size
        weight = _by_teacher(weight, in_dims[1], n_teachers).flatten(0, 1)
        if bias is not None:
            bias = _by_teacher(bias, in_dims[2], n_teachers).flatten(0, 1)
        if in_dims[0] is None and groups == 1:  # all teachers look at the same rows
            x = x.contiguous(memory_format=torch.channels_last)
        else:
            x = _side_by_side(x, in_dims[0], n_teachers)
            groups *= n_teachers
        y = torch.conv2d(x, weight, bias, stride, padding, dilation, groups)
        return y.unflatten(1, (n_teachers, -1)), 1


class _MaxPool2d(torch.autograd.Function):
    @staticmethod
    def forward(x, kernel_size, args, kwargs):
        return functional.max_pool2d(x, kernel_size, *args, **kwargs)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def vmap(info, in_dims, x, kernel_size, args, kwargs):
        x = _side_by_side(x, in_dims[0], info.batch_size)
        y = functional.max_pool2d(x, kernel_size, *args, **kwargs)
        return y.unflatten(1, (info.batch_size, -1)), 1


def _by_teacher(tensor, dim, n_teachers):
    if dim is None:
        return tensor.expand(n_teachers, *tensor.shape)
    return tensor.movedim(dim, 0)


def _side_by_side(x, dim, n_teachers):
    """Turn (n_teachers, n_rows, channels, ...) into (n_rows, all channels, ...)."""
    x = _by_teacher(x, dim, n_teachers).movedim(0, 1).flatten(1, 2)
    return x.contiguous(memory_format=torch.channels_last)
