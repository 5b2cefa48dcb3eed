# SPDX-License-Identifier: Apache-2.0
"""Submits tensors to libhvd. All functions return a handle for synchronize()."""
import ctypes
import warnings

import torch

from horovod.common import library
from horovod.common.basics import basics
from horovod.common.library import hvd
from horovod.common.process_sets import global_process_set, number_of
from horovod.torch import memory
from horovod.torch.handles import handles

Average, Sum, Adasum, Min, Max, Product = (
    basics.Average,
    basics.Sum,
    basics.Adasum,
    basics.Min,
    basics.Max,
    basics.Product,
)


def reduction(average, op):
    """`average` is the older form of `op`."""
    if average is not None and op is not None:
        raise ValueError("average and op are both given; use op")
    if average is not None:
        warnings.warn("average is deprecated; use op=hvd.Average or op=hvd.Sum", DeprecationWarning, stacklevel=3)
        return Average if average else Sum
    return Average if op is None else op


def _options(process_set, op=Sum, prescale_factor=1.0, postscale_factor=1.0):
    number = number_of(process_set)
    if op == Adasum and process_set is not global_process_set:
        raise NotImplementedError("Adasum supports only the global process set")
    return library.Options(number, op, prescale_factor, postscale_factor, None, None)


def _target(tensor, output):
    """Where libhvd writes: the output itself, or memory on the host that finish() copies to it."""
    return output if memory.is_direct(output) else torch.empty(output.shape, dtype=tensor.dtype)


def _deliver(target, output):
    if target is not output:
        with torch.no_grad():
            output.copy_(target)
    return output


def reduce_to(tensor, output, name, op, prescale_factor, postscale_factor, process_set):
    """Allreduce. `output` may be `tensor`."""
    memory.check(tensor, "allreduce")
    options = _options(process_set, op, prescale_factor, postscale_factor)
    source, target = memory.on_host(tensor), _target(tensor, output)
    struct = memory.as_hvd(handles.name(name, options.set), source, target)
    return handles.submit(
        hvd.hvd_allreduce_async,
        (struct, options),
        (source, target, output),
        lambda _: _deliver(target, output),
    )


def group_names(tensors, name, operation, process_set):
    """Checks a group, and names its members."""
    if not isinstance(tensors, (list, tuple)) or not tensors:
        raise ValueError(f"{operation}: a list of at least one tensor is needed")
    for tensor in tensors:
        memory.check(tensor, operation)
        if tensor.is_cuda != tensors[0].is_cuda:
            raise library.HorovodInternalError(
                f"{operation}: a group has tensors on the CPU and on a GPU; use one device"
            )
    name = handles.name(name, number_of(process_set))
    return [f"{name}_{i}of{len(tensors)}" for i in range(1, len(tensors) + 1)]


def grouped_reduce_to(tensors, outputs, name, op, prescale_factor, postscale_factor, process_set):
    options = _options(process_set, op, prescale_factor, postscale_factor)
    names = group_names(tensors, name, "grouped_allreduce", process_set)
    sources = [memory.on_host(tensor) for tensor in tensors]
    targets = [_target(tensor, output) for tensor, output in zip(tensors, outputs)]
    structs = (library.Tensor * len(tensors))(*map(memory.as_hvd, names, sources, targets))
    return handles.submit(
        hvd.hvd_grouped_allreduce_async,
        (structs, len(tensors), options),
        (sources, targets, outputs),
        lambda _: tuple(map(_deliver, targets, outputs)),
    )


def gather(tensor, name, process_set, only_output=False):
    """Allgather. synchronize() returns the tensor and, unless `only_output`, the rows from each rank."""
    memory.check(tensor, "allgather")
    options = _options(process_set)
    source = memory.on_host(tensor)
    struct = memory.as_hvd(handles.name(name, options.set), source)

    def finish(result):
        rows = memory.splits_of(result)
        output = memory.adopt(result, source, tensor.device)
        return output if only_output else (output, rows)

    return handles.submit(hvd.hvd_allgather_async, (struct, options), (source,), finish, wants_result=True)


def broadcast_to(tensor, output, root_rank, name, process_set):
    memory.check(tensor, "broadcast")
    options = _options(process_set)
    source, target = memory.on_host(tensor), _target(tensor, output)
    struct = memory.as_hvd(handles.name(name, options.set), source, target)
    return handles.submit(
        hvd.hvd_broadcast_async,
        (struct, root_rank, options),
        (source, target, output),
        lambda _: _deliver(target, output),
    )


def _check_splits(splits, size):
    """A list of integers for each member, or None; and the device of the answer."""
    if splits is None:
        return None, torch.device("cpu")
    if not isinstance(splits, torch.Tensor):
        splits = torch.tensor(splits, dtype=torch.int32, device="cpu")
    if splits.dtype != torch.int32:
        raise ValueError(f"alltoall: the splits are of {splits.dtype}; use torch.int32")
    if splits.dim() > 1:
        raise ValueError(f"alltoall: the splits have {splits.dim()} dimensions; use one")
    if splits.numel() != size:
        raise ValueError(f"alltoall: there are {splits.numel()} splits for {size} ranks; give one for each rank")
    return splits.reshape(-1).tolist(), splits.device


def exchange(tensor, splits, name, process_set):
    """Alltoall. synchronize() returns the tensor and the received splits."""
    memory.check(tensor, "alltoall")
    options = _options(process_set)
    size = process_set.size() or basics.size()
    counts, device = _check_splits(splits, size)
    array = None if counts is None else (ctypes.c_int64 * size)(*counts)
    source = memory.on_host(tensor)
    struct = memory.as_hvd(handles.name(name, options.set), source)

    def finish(result):
        received = torch.tensor(memory.splits_of(result), dtype=torch.int32, device=device)  # before adopt()
        return memory.adopt(result, source, tensor.device), received

    return handles.submit(hvd.hvd_alltoall_async, (struct, array, options), (source,), finish, wants_result=True)


def _own_part(tensor, process_set):
    """An empty tensor for this rank's rows."""
    if tensor.dim() == 0:
        raise ValueError("reducescatter: the tensor is a scalar; it needs a first dimension")
    size = process_set.size() or basics.size()
    rows, more = divmod(tensor.shape[0], size)
    rows += process_set.rank() < more
    return torch.empty((rows, *tensor.shape[1:]), dtype=tensor.dtype, device=tensor.device)


def scatter(tensor, name, op, process_set, prescale_factor, postscale_factor):
    """Reducescatter."""
    memory.check(tensor, "reducescatter")
    if op not in (Average, Sum):
        raise library.HorovodInternalError("reducescatter supports only op=hvd.Average and op=hvd.Sum")
    options = _options(process_set, op, prescale_factor, postscale_factor)
    output = _own_part(tensor, process_set)
    source, target = memory.on_host(tensor), _target(tensor, output)
    struct = memory.as_hvd(handles.name(name, options.set), source, target)
    return handles.submit(
        hvd.hvd_reducescatter_async,
        (struct, options),
        (source, target, output),
        lambda _: _deliver(target, output),
    )


def barrier(process_set):
    return handles.submit(hvd.hvd_barrier_async, (_options(process_set),), None, lambda _: None)


def join():
    return handles.submit(
        hvd.hvd_join_async,
        (_options(global_process_set),),
        None,
        lambda result: result.last_joined,
        wants_result=True,
    )
