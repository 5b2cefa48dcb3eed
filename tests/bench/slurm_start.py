#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the start of a job on many Slurm nodes takes, compared with srun of the same program.

There is one allocation on the rig's Slurm cluster (32 nodes on this machine, one task each). In turns, every launcher
starts `true` on all nodes and ends:

  srun     srun --overlap, one task on each node: what Slurm itself needs
  hvdrun   one srun for its agents, TLS and frames, one worker on each node
  mpirun   Open MPI's, which also starts its daemons with one srun (if installed)

The launcher runs on the first node of the allocation, as in a batch script, and then again on the login node.
All nodes share the cores of this machine, so only differences and ratios matter."""

import json
import os
import shutil
import subprocess
import sys
import time

import bench

PLACES = ("HVDRUN", "HVDRUN_BUILD", "HVDRUN_SOURCE", "HVDRUN_WORKERS")  # the job gets the paths in these variables
GOAL, GOAL_NODES = 0.3, 32  # s that hvdrun may take longer than srun on so many nodes


def launchers(nodes):
    """{name: command line} of each launcher. All start `true` on every node."""
    from ground import HVDRUN
    found = {"srun": ["srun", "--overlap", f"-N{nodes}", f"-n{nodes}", "true"],
             "hvdrun": [HVDRUN, "true"]}
    if shutil.which("mpirun.openmpi"):
        found["mpirun"] = ["mpirun.openmpi", "--map-by", "ppr:1:node", "-np", str(nodes), "true"]
    return found


def plain_environment():
    """The environment of the launchers. hvdrun would read every variable HVDRUN_... as an option."""
    return {name: value for name, value in os.environ.items() if name not in PLACES}


def time_one(argv):
    """Seconds from start to end, or a text that says what went wrong."""
    began = time.monotonic()
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120,
                          env=plain_environment())
    took = time.monotonic() - began
    return took if done.returncode == 0 else f"status {done.returncode}: {(done.stdout + done.stderr).strip()[-300:]}"


def complaint(argv, nodes):
    """Checks that a command starts one process on each node. Returns what is wrong, or ""."""
    done = subprocess.run([*argv[:-1], "printenv", "SLURMD_NODENAME"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, timeout=120, env=plain_environment())
    names = {line.split(":")[-1] for line in done.stdout.split()}
    if done.returncode == 0 and len(names) == nodes:
        return ""
    return f"status {done.returncode}, started on {len(names)} nodes: {done.stderr.strip()[-300:]}"


def in_the_job(options):
    """Inside an allocation. Prints {launcher: [seconds or an error]}. The launchers take turns, and the first round
    does not count."""
    commands = launchers(options.nodes)
    wrong = {name: complaint(argv, options.nodes) for name, argv in commands.items()}
    found = {name: [text] if text else [] for name, text in wrong.items()}
    commands = {name: argv for name, argv in commands.items() if not wrong[name]}
    for number in range(options.rounds + 1):
        for name, argv in commands.items():
            took = time_one(argv)
            if number > 0 or isinstance(took, str):
                found[name].append(took)
    print(json.dumps(found))


def own_command(options, what):
    return [sys.executable, "-B", os.path.abspath(__file__), what, "--nodes", str(options.nodes), "--rounds", str(options.rounds)]


def rig_main(options):
    """In the box: makes the cluster, and measures the launchers on the first node and on the login node."""
    import entrance
    import slurm_files
    from ground import BUILD, HVDRUN, SOURCE, WORKERS
    if "HVDRUN_RIG_KEEPER" not in os.environ:
        lack = slurm_files.missing()
        if lack:
            print(f"skipped: a Slurm cluster on one machine needs {lack}")
            sys.exit(entrance.SKIPPED)
        entrance.enter([SOURCE, BUILD, os.path.dirname(HVDRUN)])
    import slurm
    from box import Box
    from hosts import Rig
    names = [f"node{number}" for number in range(1, options.nodes + 1)]
    Rig.prepare = lambda rig: slurm.Cluster(rig, names, {})
    Rig.up(options.nodes + 1)
    slurm.Cluster.one.wait_idle()
    box, found = Box(), {}
    places = dict(zip(PLACES, (HVDRUN, BUILD, SOURCE, WORKERS)))
    env = box.environment({"TMPDIR": None, "XDG_RUNTIME_DIR": None, **places})
    shape = [f"-N{options.nodes}", "--ntasks-per-node=1"]
    out = box.path("out")
    script = box.path("job.sh")
    with open(script, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\nexec \"$@\"\n")
    limit = options.rounds * 60 + 120
    slurm.run_tool("sbatch", "--wait", *shape, "-o", out, "-e", box.path("err"), script, *own_command(options, "--in-the-job"),
                   env=env, cwd=box.work, timeout=limit, check=False)
    with open(out, encoding="utf-8") as file:
        found["first node"] = json.loads(file.read().strip().split("\n")[-1])
    text = slurm.run_tool("salloc", "--quiet", *shape, *own_command(options, "--in-the-job"),
                          env=env, cwd=box.work, timeout=limit)
    found["login node"] = json.loads(text.strip().split("\n")[-1])
    box.close()
    print(json.dumps(found))


def in_the_rig(options):
    done = subprocess.run(own_command(options, "--in-the-rig"), stdout=subprocess.PIPE, text=True, check=False)
    last = done.stdout.strip().split("\n")[-1]
    return json.loads(last) if done.returncode == 0 else f"not run: {last or 'it ended with ' + str(done.returncode)}"


def times(values):
    return [value for value in values if not isinstance(value, str)]


def as_table(found, nodes):
    rows, notes = [], []
    for place, launchers_there in found.items():
        base = bench.summary(times(launchers_there["srun"]))["median"]
        for name, values in launchers_there.items():
            there = times(values)
            median = bench.summary(there)["median"]
            known = median is not None and base is not None
            rows.append([place, name, len(there), bench.pair(there), bench.seconds(min(there, default=None)),
                         f"{median - base:+.3f}" if known else "-", f"{median / base:.2f}" if known else "-",
                         len(values) - len(there)])
            notes += [f"- {place}, {name}: {value}" for value in values if isinstance(value, str)][:1]
        mine = bench.summary(times(launchers_there["hvdrun"]))["median"]
        if mine is not None and base is not None and nodes == GOAL_NODES:
            met = "met" if mine - base <= GOAL else "NOT met"
            notes.append(f"- {place}: goal (not more than {GOAL} s above srun) {met}: {mine - base:+.3f} s")
    head = ["launcher on", "launcher", "n", "median / worst", "best", "minus srun", "by srun", "failed"]
    return bench.table(head, rows) + "\n\n" + "\n".join(notes)


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--nodes", type=int, default=GOAL_NODES)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--in-the-rig", action="store_true", help="used by the program itself")
    parser.add_argument("--in-the-job", action="store_true", help="used by the program itself")
    options = parser.parse_args()
    if options.in_the_job:
        in_the_job(options)
        return
    bench.begin()
    if options.in_the_rig:
        rig_main(options)
        return
    report = bench.Report("slurm_start", options)
    found = in_the_rig(options)
    text = found if isinstance(found, str) else as_table(found, options.nodes)
    report.add(f"Start of `true` on {options.nodes} Slurm nodes, seconds", text, "start", found)
    report.finish()


if __name__ == "__main__":
    main()
