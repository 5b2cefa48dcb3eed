# SPDX-License-Identifier: Apache-2.0
"""Submits tensors to libhvd. All functions return a handle for synchronize()."""
import ctypes
import functools
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


def prefixed(operation, name):
    """So an allreduce and an allgather may have the same name at the same time, as in Horovod."""
    return None if name is None else f"{operation}.{name}"


def _options(process_set, op=Sum, prescale_factor=1.0, postscale_factor=1.0):
    number = number_of(process_set)
    if op == Adasum and process_set is not global_process_set:
        raise NotImplementedError("Adasum supports only the global process set")
    return _options_of(number, op, float(prescale_factor), float(postscale_factor))


@functools.lru_cache(maxsize=256)
def _options_of(number, op, prescale_factor, postscale_factor):
    """libhvd only reads them."""
    return library.Options(number, op, prescale_factor, postscale_factor, None, None)


def _transfer(function, tensor, output, name, options, place, *more):
    """Submits an operation that reads one tensor and writes the other. `more`: arguments before the options."""
    source, target = memory.source_of(tensor, place), memory.target_of(output, place)
    struct = memory.as_hvd(handles.name(name, options.set), place, source, target)
    return handles.submit(
        function,
        (struct, *more, options),
        (source, target, output),
        lambda _: memory.deliver(target, output, place),
    )


def _place_for(tensor, options):
    """For a reduction."""
    return memory.place_of(tensor, True, options.prescale != 1.0 or options.postscale != 1.0)


def reduce_to(tensor, output, name, op, prescale_factor, postscale_factor, process_set):
    """Allreduce. `output` may be `tensor`."""
    name = prefixed("allreduce", name)
    memory.check(tensor, "allreduce")
    options = _options(process_set, op, prescale_factor, postscale_factor)
    return _transfer(hvd.hvd_allreduce_async, tensor, output, name, options, _place_for(tensor, options))


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
    name = handles.name(prefixed(operation, name), number_of(process_set))
    return [f"{name}_{i}of{len(tensors)}" for i in range(1, len(tensors) + 1)]


def grouped_reduce_to(tensors, outputs, name, op, prescale_factor, postscale_factor, process_set):
    options = _options(process_set, op, prescale_factor, postscale_factor)
    names = group_names(tensors, name, "grouped_allreduce", process_set)
    places = [_place_for(tensor, options) for tensor in tensors]
    sources = list(map(memory.source_of, tensors, places))
    targets = list(map(memory.target_of, outputs, places))
    structs = (library.Tensor * len(tensors))(*map(memory.as_hvd, names, places, sources, targets))
    return handles.submit(
        hvd.hvd_grouped_allreduce_async,
        (structs, len(tensors), options),
        (sources, targets, outputs),
        lambda _: tuple(map(memory.deliver, targets, outputs, places)),
    )


def gather(tensor, name, process_set, only_output=False):
    """Allgather. synchronize() returns the tensor and, unless `only_output`, the rows from each rank."""
    name = prefixed("allgather", name)
    memory.check(tensor, "allgather")
    options = _options(process_set)
    place = memory.place_of(tensor)
    source = memory.source_of(tensor, place)
    struct = memory.as_hvd(handles.name(name, options.set), place, source)

    def finish(result):
        rows = memory.splits_of(result)
        output = memory.adopt(result, source, place, tensor.device)
        return output if only_output else (output, rows)

    return handles.submit(hvd.hvd_allgather_async, (struct, options), (source,), finish, wants_result=True)


def broadcast_to(tensor, output, root_rank, name, process_set):
    name = prefixed("broadcast", name)
    memory.check(tensor, "broadcast")
    options = _options(process_set)
    place = memory.place_of(tensor)
    return _transfer(hvd.hvd_broadcast_async, tensor, output, name, options, place, root_rank)


def _check_splits(splits, size):
    """A list of integers for each member, or None; and a tensor on the device of the answer."""
    if splits is None:
        return None, torch.empty(0, dtype=torch.int32, device="cpu")
    if not isinstance(splits, torch.Tensor):
        splits = torch.tensor(splits, dtype=torch.int32, device="cpu")
    if splits.dtype != torch.int32:
        raise ValueError(f"alltoall: the splits are of {splits.dtype}; use torch.int32")
    if splits.dim() > 1:
        raise ValueError(f"alltoall: the splits have {splits.dim()} dimensions; use one")
    if splits.numel() != size:
        raise ValueError(f"alltoall: there are {splits.numel()} splits for {size} ranks; give one for each rank")
    return splits.reshape(-1).tolist(), splits


def exchange(tensor, splits, name, process_set):
    """Alltoall. synchronize() returns the tensor and the received splits."""
    name = prefixed("alltoall", name)
    memory.check(tensor, "alltoall")
    options = _options(process_set)
    size = process_set.size()
    counts, splits = _check_splits(splits, size)
    array = None if counts is None else (ctypes.c_int64 * size)(*counts)
    place = memory.place_of(tensor)
    source = memory.source_of(tensor, place)
    struct = memory.as_hvd(handles.name(name, options.set), place, source)

    def finish(result):
        received = splits.new_tensor(memory.splits_of(result))  # before adopt()
        return memory.adopt(result, source, place, tensor.device), received

    return handles.submit(hvd.hvd_alltoall_async, (struct, array, options), (source,), finish, wants_result=True)


def _own_part(tensor, process_set):
    """An empty tensor for this rank's rows."""
    if tensor.dim() == 0:
        raise ValueError("reducescatter: the tensor is a scalar; it needs a first dimension")
    size = process_set.size()
    rows, more = divmod(tensor.shape[0], size)
    rows += process_set.rank() < more
    return tensor.new_empty((rows, *tensor.shape[1:]))


def scatter(tensor, name, op, process_set, prescale_factor, postscale_factor):
    """Reducescatter."""
    name = prefixed("reducescatter", name)
    memory.check(tensor, "reducescatter")
    if op not in (Average, Sum):
        raise library.HorovodInternalError("reducescatter supports only op=hvd.Average and op=hvd.Sum")
    options = _options(process_set, op, prescale_factor, postscale_factor)
    output = _own_part(tensor, process_set)
    return _transfer(hvd.hvd_reducescatter_async, tensor, output, name, options, _place_for(tensor, options))


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
