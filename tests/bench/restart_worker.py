# SPDX-License-Identifier: Apache-2.0
"""A script for restart.py that can start again. Each of its steps is a sum over all ranks, with or without torch.
It appends lines "begin|imported|first-step SECONDS PID RANK RESTART" to --stamp. After each start its ranks connect to
each other: with torch through init_process_group("gloo"), without it through a new socket in the folder --meet.
"""

import argparse
import os
import socket
import time

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
RESTART = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")


def stamp(path, what):
    with open(path, "a", encoding="ascii") as file:
        file.write(f"{what} {time.monotonic():.6f} {os.getpid()} {RANK} {RESTART}\n")


def meet_with_torch(options):
    """Returns the step."""
    import torch
    import torch.distributed as dist
    stamp(options.stamp, "imported")
    dist.init_process_group("gloo", init_method="env://")

    def step():
        ones = torch.ones(1)
        dist.all_reduce(ones)
        assert ones.item() == SIZE
    return step


def join(path):
    while True:
        try:
            one = socket.socket(socket.AF_UNIX)
            one.connect(path)
            return one
        except OSError:
            one.close()
            time.sleep(0.002)


def meet_alone(options):
    """Returns the step: rank 0 collects a byte from each other rank and sends one back."""
    stamp(options.stamp, "imported")
    path = os.path.join(options.meet, f"meet.{RESTART}")
    if RANK == 0:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path + ".new")
        listener.listen(SIZE)
        os.rename(path + ".new", path)
        peers = [listener.accept()[0] for _ in range(SIZE - 1)]
    else:
        peers = [join(path)]

    def take(peer):
        if peer.recv(1) != b"x":
            raise SystemExit(1)  # the peer has ended

    def step():
        if RANK != 0:
            peers[0].sendall(b"x")
        for peer in peers:
            take(peer)
        if RANK == 0:
            for peer in peers:
                peer.sendall(b"x")
    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stamp", required=True)
    parser.add_argument("--meet", required=True)
    parser.add_argument("--torch", action="store_true")
    options = parser.parse_args()
    stamp(options.stamp, "begin")
    step = (meet_with_torch if options.torch else meet_alone)(options)
    step()
    stamp(options.stamp, "first-step")
    while True:
        time.sleep(0.02)
        step()


if __name__ == "__main__":
    main()
