# SPDX-License-Identifier: Apache-2.0
"""Tensors of PyTorch as tensors of libhvd. They are handed over by pointer, without a copy: those on the
CPU, and those on a GPU if NCCL can do the operation. Otherwise these go through host memory."""
import ctypes
import functools
import weakref

import torch

from horovod.common import library
from horovod.common.library import hvd
from horovod.torch import stream

_NAMES = {  # torch's names, and values of enum hvd_type
    "uint8": 0,
    "int8": 1,
    "uint16": 2,
    "int16": 3,
    "int32": 4,
    "int64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bool": 9,
    "bfloat16": 10,
    "uint32": 11,
    "uint64": 12,
}
_NOT_OF_NCCL = {getattr(torch, name) for name in ("int16", "uint16") if hasattr(torch, name)}
TYPES = {getattr(torch, name): value for name, value in _NAMES.items() if hasattr(torch, name)}


def check(tensor, operation):
    """ValueError: libhvd cannot take the tensor."""
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"{operation}: {type(tensor).__name__} is not a tensor")
    if tensor.layout != torch.strided:
        raise ValueError(f"{operation}: the tensor is sparse; use hvd.sparse_allreduce_async() or tensor.to_dense()")
    if tensor.device.type not in ("cpu", "cuda"):
        raise ValueError(f"{operation}: tensors on {tensor.device.type} are not supported; use tensor.cpu()")
    if tensor.dtype not in TYPES:
        raise ValueError(f"{operation}: tensors of {tensor.dtype} are not supported; use {', '.join(_NAMES)}")


def output_like(tensor, operation):
    """An empty tensor for the result of an operation that keeps the shape."""
    check(tensor, operation)
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _is_reducible(dtype, scaled):
    """What NCCL can reduce. It cannot scale integers."""
    return dtype.is_floating_point or not (scaled or dtype in _NOT_OF_NCCL)


def place_of(tensor, reduces=False, scaled=False):
    """The stream.Place of a tensor on a GPU; None: libhvd gets host memory."""
    device = stream.cuda.device_of(tensor)
    if device is None or not stream.has_nccl() or (reduces and not _is_reducible(tensor.dtype, scaled)):
        return None
    return stream.Place(device)


def source_of(tensor, place):
    """What libhvd reads: the tensor itself, or a copy that is dense, and on the host without a place."""
    if place is None and tensor.is_cuda:
        tensor = tensor.detach().cpu()
    if tensor.is_contiguous() and not tensor.is_neg():
        return tensor
    return tensor.detach().resolve_neg().contiguous()


def target_of(output, place):
    """What libhvd writes: the output itself, or memory that deliver() copies to it."""
    if output.is_contiguous() and not output.is_neg() and (place is not None or output.device.type == "cpu"):
        return output
    if place is not None:
        return output.new_empty(output.shape)
    return torch.empty(output.shape, dtype=output.dtype, device="cpu")


def deliver(target, output, place):
    """The operation is complete."""
    if place is not None:
        place.join()
    if target is not output:
        with torch.no_grad():
            output.copy_(target)
    return output


@functools.lru_cache(maxsize=4096)
def _lengths(shape):
    """Trainings use the same shapes in each step."""
    return (ctypes.c_int64 * len(shape))(*shape) if shape else None


def as_hvd(name, place, tensor, output=None):
    """A struct hvd_tensor for tensors that live as long as it."""
    where, raw, device = torch.Tensor.data_ptr, None, -1
    if place is not None:
        where, raw, device = stream.cuda.address, place.stream, place.device
    written = None if output is None else where(output)
    shape, dtype = tensor.shape, TYPES[tensor.dtype]
    return library.Tensor(name.encode(), _lengths(shape), len(shape), dtype, where(tensor), written, raw, device)


def adopt(result, like, place, device):
    """The output of an allgather or alltoall of `like`. Host memory is not copied: libhvd's memory is freed
    with the tensor. On a GPU it is copied, because PyTorch must know all memory that its streams use."""
    shape = (result.rows, *like.shape[1:])
    count = 1
    for length in shape:
        count *= length
    if place is not None:
        output = like.new_empty(shape)
        place.join()
        to = stream.cuda.address(output) if count else None
        current = stream.cuda.current(place.device)
        library.check(hvd.hvd_result_move(ctypes.byref(result), to, count * like.element_size(), current))
        return output
    if not result.data or count == 0:
        hvd.hvd_result_free(ctypes.byref(result))
        return torch.empty(shape, dtype=like.dtype, device=device)
    memory = (ctypes.c_uint8 * (count * like.element_size())).from_address(result.data)
    weakref.finalize(memory, hvd.hvd_result_free, ctypes.byref(result)).atexit = False
    return torch.frombuffer(memory, dtype=like.dtype).view(shape).to(device)


def splits_of(result):
    return [result.splits[i] for i in range(result.split_count)]
