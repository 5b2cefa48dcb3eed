# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer with op=Adasum: each rank steps with its own gradients, and the changes of the parameters are
combined by Adasum, and not the gradients.

When the gradient of a parameter is complete, its hook lets the optimizer step with this parameter alone. The parameter
then goes back to where it was, and the change is submitted while the backward pass still runs. step() waits for the
combined changes, and adds them."""
import threading

import torch

from horovod.torch.compression import Compression
from horovod.torch.mpi_ops import Adasum, allreduce_async_, synchronize
from horovod.torch.wrapper import Wrapper


class _DistributedAdasumOptimizer(Wrapper):
    """Combines changes of parameters. _handles has (handle, context of the compression)."""

    def __init__(self, params, named_parameters=None, compression=Compression.none, backward_passes_per_step=1):
        self._prepare(params, named_parameters, compression, backward_passes_per_step)
        self._turn = threading.Lock()  # autograd has a thread for each device
        self._group_of = {p: i for i, group in enumerate(self.param_groups) for p in group["params"]}
        self._register_hooks()

    def _send(self, parameter):
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        before = parameter.detach().clone(memory_format=torch.contiguous_format)
        with self._turn:
            self._step_alone(parameter)
        with torch.no_grad():
            change = parameter - before
            parameter.copy_(before)
        small, context = self._compression.compress(change)
        handle = allreduce_async_(small, name=self._parameter_names[parameter], op=Adasum)
        self._handles[parameter] = (handle, context)

    def _step_alone(self, parameter):
        """As if the optimizer had no other parameter. It may look at the options of all groups."""
        groups = self.param_groups
        members = [group["params"] for group in groups]
        own = self._group_of[parameter]
        try:
            for i, group in enumerate(groups):
                group["params"] = [parameter] if i == own else []
            self._base.step(self)
        finally:
            for group, all_members in zip(groups, members):
                group["params"] = all_members

    # what scripts call

    def synchronize(self):
        """Does nothing: there are no combined gradients to wait for."""

    def skip_synchronize(self):
        raise AssertionError("skip_synchronize() is not supported with op=hvd.Adasum; call optimizer.step() alone")

    def step(self, closure=None):
        loss = None if closure is None else closure()
        self._send_missing()
        for parameter in self._in_order(self._handles):
            handle, context = self._handles[parameter]
            change = self._compression.decompress(synchronize(handle), context)
            with torch.no_grad():
                parameter.add_(change)
        self._forget()
        return loss
