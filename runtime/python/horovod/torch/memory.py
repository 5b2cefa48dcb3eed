# SPDX-License-Identifier: Apache-2.0
"""Tensors of PyTorch as tensors of libhvd. CPU tensors are handed over by pointer, without a copy."""
import ctypes
import weakref

import torch

from horovod.common import library
from horovod.common.library import hvd

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
TYPES = {getattr(torch, name): value for name, value in _NAMES.items() if hasattr(torch, name)}


def check(tensor, operation):
    """ValueError: libhvd cannot take the tensor."""
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"{operation}: {type(tensor).__name__} is not a tensor")
    if tensor.layout != torch.strided:
        raise ValueError(f"{operation}: the tensor is sparse; use hvd.sparse_allreduce_async() or tensor.to_dense()")
    if tensor.dtype not in TYPES:
        raise ValueError(f"{operation}: tensors of {tensor.dtype} are not supported; use {', '.join(_NAMES)}")


def output_like(tensor, operation):
    """An empty tensor for the result of an operation that keeps the shape."""
    check(tensor, operation)
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def on_host(tensor):
    """The tensor itself, or a copy that is dense, and in the memory of the CPU."""
    tensor = tensor.detach()
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    return tensor.cpu().contiguous() if tensor.is_cuda else tensor.contiguous()


def is_direct(tensor):
    """libhvd can write to the tensor's memory."""
    return tensor.device.type == "cpu" and tensor.is_contiguous() and not tensor.is_neg()


def as_hvd(name, tensor, output=None):
    """A struct hvd_tensor for tensors on the host; they must live as long as it."""
    dims = tensor.dim()
    shape = (ctypes.c_int64 * dims)(*tensor.shape) if dims else None
    place = None if output is None else output.data_ptr()
    return library.Tensor(name.encode(), shape, dims, TYPES[tensor.dtype], tensor.data_ptr(), place)


def adopt(result, like, device):
    """The output of an allgather or alltoall, without a copy: libhvd's memory is freed with the tensor."""
    shape = (result.rows, *like.shape[1:])
    count = 1
    for length in shape:
        count *= length
    if not result.data or count == 0:
        hvd.hvd_result_free(ctypes.byref(result))
        return torch.empty(shape, dtype=like.dtype, device=device)
    memory = (ctypes.c_uint8 * (count * like.element_size())).from_address(result.data)
    weakref.finalize(memory, hvd.hvd_result_free, ctypes.byref(result)).atexit = False
    return torch.frombuffer(memory, dtype=like.dtype).view(shape).to(device)


def splits_of(result):
    return [result.splits[i] for i in range(result.split_count)]
