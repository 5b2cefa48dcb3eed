# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: averages gradients over the ranks while the backward pass still runs.

A hook of each parameter submits its gradient as soon as the gradient is complete. step() waits for
all of them. Every rank reduces every parameter, also those that it did not use."""
import contextlib
import os
import warnings

import torch

from horovod.common.basics import basics
from horovod.common.process_sets import global_process_set
from horovod.common.util import split_list
from horovod.torch.compression import Compression
from horovod.torch.mpi_ops import (
    Adasum,
    Average,
    allreduce_async_,
    grouped_allreduce_async_,
    sparse_allreduce_async,
    synchronize,
)


def _named(named_parameters, param_groups):
    """[(name, parameter)] of all parameters of the optimizer."""
    if named_parameters is None:
        return [
            (f"allreduce.noname.{i}.{j}", parameter)
            for i, group in enumerate(param_groups)
            for j, parameter in enumerate(group["params"])
        ]
    named = list(named_parameters)
    if any(not isinstance(one, tuple) or len(one) != 2 for one in named):
        raise ValueError("named_parameters must be pairs of name and parameter, as of model.named_parameters()")
    names = [name for name, _ in named]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(f"named_parameters has names that are not unique: {', '.join(twice)}")
    known = {parameter for _, parameter in named}
    missing = sum(parameter not in known for group in param_groups for parameter in group["params"])
    if missing:
        raise ValueError(f"named_parameters lacks {missing} parameters of the optimizer; give all of them")
    return named


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


class _DistributedOptimizer(torch.optim.Optimizer):
    """DistributedOptimizer() makes a class of these methods for each class of optimizer."""

    _base = torch.optim.Optimizer

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
        self._base.__init__(self, params)
        _check_groups(groups)
        named = _named(named_parameters, self.param_groups)
        self._parameter_names = {parameter: name for name, parameter in named}
        self._compression = compression
        self._op, self._predivide = op, gradient_predivide_factor
        self._sparse_as_dense = sparse_as_dense
        self.process_set = process_set
        self.backward_passes_per_step = backward_passes_per_step
        self._passes_left = dict.fromkeys(self._parameter_names, backward_passes_per_step)
        self._handles = {}  # parameter: (handle, context of the compression)
        self._group_handles = {}  # number of the group: (handle, contexts)
        self._requires_update = set()
        self._hooks = []  # what keeps the hooks alive
        self._synchronized, self._should_synchronize = False, True
        self._groups, self._group_of, self._ready = [], {}, {}
        if process_set.included() and (basics.size() > 1 or os.environ.get("HOROVOD_ELASTIC") == "1"):
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

    def _register_hooks(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                if not parameter.requires_grad:
                    continue
                self._requires_update.add(parameter)
                if hasattr(parameter, "register_post_accumulate_grad_hook"):
                    self._hooks.append(parameter.register_post_accumulate_grad_hook(self._gradient_is_complete))
                else:  # before torch 2.1: a hook of the node that accumulates the gradient
                    node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
                    node.register_hook(lambda *_, parameter=parameter: self._gradient_is_complete(parameter))
                    self._hooks.append(node)

    # one step

    def _gradient_is_complete(self, parameter):
        """Autograd's threads call it."""
        if parameter in self._handles and self._passes_left[parameter] <= 0:
            raise AssertionError(
                "gradients were computed more than backward_passes_per_step times before optimizer.step(); "
                "increase backward_passes_per_step"
            )
        assert not parameter.grad.requires_grad, "DistributedOptimizer does not support gradients of gradients"
        self._passes_left[parameter] -= 1
        if self._passes_left[parameter] == 0:
            self._send(parameter)

    def _send(self, parameter):
        """Submits the gradient, or the group when all of its members are complete."""
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        number = self._group_of.get(parameter)
        if number is None:
            self._handles[parameter] = self._submit(parameter)
            return
        self._handles[parameter] = (None, None)  # the group has it
        self._ready[number].add(parameter)
        if len(self._ready[number]) == len(self._groups[number]):
            self._submit_group(number)

    def _scales(self):
        """With a predivide factor f: divided by f before the sum, and by size / f after it."""
        return {"prescale_factor": 1.0 / self._predivide, "postscale_factor": self._predivide}

    def _submit(self, parameter):
        name = self._parameter_names[parameter]
        gradient = parameter.grad
        if gradient.is_sparse and not self._sparse_as_dense:
            return sparse_allreduce_async(gradient, name, self._op, self.process_set), None
        if gradient.is_sparse:
            gradient = gradient.to_dense()
        small, context = self._compression.compress(gradient)
        handle = allreduce_async_(small, name=name, op=self._op, process_set=self.process_set, **self._scales())
        return handle, (small, context)

    def _submit_group(self, number):
        members = self._groups[number]
        gradients = [p.grad.to_dense() if p.grad.is_sparse else p.grad for p in members]
        small, contexts = zip(*map(self._compression.compress, gradients))
        handle = grouped_allreduce_async_(
            list(small),
            name=self._parameter_names[members[0]],
            op=self._op,
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
        for parameter in self._in_order(self._requires_update):
            if parameter not in self._handles:
                self._send(parameter)
        for parameter in self._in_order(self._handles):
            self._receive(parameter, *self._handles[parameter])
        for number, (handle, contexts) in self._group_handles.items():
            for parameter, output, context in zip(self._groups[number], synchronize(handle), contexts):
                self._store(parameter, self._compression.decompress(output, context))
        self._forget()
        self._synchronized = True

    def _in_order(self, parameters):
        """In the order of the optimizer, which is the same on all ranks."""
        return [p for group in self.param_groups for p in group["params"] if p in parameters]

    def _receive(self, parameter, handle, context):
        if handle is None:
            return
        if callable(handle):
            parameter.grad = handle()
            return
        _, compressed = context
        self._store(parameter, self._compression.decompress(synchronize(handle), compressed))

    @staticmethod
    def _store(parameter, gradient):
        if parameter.grad.is_sparse:
            gradient = gradient.to_sparse()
        if gradient is not parameter.grad:
            parameter.grad = gradient

    def _forget(self):
        self._handles.clear()
        self._group_handles.clear()
        self._passes_left = dict.fromkeys(self._passes_left, self.backward_passes_per_step)
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
            self.synchronize()
        self._synchronized = False
        return self._base.step(self, closure)

    def local_step(self, closure=None):
        """A step of this rank alone."""
        return self._base.step(self, closure)

    def zero_grad(self, *args, **kwargs):
        if self._handles:
            raise AssertionError(
                "optimizer.zero_grad() was called after loss.backward() but before optimizer.step() or "
                "optimizer.synchronize(); gradients are in use"
            )
        return self._base.zero_grad(self, *args, **kwargs)

    def set_backward_passes_per_step(self, passes):
        self.backward_passes_per_step = passes
        self._passes_left = dict.fromkeys(self._passes_left, passes)

    def load_state_dict(self, *args, **kwargs):
        self._forget()
        self._synchronized = False
        return self._base.load_state_dict(self, *args, **kwargs)


def _check(op, backward_passes_per_step, gradient_predivide_factor, process_set):
    if backward_passes_per_step <= 0:
        raise ValueError(f"backward_passes_per_step is {backward_passes_per_step}; it must be above 0")
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor needs op=hvd.Average")
    if op == Adasum and process_set is not global_process_set:
        raise NotImplementedError("Adasum supports only the global process set")
    if op == Adasum and basics.size() > 1:
        raise NotImplementedError("DistributedOptimizer does not support op=hvd.Adasum yet; use op=hvd.Average")


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
    of all ranks. The state is not copied: wrap an optimizer before its first step."""
    _check(op, backward_passes_per_step, gradient_predivide_factor, process_set)
    if num_groups != 0:
        warnings.warn("num_groups is deprecated; use groups", DeprecationWarning, stacklevel=2)
        groups = num_groups if groups is None else groups
    body = {
        name: value for name, value in vars(_DistributedOptimizer).items() if name not in ("__dict__", "__weakref__")
    }
    body["_base"] = type(optimizer)
    made = type(type(optimizer).__name__, (type(optimizer),), body)
    return made(
        optimizer.param_groups,
        named_parameters,
        compression,
        backward_passes_per_step,
        op,
        gradient_predivide_factor,
        groups,
        sparse_as_dense,
        process_set,
    )
