# SPDX-License-Identifier: Apache-2.0
"""GPUs: where a tensor is, and the streams in which PyTorch computes.

libhvd works in a stream of its own. An operation waits for the stream that is current when a tensor is
submitted, and that stream then waits for the result. So no thread of the program waits for a GPU."""
import functools
import os

import torch

from horovod.common import library
from horovod.common.library import hvd

# A handle is complete when its operation is launched, and streams wait for the rest.
os.environ.setdefault("HOROVOD_ENABLE_ASYNC_COMPLETION", "1")


class Cuda:
    """What is needed of torch.cuda. Streams are CUDA's own handles, as numbers."""

    def device_of(self, tensor):
        """The number of the GPU; None: the tensor is not on one."""
        return tensor.get_device() if tensor.is_cuda else None

    def address(self, tensor):
        return tensor.data_ptr()

    def current(self, device):
        """The stream that is current in this thread."""
        return torch._C._cuda_getCurrentRawStream(device)

    def wait(self, device, stream):
        """The current stream goes on after what the other one has to do now."""
        # ExternalStream(0) would be a new stream, and not the default one
        other = torch.cuda.ExternalStream(stream, device=device) if stream else torch.cuda.default_stream(device)
        torch.cuda.current_stream(device).wait_stream(other)

    def synchronize(self, device):
        torch.cuda.synchronize(device)

    def count(self):
        return torch.cuda.device_count()


cuda = Cuda()  # tests without a GPU have another one
_used = set()  # GPUs from which tensors were submitted


class Place:
    """The GPU of a tensor, and the stream that was current when it was submitted."""

    __slots__ = ("device", "stream")

    def __init__(self, device):
        self.device, self.stream = device, cuda.current(device)
        _used.add(device)

    def join(self):
        """The stream that is current now uses the result."""
        if cuda.current(self.device) != self.stream:
            cuda.wait(self.device, self.stream)


@functools.lru_cache(maxsize=None)
def has_nccl():
    """Otherwise tensors go through host memory. libhvd does not know the GPUs of ROCm."""
    return torch.version.hip is None and hvd.hvd_nccl_version() > 0


def use_for_zeros(device):
    """Which GPU has the zeros of this rank when it joins; counts only if it has not submitted a tensor on a GPU. A
    number that is not there does not count, because the tensors of the others may be on their CPUs."""
    if has_nccl() and 0 <= device < cuda.count():
        library.check(hvd.hvd_use_gpu(0, device))


def settle():
    """Waits until the GPUs have computed everything. HorovodInternalError: a rank was lost meanwhile, and
    the values may be wrong."""
    for device in _used:
        cuda.synchronize(device)
    if _used:
        library.check(hvd.hvd_failure())
