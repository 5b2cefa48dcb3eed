# SPDX-License-Identifier: Apache-2.0
"""GPU tensors for a PyTorch without CUDA, on the libcuda.so.1 of tests/gpu/fake.

A tensor has its values in the second mapping of the fake device memory. PyTorch computes on the CPU, after the
work in the current stream. So it sees wrong values if that stream did not wait for a result."""
import ctypes
import threading

import torch
from horovod.torch import stream

DELAY_S = 0.03
_HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_ON_THE_HOST = {"cpu", "tolist", "item", "__repr__", "numpy"}


class FakeTensor(torch.Tensor):
    """A tensor on a GPU."""

    is_cuda = property(lambda self: True)
    device = property(lambda self: torch.device("cuda", 0))

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        stream.cuda.drain()
        with torch._C.DisableTorchFunction():
            output = function(*args, **(kwargs or {}))
        if getattr(function, "__name__", "") in _ON_THE_HOST:
            return output.clone() if isinstance(output, torch.Tensor) else output
        return _map(output)


def _map(output):
    if isinstance(output, torch.Tensor):
        return stream.cuda.take(output)
    if isinstance(output, (list, tuple)) and any(isinstance(one, torch.Tensor) for one in output):
        return type(output)([_map(one) for one in output])
    return output


class FakeCuda:
    """As stream.Cuda, for one GPU."""

    def __init__(self, number):
        self.number = number
        self._library = library = ctypes.CDLL("libcuda.so.1")
        library.fake_shadow.restype = ctypes.c_void_p
        library.fake_shadow.argtypes = (ctypes.c_void_p,)
        self._thread = threading.local()
        self._context = ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), number)
        self._enter()
        first = self._allocate(1)
        self._begin, self._offset = library.fake_shadow(first), first - library.fake_shadow(first)
        self._sleep = _HOST_FUNCTION(lambda _: threading.Event().wait(DELAY_S))

    def _call(self, name, *arguments):
        status = getattr(self._library, name)(*arguments)
        assert status == 0, (name, status)

    def _enter(self):
        if not getattr(self._thread, "entered", False):
            self._thread.entered = True
            self._call("cuCtxPushCurrent_v2", self._context)

    def _allocate(self, count):
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(count))
        return address.value

    # what stream.Cuda has

    def device_of(self, tensor):
        return self.number if isinstance(tensor, FakeTensor) else None

    def address(self, tensor):
        with torch._C.DisableTorchFunction():
            return tensor.data_ptr() + self._offset if tensor.numel() else 0

    def current(self, device):
        assert device == self.number
        return getattr(self._thread, "stream", 0)

    def wait(self, device, other):
        self._enter()
        event = ctypes.c_void_p()
        self._call("cuEventCreate", ctypes.byref(event), 2)
        self._call("cuEventRecord", event, ctypes.c_void_p(other))
        self._call("cuStreamWaitEvent", ctypes.c_void_p(self.current(device)), event, 0)

    def synchronize(self, device):
        self.drain()

    def count(self):
        return self.number + 1

    # for tests

    def drain(self):
        self._enter()
        self._call("cuStreamSynchronize", ctypes.c_void_p(self.current(self.number)))

    def take(self, tensor):
        """The tensor on the GPU: itself if it is there, or a copy."""
        with torch._C.DisableTorchFunction():
            plain = tensor.as_subclass(torch.Tensor)
            count = plain.numel() * plain.element_size()
            if count and not 0 <= plain.data_ptr() - self._begin < 2 << 30:
                self._enter()
                place = self._library.fake_shadow(self._allocate(count))
                memory = (ctypes.c_uint8 * count).from_address(place)
                copy = torch.frombuffer(memory, dtype=plain.dtype).view(plain.shape)
                copy.copy_(plain)
                plain = copy
            return plain.as_subclass(FakeTensor)

    def new_stream(self):
        self._enter()
        made = ctypes.c_void_p()
        self._call("cuStreamCreateWithPriority", ctypes.byref(made), 1, 0)
        return made.value

    def use(self, number):
        self._thread.stream = number

    def compute_late(self, tensor, value):
        """In the current stream: after a while, the tensor gets the other one's values."""
        self._enter()
        current = ctypes.c_void_p(self.current(self.number))
        count = ctypes.c_size_t(tensor.numel() * tensor.element_size())
        addresses = (ctypes.c_uint64(self.address(one)) for one in (tensor, value))
        self._call("cuLaunchHostFunc", current, self._sleep, None)
        self._call("cuMemcpyDtoDAsync_v2", *addresses, count, current)
