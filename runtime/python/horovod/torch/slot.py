# SPDX-License-Identifier: Apache-2.0
"""A tensor that is reduced in place again and again, such as a gradient.

Its name, shape and options stay, so their structs are made once; only the memory may be another one each time. Between
the layers of a model nothing of this is in the caches of a processor, so the shorter way counts."""
import ctypes

from horovod.common import library
from horovod.common.library import hvd
from horovod.common.process_sets import number_of
from horovod.torch import memory, submit
from horovod.torch.handles import handles


class Slot:
    """For tensors like `tensor`, in the memory of the CPU."""

    def __init__(self, name, tensor, op, prescale_factor, postscale_factor, process_set):
        self._process_set = process_set
        self._dtype, self._shape = tensor.dtype, tensor.shape
        self._usable = tensor.device.type == "cpu" and tensor.dtype in memory.TYPES
        dims = tensor.dim()
        shape = (ctypes.c_int64 * dims)(*tensor.shape) if dims else None
        kind = memory.TYPES.get(tensor.dtype, -1)
        name = submit.prefixed("allreduce", name).encode()
        self._tensor = library.Tensor(name, shape, dims, kind, None, None, None, -1)
        self._options = library.Options(number_of(process_set), op, prescale_factor, postscale_factor, None, None)

    def fits(self, tensor):
        return (
            self._usable
            and tensor.dtype is self._dtype
            and not tensor.is_cuda  # device.type takes longer
            and tensor.shape == self._shape
            and tensor.is_contiguous()
            and not tensor.is_neg()
            and self._options.set == self._process_set.process_set_id
        )

    def submit(self, tensor):
        """A handle. synchronize() returns the tensor."""
        self._tensor.input = self._tensor.output = tensor.data_ptr()
        return handles.submit(hvd.hvd_allreduce_async, (self._tensor, self._options), tensor, lambda _: tensor)
