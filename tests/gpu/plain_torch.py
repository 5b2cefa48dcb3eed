# SPDX-License-Identifier: Apache-2.0
"""The figures of `hvdrun check --gpu` by PyTorch's own timer, one GPU after the other, and by an all-reduce of processes.

Alone: products, copies. Under torchrun, with a rank for each GPU: the all-reduce. check_gpu.sh runs it both ways."""

import os
import time

import torch
import torch.distributed as dist
from torch.utils.benchmark import Timer

SIDE, COPY, HOST_COPY, REDUCE = 8192, 1 << 30, 256 << 20, 256 << 20


def seconds(statement, **names):
    return Timer(statement, globals=names).blocked_autorange(min_run_time=2).median


def alone():
    for device in range(torch.cuda.device_count()):
        torch.cuda.set_device(device)
        one = torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16)
        product = 2 * SIDE**3 / seconds("mm(one, one, out=result)", mm=torch.mm, one=one, result=torch.empty_like(one))
        source = torch.empty(COPY, device="cuda", dtype=torch.uint8)
        copy = 2 * COPY / seconds("target.copy_(source)", target=torch.empty_like(source), source=source)
        host = torch.empty(HOST_COPY, dtype=torch.uint8, pin_memory=True)
        target = torch.empty(HOST_COPY, device="cuda", dtype=torch.uint8)
        fetch = HOST_COPY / seconds("target.copy_(host)", target=target, host=host)
        print(f"plain GPU {device}: {product / 1e12:.0f} TFLOP/s, {copy / 1e9:.0f} GB/s in memory, "
              f"{fetch / 1e9:.1f} GB/s from host")


def reduce_all():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", device_id=torch.device("cuda", local))
    part, best = torch.ones(REDUCE // 4, device="cuda"), float("inf")
    for _ in range(8):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(10):
            dist.all_reduce(part)
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - begin) / 10)
    size = dist.get_world_size()
    if dist.get_rank() == 0:
        print(f"plain all-reduce of {size}: {2 * (size - 1) / size * REDUCE / best / 1e9:.0f} GB/s")
    dist.destroy_process_group()


if "LOCAL_RANK" in os.environ:
    reduce_all()
else:
    alone()
