# SPDX-License-Identifier: Apache-2.0
"""Tensors that are reduced in place again and again, such as gradients.

Their names, shapes and options stay, so their structs are made once; only the memory may be another one each time.
Between the layers of a model nothing of this is in the caches of a processor, so the shorter way counts."""
import ctypes

from horovod.common import library
from horovod.common.library import hvd
from horovod.common.process_sets import number_of
from horovod.torch import memory, stream, submit
from horovod.torch.handles import handles


class Slot:
    """For tensors like `tensor`: in the memory of the CPU, or of a GPU from where they go to NCCL."""

    def __init__(self, name, tensor, op, prescale_factor, postscale_factor, process_set):
        self._process_set = process_set
        self._dtype, self._shape, self._on_gpu = tensor.dtype, tensor.shape, tensor.is_cuda
        self._usable = tensor.dtype in memory.TYPES and self._has_memory_for(tensor)
        self.bytes = tensor.numel() * tensor.element_size()
        dims = tensor.dim()
        shape = (ctypes.c_int64 * dims)(*tensor.shape) if dims else None
        kind = memory.TYPES.get(tensor.dtype, -1)
        name = submit.prefixed("allreduce", name).encode()
        self.struct = library.Tensor(name, shape, dims, kind, None, None, None, -1)
        self.options = library.Options(number_of(process_set), op, prescale_factor, postscale_factor, None, None)

    @staticmethod
    def _has_memory_for(tensor):
        if tensor.is_cuda:
            return tensor.dtype.is_floating_point and memory.place_of(tensor, True, True) is not None
        return tensor.device.type == "cpu"

    def fits(self, tensor):
        return (
            self._usable
            and tensor.dtype is self._dtype
            and tensor.is_cuda == self._on_gpu  # device.type takes longer
            and tensor.shape == self._shape
            and tensor.is_contiguous()
            and not tensor.is_neg()
            and self.options.set == self._process_set.process_set_id
        )

    def submit(self, tensor):
        """A handle. synchronize() returns the tensor, which is in the memory of the CPU."""
        self.struct.input = self.struct.output = tensor.data_ptr()
        return handles.submit(hvd.hvd_allreduce_async, (self.struct, self.options), tensor, lambda _: tensor)


class Batch:
    """Tensors on a GPU that one stream computes, and that are submitted with one call. Each has a name of its own, so
    other ranks may submit them in other batches."""

    def __init__(self, place):
        self._place, self.stream, self.bytes = place, place.stream, 0
        self._slots, self._tensors = [], []

    def add(self, slot, tensor):
        self._slots.append(slot)
        self._tensors.append(tensor)
        self.bytes += slot.bytes

    def submit(self):
        """A handle. After synchronize(), the current stream goes on after the operation."""
        structs = (library.Tensor * len(self._slots))(*(slot.struct for slot in self._slots))
        for struct, tensor in zip(structs, self._tensors):
            struct.input = struct.output = stream.cuda.address(tensor)
            struct.stream, struct.device = self._place.stream, self._place.device
        arguments = (structs, len(structs), self._slots[0].options)
        return handles.submit(hvd.hvd_grouped_allreduce_async, arguments, self._tensors, lambda _: self._place.join())
