# SPDX-License-Identifier: Apache-2.0
"""Tests the GPUs of this host with PyTorch, for `hvdrun check --gpu`. check.h tells what it prints."""

import sys

sys.path[:] = [folder for folder in sys.path if folder]  # not what happens to be in this folder

import os  # noqa: E402
import statistics  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402

SIDE = 8192  # of the matrices
COPY = 1 << 30  # bytes of a copy within the GPU
HOST_COPY = 256 << 20
REDUCE = 256 << 20
BETWEEN = 64 << 20
SECONDS = {"compute": 2.0, "memory": 0.5, "host": 0.2}
ROOM = 6 << 30  # bytes that must be free
BUSY = 0.2  # of the memory: more in use, and others work there


def say(*words):
    print(*words, flush=True)


def none(reason):
    say("none", reason)
    sys.exit(0)


try:
    import torch
except ImportError:
    none("this Python has no PyTorch")


def between(rank, address, port, interface):
    """An all-reduce with another host: by NCCL between the first GPUs, else by Gloo."""
    import datetime
    import torch.distributed as distributed
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        if interface:
            os.environ.setdefault(name, interface)
    gpu = torch.version.cuda is not None and torch.cuda.is_available() and distributed.is_nccl_available()
    host = f"[{address}]" if ":" in address else address
    distributed.init_process_group("nccl" if gpu else "gloo", init_method=f"tcp://{host}:{port}", rank=int(rank), world_size=2,
                                   timeout=datetime.timedelta(seconds=60))
    part = torch.ones(BETWEEN // 4, device="cuda:0" if gpu else "cpu")

    def seconds(count):
        begin = time.perf_counter()
        for _ in range(count):
            distributed.all_reduce(part)
        if gpu:
            torch.cuda.synchronize()
        return (time.perf_counter() - begin) / count

    seconds(2)
    # of two ranks, each sends and receives as many bytes as the part has
    say("between", f"{BETWEEN / min(seconds(2) for _ in range(3)) / 1e9:.3f}")
    distributed.barrier()
    os._exit(0)  # an orderly end aborts if threads of Gloo still run


if sys.argv[1:2] == ["between"]:
    between(*sys.argv[2:6])
if torch.version.cuda is None:
    none("this PyTorch is not for GPUs of NVIDIA")
if not torch.cuda.is_available():
    try:
        torch.cuda.init()
    except Exception as error:  # which one depends on the version
        sys.exit(f"PyTorch {torch.__version__} cannot use the GPUs: {error}")
    none("this PyTorch cannot use a GPU")
if not hasattr(torch.cuda.get_device_properties(0), "uuid"):
    none("this PyTorch is too old to tell the GPUs apart")


def per_second(device, kind, work, amount):
    """The median of short rounds, each of which waits for the GPU: nothing else is in its queue."""
    work()
    torch.cuda.synchronize(device)
    begin, rates = time.perf_counter(), []
    while not rates or time.perf_counter() - begin < SECONDS[kind]:
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        for _ in range(10):
            work()
        last.record()
        torch.cuda.synchronize(device)
        rates.append(10 * amount / (first.elapsed_time(last) / 1e3))
    return statistics.median(rates)


def inside(device, out):
    try:
        out[device] = rates_inside(device)
    except Exception as error:  # the main thread says it
        out[device] = error


def rates_inside(device):
    """What a GPU does within itself; all of them at once."""
    torch.cuda.set_device(device)
    one = torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16)
    result = torch.empty_like(one)
    compute = per_second(device, "compute", lambda: torch.mm(one, one, out=result), 2 * SIDE**3)
    source = torch.empty(COPY, device="cuda", dtype=torch.uint8)
    target = torch.empty_like(source)
    memory = per_second(device, "memory", lambda: target.copy_(source), 2 * COPY)
    return compute / 1e12, memory / 1e9


def processors_near(device):
    """Those of the GPU's NUMA node that this process may use; empty: not known."""
    properties, near = torch.cuda.get_device_properties(device), set()
    try:
        place = f"{properties.pci_domain_id:04x}:{properties.pci_bus_id:02x}:{properties.pci_device_id:02x}.0"
        with open(f"/sys/bus/pci/devices/{place}/local_cpulist", encoding="ascii") as file:
            for part in file.read().strip().split(","):
                first, _, last = part.partition("-")
                near.update(range(int(first), int(last or first) + 1))
    except (AttributeError, OSError, ValueError):  # an older PyTorch; no such file; nothing in it
        return set()
    return near & os.sched_getaffinity(0)


def from_host(device):
    """One GPU after the other, for they share the memory of the host. A job has its memory near the GPU."""
    before, near = os.sched_getaffinity(0), processors_near(device)
    if near:
        os.sched_setaffinity(0, near)
    try:
        return rate_from_host(device)
    finally:
        os.sched_setaffinity(0, before)


def rate_from_host(device):
    torch.cuda.set_device(device)
    source = torch.empty(HOST_COPY, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(HOST_COPY, device="cuda", dtype=torch.uint8)
    return per_second(device, "host", lambda: target.copy_(source, non_blocking=True), HOST_COPY) / 1e9


def reduce_all(devices):
    """GB/s that the links of each GPU carry, as nccl-tests has it."""
    parts = [torch.ones(REDUCE // 4, device=f"cuda:{device}") for device in devices]

    def rounds(count):
        begin = time.perf_counter()
        for _ in range(count):
            torch.cuda.nccl.all_reduce(parts, outputs=parts)
        for device in devices:
            torch.cuda.synchronize(device)
        return (time.perf_counter() - begin) / count

    rounds(5)
    fastest = min(rounds(10) for _ in range(3))
    return 2 * (len(devices) - 1) / len(devices) * REDUCE / fastest / 1e9


def main():
    say("torch", torch.__version__)
    has_nccl = hasattr(torch._C, "_nccl_version")
    if has_nccl:
        say("nccl", ".".join(map(str, torch.cuda.nccl.version())))
    devices, speeds = [], {}
    for device in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(device)
        if free < ROOM or free < (1 - BUSY) * total:
            say("busy", f"GPU-{torch.cuda.get_device_properties(device).uuid}")
        else:
            devices.append(device)
    threads = [threading.Thread(target=inside, args=(device, speeds)) for device in devices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for device in devices:
        if not isinstance(speeds.get(device), tuple):
            sys.exit(f"GPU {device}: {speeds.get(device)}")
        compute, memory = speeds[device]
        say("speed", f"GPU-{torch.cuda.get_device_properties(device).uuid}", f"{compute:.1f}", f"{memory:.1f}",
            f"{from_host(device):.2f}")
    torch.cuda.empty_cache()
    whole = not any("MIG" in torch.cuda.get_device_name(device) for device in devices)
    if len(devices) > 1 and whole and has_nccl:  # NCCL uses no two parts of a GPU
        say("reduce", len(devices), f"{reduce_all(devices):.1f}")


main()
