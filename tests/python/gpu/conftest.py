# SPDX-License-Identifier: Apache-2.0
"""Tensors on GPUs: on the real ones, or on the fake one of tests/gpu/fake if PyTorch has no CUDA."""
import contextlib
import os
import sys

import horovod.torch as hvd
import pytest
import torch
from horovod.torch import stream

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


class RealGpu:
    """What the tests do with a GPU."""

    def __init__(self, number):
        torch.cuda.set_device(number)

    def put(self, tensor):
        return tensor.cuda()

    @contextlib.contextmanager
    def another_stream(self):
        with torch.cuda.stream(torch.cuda.Stream()):
            yield

    def compute_late(self, tensor, value):
        busy = torch.rand(4096, 4096, device="cuda")
        for _ in range(20):
            busy = busy @ busy
            busy = busy / busy.max()
        tensor.copy_(value + (busy.sum() * 0).to(value.dtype))


class FakeGpu:
    def __init__(self, number):
        from fake_device import FakeCuda

        stream.cuda = self._cuda = FakeCuda(number)

    def put(self, tensor):
        return self._cuda.take(tensor)

    @contextlib.contextmanager
    def another_stream(self):
        before = self._cuda.current(self._cuda.number)
        self._cuda.use(self._cuda.new_stream())
        yield
        self._cuda.use(before)

    def compute_late(self, tensor, value):
        self._cuda.compute_late(tensor, value)


_gpus = []  # one for the whole process


@pytest.fixture
def gpu(job):
    if not _gpus:
        _gpus.append((RealGpu if torch.cuda.is_available() else FakeGpu)(hvd.local_rank()))
    return _gpus[0]
