# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: averages gradients over the ranks while the backward pass still runs.

A hook of each parameter submits its gradient when the gradient is complete, small ones together. step() waits for
all of them. Every rank reduces every parameter, also those that it did not use."""
import contextlib
import os
import threading
import warnings

import torch

from horovod.common.basics import basics
from horovod.common.process_sets import global_process_set
from horovod.common.util import split_list
from horovod.torch import stream
from horovod.torch.compression import Compression
from horovod.torch.delta_optimizer import _DistributedAdasumOptimizer
from horovod.torch.mpi_ops import (
    Adasum,
    Average,
    allreduce_async_,
    grouped_allreduce_async_,
    sparse_allreduce_async,
    synchronize,
)
from horovod.torch.slot import Batch, Slot
from horovod.torch.wrapper import Wrapper, wrap

BATCH_BYTES = 1 << 20  # of gradients on the CPU that are submitted together
GPU_BATCH_BYTES = 25 << 20  # the same on a GPU, where fewer and larger operations are faster, as for DDP


def _may_have_peers():
    """Now, or later in an elastic job."""
    return basics.size() > 1 or os.environ.get("HOROVOD_ELASTIC") == "1"


def _check_groups(groups):
    if groups is None or (isinstance(groups, int) and groups > 0):
        return
    if not isinstance(groups, list):
        raise ValueError("groups must be a number above 0, or a list of lists of parameters")
    members = [parameter for group in groups for parameter in group]
    if not all(torch.is_tensor(parameter) for parameter in members):
        raise ValueError("groups must have only parameters")
    if len({id(parameter) for parameter in members}) < len(members):
        raise ValueError("groups must have each parameter once")


class _DistributedOptimizer(Wrapper):
    """Combines gradients."""

    def __init__(
        self,
        params,
        named_parameters=None,
        compression=Compression.none,
        backward_passes_per_step=1,
        op=Average,
        gradient_predivide_factor=1.0,
        groups=None,
        sparse_as_dense=False,
        process_set=global_process_set,
    ):
        self._prepare(params, named_parameters, compression, backward_passes_per_step)
        _check_groups(groups)
        self.op, self.gradient_predivide_factor = op, gradient_predivide_factor
        self.sparse_as_dense = sparse_as_dense
        self.process_set = process_set
        self._turn = threading.Lock()  # autograd has a thread for each device
        self._waiting, self._waiting_bytes = [], 0  # parameters whose gradients are not yet submitted
        self._slots = {}  # parameter: what its gradient needs to be submitted
        self._batch, self._batches = None, []  # gradients on a GPU; (handle, their members)
        # _handles has (handle, context of the compression), or (None, None) if a group or a batch has the parameter
        self._group_handles = {}  # number of the group: (handle, contexts)
        self._synchronized, self._should_synchronize = False, True
        self._groups, self._group_of, self._ready = [], {}, {}
        if process_set.included() and _may_have_peers():
            self._make_groups(groups)
            self._register_hooks()

    # preparation

    def _make_groups(self, groups):
        """All ranks have their parameters in the same order. It is not asked for: a new rank of an elastic
        job would wait here for survivors that have long passed this place."""
        if groups is None:
            return
        parameters = [p for group in self.param_groups for p in group["params"] if p.requires_grad]
        if isinstance(groups, int):
            groups = split_list(parameters, min(groups, max(len(parameters), 1)))
        own = set(parameters)
        self._groups = [[p for p in group if p in own] for group in groups]
        self._group_of = {p: i for i, group in enumerate(self._groups) for p in group}
        self._ready = {i: set() for i in range(len(self._groups))}

    # one step

    def _send(self, parameter):
        """Submits the gradient, or the group when all of its members are complete."""
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        number = self._group_of.get(parameter)
        if number is None and parameter.is_cuda:
            self._send_on_gpu(parameter)
            return
        if number is None:
            self._collect(parameter)
            return
        self._handles[parameter] = (None, None)  # the group has it
        self._ready[number].add(parameter)
        if len(self._ready[number]) == len(self._groups[number]):
            self._submit_group(number)

    def _collect(self, parameter):
        """Small gradients on the CPU are submitted together: each submission may wake libhvd's thread, and the ranks
        of a host often need all of its processors for the backward pass."""
        with self._turn:
            self._waiting.append(parameter)
            self._waiting_bytes += parameter.numel() * parameter.element_size()
            more = len(self._handles) + len(self._waiting) < len(self._requires_update)
            if more and self._waiting_bytes < BATCH_BYTES:
                return
        self._submit_waiting()

    def _submit_waiting(self):
        with self._turn:
            waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
            batch, self._batch = self._batch, None
        for parameter in waiting:
            self._handles[parameter] = self._submit(parameter)
        self._submit_batch(batch)

    def _send_on_gpu(self, parameter):
        """The stream of this thread computes the gradient. Its event, the call and the kernel are for a whole batch."""
        gradient = parameter.grad
        if gradient.is_sparse:
            self._handles[parameter] = self._submit(parameter)
            return
        small, context = self._compression.compress(gradient)
        slot = self._slot(parameter, self._parameter_names[parameter], small)
        if slot is None:
            self._handles[parameter] = self._submit_dense(parameter, small, context)
            return
        place, others = stream.Place(stream.cuda.device_of(small)), None
        with self._turn:
            self._handles[parameter] = (None, None)
            if self._batch is not None and self._batch[0].stream != place.stream:
                others, self._batch = self._batch, None
            if self._batch is None:
                self._batch = Batch(place), []
            batch, members = full = self._batch
            batch.add(slot, small)
            members.append((parameter, small, context))
            more = len(self._handles) + len(self._waiting) < len(self._requires_update)
            if more and batch.bytes < GPU_BATCH_BYTES:
                full = None
            else:
                self._batch = None
        self._submit_batch(others)
        self._submit_batch(full)

    def _submit_batch(self, batch):
        if batch is not None:
            self._batches.append((batch[0].submit(), batch[1]))

    def _scales(self):
        """With a predivide factor f: divided by f before the sum, and by size / f after it."""
        factor = self.gradient_predivide_factor
        return {"prescale_factor": 1.0 / factor, "postscale_factor": factor}

    def _submit(self, parameter):
        name = self._parameter_names[parameter]
        gradient = parameter.grad
        if gradient.is_sparse and not self.sparse_as_dense:
            return sparse_allreduce_async(gradient, name, self.op, self.process_set), None
        if gradient.is_sparse:
            gradient = gradient.to_dense()
        small, context = self._compression.compress(gradient)
        slot = None if small.is_cuda else self._slot(parameter, name, small)
        if slot is not None:
            return slot.submit(small), (small, context)
        return self._submit_dense(parameter, small, context)

    def _submit_dense(self, parameter, small, context):
        name = self._parameter_names[parameter]
        handle = allreduce_async_(small, name=name, op=self.op, process_set=self.process_set, **self._scales())
        return handle, (small, context)

    def _slot(self, parameter, name, tensor):
        """None: the tensor must go the longer way."""
        slot = self._slots.get(parameter)
        if slot is None or not slot.fits(tensor):
            slot = self._slots[parameter] = Slot(name, tensor, self.op, *self._scales().values(), self.process_set)
        return slot if slot.fits(tensor) else None

    def _submit_group(self, number):
        members = self._groups[number]
        gradients = [p.grad.to_dense() if p.grad.is_sparse else p.grad for p in members]
        small, contexts = zip(*map(self._compression.compress, gradients))
        handle = grouped_allreduce_async_(
            list(small),
            name=self._parameter_names[members[0]],
            op=self.op,
            process_set=self.process_set,
            **self._scales(),
        )
        self._group_handles[number] = (handle, contexts)
        self._ready[number] = set()

    def synchronize(self):
        """Waits until the gradients of all ranks are combined, in the `grad` of the parameters."""
        if not self.process_set.included():
            self._synchronized = True
            return
        self._submit_waiting()
        self._send_missing()
        self._submit_waiting()
        for parameter in self._in_order(self._handles):
            self._receive(parameter, *self._handles[parameter])
        for handle, members in self._batches:
            synchronize(handle)
            for parameter, small, context in members:
                self._store(parameter, self._compression.decompress(small, context))
        for number, (handle, contexts) in self._group_handles.items():
            for parameter, output, context in zip(self._groups[number], synchronize(handle), contexts):
                self._store(parameter, self._compression.decompress(output, context))
        self._forget()
        self._synchronized = True

    def _receive(self, parameter, handle, context):
        if handle is None:
            return
        if callable(handle):
            self._store(parameter, handle())
            return
        _, compressed = context
        self._store(parameter, self._compression.decompress(synchronize(handle), compressed))

    @staticmethod
    def _store(parameter, combined):
        """Into the tensor that the gradient is: a script may have views of it."""
        gradient = parameter.grad
        if combined is gradient:
            return
        with torch.no_grad():
            if gradient.is_sparse:
                gradient.zero_().add_(combined if combined.is_sparse else combined.to_sparse())
            else:
                gradient.copy_(combined)

    def _forget(self):
        Wrapper._forget(self)
        self._waiting, self._waiting_bytes = [], 0
        self._batch, self._batches = None, []
        self._group_handles.clear()
        self._ready = {number: set() for number in self._ready}

    # what scripts call

    @contextlib.contextmanager
    def skip_synchronize(self):
        """In this context step() does not wait: synchronize() was called before."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure=None):
        if self._should_synchronize:
            if self._synchronized:
                warnings.warn(
                    "optimizer.step() called without optimizer.skip_synchronize() after optimizer.synchronize(); "
                    "the gradients are combined twice. Use `with optimizer.skip_synchronize(): optimizer.step()`"
                )
            if closure is None:
                self.synchronize()
            else:
                closure = self._combining(closure)
        self._synchronized = False
        return self._base.step(self, closure)

    def _combining(self, closure):
        """A closure whose gradients are combined. The optimizer may call it several times. It may call synchronize()
        itself, for example to clip the gradients."""

        def combine():
            self._synchronized = False
            loss = closure()
            if not self._synchronized:
                self.synchronize()
            self._synchronized = False
            return loss

        return combine

    def load_state_dict(self, *args, **kwargs):
        self._synchronized, self._should_synchronize = False, True
        return Wrapper.load_state_dict(self, *args, **kwargs)


def _check(op, backward_passes_per_step, gradient_predivide_factor, process_set):
    if backward_passes_per_step <= 0:
        raise ValueError(f"backward_passes_per_step is {backward_passes_per_step}; it must be above 0")
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor needs op=hvd.Average")
    if op == Adasum and process_set is not global_process_set:
        raise NotImplementedError("Adasum supports only the global process set")


def DistributedOptimizer(
    optimizer,
    named_parameters=None,
    compression=Compression.none,
    backward_passes_per_step=1,
    op=Average,
    gradient_predivide_factor=1.0,
    num_groups=0,
    groups=None,
    sparse_as_dense=False,
    process_set=global_process_set,
):
    """An optimizer of the same class, with the same groups, whose step() first combines the gradients
    of all ranks. The state is not copied: wrap an optimizer before its first step.

    With op=Adasum, each rank steps alone, and what the parameters change by is combined: see delta_optimizer.py.
    `groups`, `sparse_as_dense` and skip_synchronize() are not for it."""
    _check(op, backward_passes_per_step, gradient_predivide_factor, process_set)
    if num_groups != 0:
        warnings.warn("num_groups is deprecated; use groups", DeprecationWarning, stacklevel=2)
        groups = num_groups if groups is None else groups
    if op == Adasum and _may_have_peers():
        return wrap(_DistributedAdasumOptimizer, optimizer, named_parameters, compression, backward_passes_per_step)
    return wrap(
        _DistributedOptimizer,
        optimizer,
        named_parameters,
        compression,
        backward_passes_per_step,
        op,
        gradient_predivide_factor,
        groups,
        sparse_as_dense,
        process_set,
    )
