#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast the output of one host arrives over SSH, compared with a bare libssh2 channel and the ssh program.

A process on the host prints 100-byte lines (`cat` of a file in memory). Here, a pipe takes them to a reader that
discards them. In turns:

  floor    one libssh2 channel, read and written out (floor_ssh.c)
  hvdrun   whole lines with labels, and with --no-label
  ssh      the ssh program (it can be faster than libssh2 because its cipher is AES-GCM)

The time includes start and end."""

import os

import bench
import ssh_world

GOAL = 0.8
LINE = b"%09d the quick brown fox jumps over the lazy dog; the quick brown fox jumps over the lazy do.......\n"


def make_file(path, mib):
    """Writes whole lines. Returns the length of the file."""
    with open(path, "wb") as file:
        for start in range(0, mib << 20, 1 << 20):
            file.write(b"".join(LINE % number for number in range(start // 100, start // 100 + (1 << 20) // 100)))
    return os.path.getsize(path)


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mib", type=int, default=256)
    options = parser.parse_args()
    world = ssh_world.begin("ssh_io")
    path = os.path.join(world.top, "shared", "lines")
    size = make_file(path, options.mib)
    commands = {"floor": world.floor([1], command=f"cat {path}"),
                "hvdrun": world.hvdrun([1], "cat", path),
                "hvdrun --no-label": world.hvdrun([1], "--no-label", "cat", path),
                "ssh": ["ssh", "-oBatchMode=yes", "h1", "cat", path]}
    values = {name: [] for name in commands}
    names = list(commands)
    for turn in range(options.rounds):
        bench.say(f"ssh_io: round {turn + 1} of {options.rounds}")
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            argv = ["bash", "-c", "set -o pipefail; \"$@\" | cat >/dev/null", "bash", *commands[name]]
            values[name].append(world.measure(argv))
    medians = {name: bench.summary([value.get("wall") for value in there])["median"] for name, there in values.items()}
    rows = []
    for name, there in values.items():
        wall = medians[name]
        rows.append([name, sum("wall" in value for value in there), f"{size / wall / (1 << 20):.0f}" if wall else "-",
                     f"{medians['floor'] / wall:.2f}" if wall and medians["floor"] else "-"]
                    + [bench.seconds(bench.summary([value.get(end) for value in there])["median"]) for end in ("own", "hosts")])
    notes = [f"- {name}: {value['error']}" for name, there in values.items() for value in there if "error" in value][:4]
    if medians["floor"] and medians["hvdrun"]:
        ratio = medians["floor"] / medians["hvdrun"]
        notes.append(f"- goal ({GOAL} of the floor's speed) {'met' if ratio >= GOAL else 'NOT met'}: {ratio:.2f}")
    head = ["way", "n", "MiB/s (median)", "of the floor", "CPU here, s", "CPU on the host, s"]
    report = bench.Report("ssh_io", options)
    report.add(f"Output of one host over SSH, {options.mib} MiB of lines", bench.table(head, rows) + "\n\n" + "\n".join(notes),
               "io", {"bytes": size, "runs": values})
    report.finish()
    world.close()


if __name__ == "__main__":
    main()
