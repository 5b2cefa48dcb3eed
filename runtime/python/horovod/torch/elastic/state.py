# SPDX-License-Identifier: Apache-2.0
"""The state of a training with PyTorch: model, optimizer, samplers, and other values."""
import copy

import torch

from horovod.common.elastic import ObjectState
from horovod.torch import stream
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from horovod.torch.mpi_ops import rank


class StateHandler:
    """Saves, restores and shares one value."""

    def __init__(self, value):
        self.value = value

    def save(self):
        raise NotImplementedError("a StateHandler needs a method save()")

    def restore(self):
        raise NotImplementedError("a StateHandler needs a method restore()")

    def sync(self):
        raise NotImplementedError("a StateHandler needs a method sync()")

    def set_value(self, value):
        self.value = value
        self.save()


class _StateDictHandler(StateHandler):
    """For a value that has a state_dict()."""

    def __init__(self, value):
        super().__init__(value)
        self.save()

    def save(self):
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self):
        self.value.load_state_dict(self._saved)


class ModelStateHandler(_StateDictHandler):
    def sync(self):
        broadcast_parameters(self.value.state_dict(), root_rank=0)


class OptimizerStateHandler(_StateDictHandler):
    def sync(self):
        broadcast_optimizer_state(self.value, root_rank=0)


class SamplerStateHandler(_StateDictHandler):
    def sync(self):
        self.value.load_state_dict(broadcast_object(self.value.state_dict()))


class LRSchedulerStateHandler(SamplerStateHandler):
    """The whole object would bring an optimizer of its own."""


_registry = [
    (torch.nn.Module, ModelStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (getattr(torch.optim.lr_scheduler, "LRScheduler", torch.optim.lr_scheduler._LRScheduler), LRSchedulerStateHandler),
    (ElasticSampler, SamplerStateHandler),
]


def get_handler_registry():
    return _registry


def set_handler_registry(registry):
    """`registry`: a list of (type, handler class); the first type that fits is used."""
    global _registry
    _registry = registry


def _make_handler(value):
    for kind, handler in _registry:
        if isinstance(value, kind):
            return handler(value)
    return None


class TorchState(ObjectState):
    """Models, optimizers and samplers are shared by their state_dict(); other values as objects."""

    def __init__(self, model=None, optimizer=None, **kwargs):
        values = {"model": model, "optimizer": optimizer, **kwargs}
        found = {name: _make_handler(value) for name, value in values.items()}
        self._handlers = {name: handler for name, handler in found.items() if handler is not None}
        for name in self._handlers:
            object.__setattr__(self, name, values.pop(name))
        super().__init__(bcast_object=broadcast_object, get_rank=rank, **values)

    def commit(self):
        stream.settle()
        super().commit()

    def save(self):
        for handler in self._handlers.values():
            handler.save()
        super().save()

    def restore(self):
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def sync(self):
        for handler in self._handlers.values():
            handler.sync()
        super().sync()

    def reset(self):
        for handler in self._handlers.values():
            if isinstance(handler.value, ElasticSampler):
                handler.value.reset()

    def __setattr__(self, name, value):
        if name in self.__dict__.get("_handlers", {}):
            self._handlers[name].set_value(value)
        super().__setattr__(name, value)
