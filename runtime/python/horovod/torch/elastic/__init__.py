# SPDX-License-Identifier: Apache-2.0
"""Elastic training with PyTorch."""
from horovod.common.elastic import ObjectState as _ObjectState
from horovod.common.elastic import State, run_fn  # noqa: F401
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt  # noqa: F401
from horovod.torch.elastic.sampler import ElasticSampler  # noqa: F401
from horovod.torch.elastic.state import TorchState  # noqa: F401


def run(func):
    """Decorates a function of a State: it goes on from the last commit when ranks are lost or come."""
    return run_fn(func)


class ObjectState(_ObjectState):
    """Any values, as attributes, without a model or an optimizer."""

    def __init__(self, bcast_object=None, get_rank=None, **kwargs):
        from horovod.torch.functions import broadcast_object
        from horovod.torch.mpi_ops import rank

        super().__init__(bcast_object=bcast_object or broadcast_object, get_rank=get_rank or rank, **kwargs)
