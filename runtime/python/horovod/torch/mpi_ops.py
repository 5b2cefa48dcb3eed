# SPDX-License-Identifier: Apache-2.0
"""The collective operations of horovod.torch. Each has an `_async` form, which returns a handle, and a
form that waits. A name that ends with `_` works in place."""
import torch

from horovod.common.basics import basics as _basics
from horovod.common.exceptions import HorovodInternalError  # noqa: F401 (scripts import it from here)
from horovod.common.process_sets import (  # noqa: F401 (scripts import the others from here)
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)
from horovod.torch import autograd, memory, stream, submit
from horovod.torch.compression import Compression
from horovod.torch.handles import handles
from horovod.torch.submit import Adasum, Average, Max, Min, Product, Sum  # noqa: F401

init, shutdown, is_initialized = _basics.init, _basics.shutdown, _basics.is_initialized
rank, size, local_rank, local_size = _basics.rank, _basics.size, _basics.local_rank, _basics.local_size
cross_rank, cross_size, is_homogeneous = _basics.cross_rank, _basics.cross_size, _basics.is_homogeneous
mpi_threads_supported, mpi_enabled, gloo_enabled = (
    _basics.mpi_threads_supported,
    _basics.mpi_enabled,
    _basics.gloo_enabled,
)
mpi_built, gloo_built, nccl_built, cuda_built = (
    _basics.mpi_built,
    _basics.gloo_built,
    _basics.nccl_built,
    _basics.cuda_built,
)
ddl_built, ccl_built, rocm_built = _basics.ddl_built, _basics.ccl_built, _basics.rocm_built
start_timeline, stop_timeline = _basics.start_timeline, _basics.stop_timeline

poll, synchronize = handles.poll, handles.synchronize


def _check_has_gpu():
    return torch.cuda.is_available()


# allreduce


def allreduce_async(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    op = submit.reduction(average, op)
    output = memory.output_like(tensor, "allreduce")
    return submit.reduce_to(tensor, output, name, op, prescale_factor, postscale_factor, process_set)


def allreduce_async_(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    op = submit.reduction(average, op)
    return submit.reduce_to(tensor, tensor, name, op, prescale_factor, postscale_factor, process_set)


def allreduce(
    tensor,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    op = submit.reduction(average, op)
    small, context = compression.compress(tensor)
    reduced = autograd.Allreduce.apply(small, name, op, prescale_factor, postscale_factor, process_set)
    return compression.decompress(reduced, context)


def allreduce_(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    op = submit.reduction(average, op)
    return synchronize(allreduce_async_(tensor, None, name, op, prescale_factor, postscale_factor, process_set))


def grouped_allreduce_async(
    tensors,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    op = submit.reduction(average, op)
    outputs = [memory.output_like(tensor, "grouped_allreduce") for tensor in tensors]
    return submit.grouped_reduce_to(tensors, outputs, name, op, prescale_factor, postscale_factor, process_set)


def grouped_allreduce_async_(
    tensors,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    op = submit.reduction(average, op)
    return submit.grouped_reduce_to(tensors, tensors, name, op, prescale_factor, postscale_factor, process_set)


def grouped_allreduce(
    tensors,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    op = submit.reduction(average, op)
    small, contexts = zip(*map(compression.compress, tensors))
    reduced = autograd.GroupedAllreduce.apply(name, op, prescale_factor, postscale_factor, process_set, *small)
    return [compression.decompress(tensor, context) for tensor, context in zip(reduced, contexts)]


def grouped_allreduce_(
    tensors,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    op = submit.reduction(average, op)
    return synchronize(
        grouped_allreduce_async_(tensors, None, name, op, prescale_factor, postscale_factor, process_set)
    )


def sparse_allreduce_async(tensor, name, op, process_set=global_process_set):
    """Returns a function that waits, and returns a sparse tensor. Any `op` but Average means Sum."""
    if not tensor.is_sparse:
        raise ValueError("sparse_allreduce_async: the tensor is dense; use hvd.allreduce_async()")
    names = (None, None) if name is None else (f"{name}.indices", f"{name}.values")
    indices = submit.gather(tensor._indices().transpose(0, 1).contiguous(), names[0], process_set)
    values = submit.gather(tensor._values(), names[1], process_set)

    def wait():
        all_values, all_indices = synchronize(values)[0], synchronize(indices)[0]
        if op == Average:
            all_values = all_values / process_set.size()
        return torch.sparse_coo_tensor(all_indices.transpose(0, 1), all_values, tensor.size())

    return wait


# allgather


def allgather_async(tensor, name=None, process_set=global_process_set):
    return submit.gather(tensor, name, process_set, only_output=True)


def allgather(tensor, name=None, process_set=global_process_set):
    return autograd.Allgather.apply(tensor, name, process_set)


def grouped_allgather_async(tensors, name=None, process_set=global_process_set):
    names = submit.group_names(tensors, name, "grouped_allgather", process_set)
    return handles.group([allgather_async(*one, process_set) for one in zip(tensors, names)])


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    return autograd.GroupedAllgather.apply(name, process_set, *tensors)


# broadcast


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set):
    output = memory.output_like(tensor, "broadcast")
    return submit.broadcast_to(tensor, output, root_rank, name, process_set)


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    return submit.broadcast_to(tensor, tensor, root_rank, name, process_set)


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    """`root_rank` is the number of the rank in the job, also in a process set."""
    return autograd.Broadcast.apply(tensor, root_rank, name, process_set)


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


# alltoall


def alltoall_async(tensor, splits=None, name=None, process_set=global_process_set):
    """synchronize() returns the output and the received splits."""
    return submit.exchange(tensor, splits, name, process_set)


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    """Returns the output; with splits, the output and the received splits."""
    output, received = autograd.Alltoall.apply(tensor, splits, name, process_set)
    return output if splits is None else (output, received)


# reducescatter


def reducescatter_async(
    tensor,
    name=None,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    return submit.scatter(tensor, name, op, process_set, prescale_factor, postscale_factor)


def reducescatter(
    tensor,
    name=None,
    compression=Compression.none,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    small, context = compression.compress(tensor)
    reduced = autograd.Reducescatter.apply(small, name, op, process_set, prescale_factor, postscale_factor)
    return compression.decompress(reduced, context)


def grouped_reducescatter_async(
    tensors,
    name=None,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    names = submit.group_names(tensors, name, "grouped_reducescatter", process_set)
    more = (op, process_set, prescale_factor, postscale_factor)
    return handles.group([submit.scatter(*one, *more) for one in zip(tensors, names)])


def grouped_reducescatter(
    tensors,
    name=None,
    compression=Compression.none,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    small, contexts = zip(*map(compression.compress, tensors))
    more = (name, op, process_set, prescale_factor, postscale_factor)
    reduced = autograd.GroupedReducescatter.apply(*more, *small)
    return [compression.decompress(tensor, context) for tensor, context in zip(reduced, contexts)]


# the rest


def join(device=-1):
    """Waits until all ranks have joined, and takes part in their allreduces with zeros. Returns the rank
    that joined last. `device`: the GPU for the zeros, if this rank has not used one before."""
    stream.use_for_zeros(device)
    return synchronize(submit.join())


def barrier(process_set=global_process_set):
    synchronize(submit.barrier(process_set))
