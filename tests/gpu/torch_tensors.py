#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch_tensors.py LIBHVD: libhvd reduces what PyTorch computes in a stream, without a wait in between.

Run it under hvdrun with one rank for each GPU; tests/gpu/nccl.sh does. Says "all right" at the end."""
import ctypes
import sys

import torch


class Tensor(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("dims", ctypes.c_int32), ("type", ctypes.c_int32), ("input", ctypes.c_void_p),
                ("output", ctypes.c_void_p), ("stream", ctypes.c_void_p), ("device", ctypes.c_int32)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("set", ctypes.c_int32), ("op", ctypes.c_int32),
                ("prescale", ctypes.c_double), ("postscale", ctypes.c_double), ("callback", ctypes.c_void_p),
                ("context", ctypes.c_void_p)]


TYPES = {torch.float16: 6, torch.float32: 7, torch.float64: 8, torch.bfloat16: 10}
SUM = 1
hvd = ctypes.CDLL(sys.argv[1])
hvd.hvd_error_text.restype = ctypes.c_char_p


def check(status):
    if status != 0:
        sys.exit(f"status {status}: {hvd.hvd_error_text().decode()}")


def allreduce(name, tensor):
    shape = (ctypes.c_int64 * tensor.dim())(*tensor.shape)
    stream = torch.cuda.current_stream().cuda_stream
    own = Tensor(ctypes.sizeof(Tensor), name.encode(), shape, tensor.dim(), TYPES[tensor.dtype], tensor.data_ptr(),
                 tensor.data_ptr(), stream, -1)
    options = Options(ctypes.sizeof(Options), 0, SUM, 1.0, 1.0, None, None)
    handle = ctypes.c_int64()
    check(hvd.hvd_allreduce_async(ctypes.byref(own), ctypes.byref(options), ctypes.byref(handle)))
    return handle


def main():
    check(hvd.hvd_init(None))
    rank, size = hvd.hvd_rank(), hvd.hvd_size()
    torch.cuda.set_device(hvd.hvd_local_rank())
    for number, dtype in enumerate(list(TYPES) * 5):
        with torch.cuda.stream(torch.cuda.Stream()):
            busy = torch.rand(4096, 4096, device="cuda")
            for _ in range(20):  # the stream is busy when the tensor is submitted
                busy = busy @ busy
                busy = busy / busy.max()
            tensor = torch.full((300, 7), float(rank), device="cuda", dtype=dtype)
            tensor += (busy.sum() * 0 + 1).to(dtype)
            check(hvd.hvd_wait(allreduce(f"x{number % 3}", tensor), ctypes.c_int64(-1), None))
            tensor *= 2  # in the same stream: after the reduction, also if the handle was complete at its launch
            wanted = float(size * (size + 1))
            if not bool((tensor == wanted).all()):
                sys.exit(f"{dtype}: {tensor.flatten()[:4].tolist()}, and not {wanted}")
    check(hvd.hvd_shutdown())
    print("all right", hvd.hvd_nccl_version())


main()
