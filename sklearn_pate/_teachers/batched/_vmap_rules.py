"""Operations on networks of many teachers that torch lacks, or does slowly.

On a processor, torch would store teachers with the pixels innermost, which makes its
max-pooling, and its convolution of few channels, slow. With the channels of all
teachers innermost ("channels last") both are several times as fast.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

__all__ = ["ManyTeachers"]

Dims = tuple[int | None, ...]

# Names of torch operations that keep teachers independent for any numbers. Others do
# not: with torch.vmap an embedding reads an unknown category from the table of the next
# teacher, and a sampler that rejects draws changes those of later teachers.
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
_INDEPENDENT = frozenset(_NAMES.split())
# On a processor, these take longer for several teachers at once than one by one.
_INDEPENDENT_ON_CUDA = _INDEPENDENT | {
    "conv1d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
}


class ManyTeachers(TorchFunctionMode):
    """Context for networks under `torch.vmap`, with the operations of this module."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._on_cpu = device.type == "cpu"

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Refuse unknown operations, and replace those that have an alternative."""
        kwargs = kwargs or {}
        supported = _INDEPENDENT if self._on_cpu else _INDEPENDENT_ON_CUDA
        name = func.__name__
        if name not in supported and name.removesuffix("_") not in supported:
            raise NotImplementedError(
                f"{name} may mix teachers, or is faster for teachers one by one"
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
                # The numbers of a row are not contiguous, as a view requires.
                return torch.Tensor.reshape(*args, *kwargs.values())
        return func(*args, **kwargs)


def _affine_grid(
    theta: torch.Tensor, size: Iterable[int], align_corners: Any = False
) -> Any:
    return _AffineGrid.apply(theta, tuple(size), bool(align_corners))


def _conv2d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    if x.ndim != 4:
        return torch.conv2d(x, weight, bias, stride, padding, dilation, groups)
    return _Conv2d.apply(x, weight, bias, stride, padding, dilation, groups)


def _max_pool2d(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    if x.ndim != 4 or kwargs.get("return_indices"):
        return functional.max_pool2d(x, *args, **kwargs)
    return _MaxPool2d.apply(x, args, kwargs)


class _Batched(torch.autograd.Function):
    """Operation with its own vmap rule, without a backward pass of its own."""

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass


class _AffineGrid(_Batched):
    @staticmethod
    def forward(
        theta: torch.Tensor, size: tuple[int, ...], align_corners: bool
    ) -> torch.Tensor:
        return functional.affine_grid(theta, [*size], align_corners)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int, ...],
        theta: torch.Tensor,
        size: tuple[int, ...],
        align_corners: bool,
    ) -> tuple[torch.Tensor, int]:
        theta = theta.movedim(in_dims[0], 0).flatten(0, 1)
        size = len(theta), *size[1:]
        grid = functional.affine_grid(theta, [*size], align_corners)
        return grid.unflatten(0, (info.batch_size, -1)), 0


class _Conv2d(_Batched):
    @staticmethod
    def forward(
        x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, *options: Any
    ) -> torch.Tensor:
        return torch.conv2d(x, weight, bias, *options)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: Dims,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int,
    ) -> tuple[torch.Tensor, int]:
        n_teachers = info.batch_size
        weight = _by_teacher(weight, in_dims[1], n_teachers).flatten(0, 1)
        if bias is not None:
            bias = _by_teacher(bias, in_dims[2], n_teachers).flatten(0, 1)
        if in_dims[0] is None and groups == 1:  # all teachers have the same rows
            x = x.contiguous(memory_format=torch.channels_last)
        else:
            x = _side_by_side(x, in_dims[0], n_teachers)
            groups *= n_teachers
        y = torch.conv2d(x, weight, bias, stride, padding, dilation, groups)
        return y.unflatten(1, (n_teachers, -1)), 1


class _MaxPool2d(_Batched):
    @staticmethod
    def forward(
        x: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> torch.Tensor:
        return functional.max_pool2d(x, *args, **kwargs)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: Dims,
        x: torch.Tensor,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[torch.Tensor, int]:
        x = _side_by_side(x, in_dims[0], info.batch_size)
        y = functional.max_pool2d(x, *args, **kwargs)
        return y.unflatten(1, (info.batch_size, -1)), 1


def _by_teacher(tensor: torch.Tensor, dim: int | None, n_teachers: int) -> torch.Tensor:
    if dim is None:
        return tensor.expand(n_teachers, *tensor.shape)
    return tensor.movedim(dim, 0)


def _side_by_side(x: torch.Tensor, dim: int | None, n_teachers: int) -> torch.Tensor:
    """Turn (n_teachers, n_rows, channels, ...) into (n_rows, all channels, ...)."""
    x = _by_teacher(x, dim, n_teachers).movedim(0, 1).flatten(1, 2)
    return x.contiguous(memory_format=torch.channels_last)
