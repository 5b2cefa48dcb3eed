#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long MPI programs need to start and end, compared with the launchers of their MPI libraries.

  here     mpi_hello (MPI_Init, one sum, MPI_Finalize) on this machine: Open MPI under hvdrun and mpirun,
           MPICH under hvdrun and mpiexec.hydra
  memory   of the launcher's own processes (proportional share) with 256 PMIx clients that have
           exchanged a value: hvdrun and mpirun
  hosts    Open MPI's mpi_hello on 2 hosts of the rig over SSH, 2 ranks each, and a PMIx fence with 64
           bytes from each of 8 ranks on each of 4 hosts, timed by the ranks: hvdrun and mpirun
  slurm    Open MPI's mpi_hello on one node of the rig's Slurm cluster, in an allocation: srun
           --mpi=pmix, hvdrun, mpirun

The launchers take turns, and the first round does not count. For the part "here", the table also shows how much
processor time the command and its workers took. That says more if the machine is busy."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import bench

SIZES = (2, 8, 32)
MEMORY_NP, MEMORY_GOAL_MIB = 256, 24
FENCE_HOSTS, FENCE_RANKS, FENCE_ROUNDS = 4, 8, 50
QUIET = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
FENCE = re.compile(r"\bfence ([\d.]+)")


def cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def time_one(argv, size, env):
    """A dictionary with seconds, processor seconds and, if the program prints it, the time of a fence. Or a text that
    says what went wrong."""
    began, before = time.monotonic(), cpu()
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120, env=env)
    except subprocess.TimeoutExpired:
        return "longer than 120 s"
    found = {"seconds": time.monotonic() - began, "cpu": cpu() - before}
    fence = FENCE.search(done.stdout)
    said = fence is not None or done.stdout.count(f" of {size} sum {size * (size - 1) // 2}") == size
    if done.returncode != 0 or not said:
        return f"status {done.returncode}: {(done.stdout + done.stderr).strip()[-300:]}"
    return {**found, **({"fence": float(fence[1])} if fence else {})}


def in_turns(commands, size, rounds, env):
    """{name: [results]}. Each round begins with another command."""
    found, names = {name: [] for name in commands}, list(commands)
    for number in range(rounds + 1):
        at = number % len(names)
        for name in names[at:] + names[:at]:
            one = time_one(commands[name], size, env)
            if number > 0 or isinstance(one, str):
                found[name].append(one)
    return found


def environment(box):
    return box.environment(QUIET)


# on this machine

def here(options):
    from box import Box
    from ground import HVDRUN, mpi_worker
    found, box = {}, Box()
    for size in options.sizes:
        open_mpi, mpich = mpi_worker("mpi_hello", "openmpi"), mpi_worker("mpi_hello", "mpich")
        pairs = {"Open MPI": {"mpirun": ["mpirun.openmpi", "--oversubscribe", "-np", str(size), open_mpi],
                              "hvdrun": [HVDRUN, "-np", str(size), open_mpi]},
                 "MPICH": {"hydra": ["mpiexec.hydra", "-np", str(size), mpich],
                           "hvdrun": [HVDRUN, "-np", str(size), mpich]}}
        for kind, commands in pairs.items():
            bench.say(f"{kind}, {size} ranks")
            found[f"{kind}, np {size}"] = in_turns(commands, size, options.rounds, environment(box))
    box.close()
    return found


def share_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return int(re.search(r"^Pss:\s+(\d+)", file.read(), re.M)[1])


def memory_one(argv, size):
    """KiB of all processes except the workers, when every worker has reported that it runs."""
    from box import Box
    from jobs import Job
    from procfs import descendants
    box = Box()
    job = Job(box, argv, env=QUIET)
    try:
        job.wait_output("there", count=size, timeout=300)
        launchers = [one.pid for one in descendants(job.pid) if one.comm != "mpi_fence"]
        return {"kib": sum(map(share_kib, {job.pid, *launchers}))}
    finally:
        job.signal(signal.SIGTERM)
        try:
            job.wait(60)
        finally:
            box.kill_strays()
            box.close()


def memory(options):
    from ground import HVDRUN, worker
    size = options.memory_np
    commands = {"mpirun": ["mpirun.openmpi", "--oversubscribe", "-np", str(size), worker("mpi_fence"), "stay"],
                "hvdrun": [HVDRUN, "--mpi=pmix", "-np", str(size), worker("mpi_fence"), "stay"]}
    found = {name: [] for name in commands}
    for _ in range(3):
        for name, argv in commands.items():
            bench.say(f"memory, {name}")
            found[name].append(memory_one(argv, size)["kib"])
    return found


# hosts of the rig

def rig_hosts(options):
    import entrance
    from ground import BUILD, HVDRUN, SOURCE, WORKERS, mpi_worker, worker
    if "HVDRUN_RIG_KEEPER" not in os.environ:
        entrance.enter([SOURCE, BUILD, os.path.dirname(HVDRUN), WORKERS])
    import worlds
    from box import Box
    world, box = worlds.RigHosts(FENCE_HOSTS + 1), Box()  # the launcher runs on the first host
    words = [str(word) for word in world.words(box)]
    config = words[words.index("--ssh-config") + 1]
    env = box.environment({**QUIET, "OMPI_MCA_mpi_yield_when_idle": "1"})
    found = {}
    for title, count, each, program in (
            ("start on 2 hosts, 2 ranks each", 2, 2, [mpi_worker("mpi_hello", "openmpi")]),
            (f"fence of {FENCE_HOSTS} hosts x {FENCE_RANKS} ranks", FENCE_HOSTS, FENCE_RANKS, [worker("mpi_fence"), str(FENCE_ROUNDS)])):
        hosts, size = ",".join(f"{world.host(i)}:{each}" for i in range(count)), count * each
        commands = {"mpirun": ["mpirun.openmpi", "--mca", "plm_rsh_agent", f"ssh -F {config}", "--host", hosts, *program],
                    "hvdrun": [HVDRUN, *words, "--mpi=pmix", "-H", hosts, *program]}
        bench.say(title)
        found[title] = in_turns(commands, size, options.rounds, env)
    box.close()
    print(json.dumps(found))


# one node of the rig's Slurm cluster

PLACES = ("HVDRUN", "HVDRUN_BUILD", "HVDRUN_SOURCE", "HVDRUN_WORKERS")  # a batch job gets the paths in these variables


def in_the_job(options):
    from ground import HVDRUN, mpi_worker
    found = {}
    env = {name: value for name, value in os.environ.items() if name not in PLACES}
    env.update({**QUIET, "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    for size in options.sizes:
        program, n = mpi_worker("mpi_hello", "openmpi"), str(size)
        commands = {"srun": ["srun", "--overlap", "--overcommit", "-N1", f"-n{n}", "--mpi=pmix", program],
                    "mpirun": ["mpirun.openmpi", "--oversubscribe", "-np", n, program],
                    "hvdrun": [HVDRUN, "--oversubscribe", "-np", n, program]}
        found[f"Slurm node, np {size}"] = in_turns(commands, size, options.rounds, env)
    print(json.dumps(found))


def own_command(options, what):
    return [sys.executable, "-B", os.path.abspath(__file__), what, "--rounds", str(options.rounds),
            "--sizes", ",".join(map(str, options.sizes))]


def rig_slurm(options):
    import entrance
    import slurm_files
    from ground import BUILD, HVDRUN, SOURCE, WORKERS
    if "HVDRUN_RIG_KEEPER" not in os.environ:
        lack = slurm_files.missing()
        if lack:
            print(f"skipped: a Slurm cluster on one machine needs {lack}")
            sys.exit(entrance.SKIPPED)
        entrance.enter([SOURCE, BUILD, os.path.dirname(HVDRUN), WORKERS])
    import slurm
    from box import Box
    from hosts import Rig
    Rig.prepare = lambda rig: slurm.Cluster(rig, ["node1"], {})
    Rig.up(2)
    slurm.Cluster.one.wait_idle()
    box = Box()
    places = dict(zip(PLACES, (HVDRUN, BUILD, SOURCE, WORKERS)))
    script, out = box.path("job.sh"), box.path("out")
    with open(script, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\nexec \"$@\"\n")
    slurm.run_tool("sbatch", "--wait", "-N1", "-n4", "-o", out, "-e", box.path("err"), script, *own_command(options, "--in-the-job"),
                   env=box.environment({"TMPDIR": None, "XDG_RUNTIME_DIR": None, **places}), cwd=box.work,
                   timeout=options.rounds * 120 + 120, check=False)
    texts = []
    for path in (out, box.path("err")):
        with open(path, encoding="utf-8", errors="replace") as file:
            texts.append(file.read().strip())
    box.close()
    if not texts[0]:
        print("the Slurm job printed only this: " + texts[1][-300:].replace("\n", " "))
        sys.exit(1)
    print(texts[0].split("\n")[-1])


def in_the_rig(options, what):
    done = subprocess.run(own_command(options, what), stdout=subprocess.PIPE, text=True, check=False)
    last = done.stdout.strip().split("\n")[-1]
    return json.loads(last) if done.returncode == 0 else f"not run: {last or 'it ended with ' + str(done.returncode)}"


# tables

def ratio(mine, other, what):
    medians = [bench.summary(one.get(what) for one in values if not isinstance(one, str))["median"] for values in (mine, other)]
    return f"{medians[0] / medians[1]:.2f}" if None not in medians and medians[1] else "-"


def as_table(found, local=False):
    """`local`: all processes are children of the commands, so their processor time is known."""
    if isinstance(found, str):
        return found
    rows, notes = [], []
    for case, launchers in found.items():
        for name, values in launchers.items():
            there = [one for one in values if not isinstance(one, str)]
            what = "fence" if there and "fence" in there[0] else "seconds"
            times = [one[what] for one in there]
            rows.append([case, name, len(there), *([f"{bench.summary(times)['median'] * 1e3:.2f} ms", f"{min(times) * 1e3:.2f} ms"]
                                                   if what == "fence" and times else [bench.pair(times), bench.seconds(min(times, default=None))]),
                         ratio(launchers["hvdrun"], values, what) if name != "hvdrun" else "",
                         ratio(launchers["hvdrun"], values, "cpu") if local and name != "hvdrun" else "", len(values) - len(there)])
            notes += [f"- {case}, {name}: {value}" for value in values if isinstance(value, str)][:1]
    head = ["case", "launcher", "n", "median / worst", "best", "hvdrun's time / this", "hvdrun's processor time / this", "failed"]
    return bench.table(head, rows) + ("\n\n" + "\n".join(notes) if notes else "")


def memory_table(found, size):
    rows = [[name, *(f"{value / 1024:.1f}" for value in sorted(values))] for name, values in found.items()]
    best = min(found["hvdrun"], default=0) / 1024
    met = "met" if best < MEMORY_GOAL_MIB else "NOT met"
    return (bench.table(["launcher", "least", "", "most"], rows) +
            (f"\n\nGoal (below {MEMORY_GOAL_MIB} MiB) {met}." if size == MEMORY_NP else ""))


def sizes(text):
    return [int(word) for word in text.split(",")]


PARTS = ("here", "memory", "hosts", "slurm")


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--sizes", type=sizes, default=list(SIZES), help="numbers of ranks (2,8,32)")
    parser.add_argument("--memory-np", type=int, default=MEMORY_NP)
    parser.add_argument("--part", choices=PARTS, action="append", help="runs only this part; may be repeated")
    for what in ("hosts", "slurm", "job"):
        parser.add_argument(f"--in-the-{what}", action="store_true", help="used by the program itself")
    options = parser.parse_args()
    if options.in_the_job:
        in_the_job(options)
        return
    bench.begin()
    if options.in_the_hosts or options.in_the_slurm:
        (rig_hosts if options.in_the_hosts else rig_slurm)(options)
        return
    if shutil.which("mpirun.openmpi") is None or shutil.which("mpiexec.hydra") is None:
        sys.exit("mpi_start.py: needs Open MPI's and MPICH's launchers")
    report, parts = bench.Report("mpi_start", options), options.part or PARTS
    if "here" in parts:
        found = here(options)
        report.add("MPI programs on this machine, seconds", as_table(found, local=True), "here", found)
    if "memory" in parts:
        found = memory(options)
        report.add(f"Memory of the launcher with {options.memory_np} PMIx clients, MiB", memory_table(found, options.memory_np), "memory", found)
    for part, title in (("hosts", "Open MPI over hosts of the rig"), ("slurm", "Open MPI on a Slurm node, seconds")):
        if part in parts:
            found = in_the_rig(options, f"--in-the-{part}")
            report.add(title, as_table(found), part, found)
    report.finish()


if __name__ == "__main__":
    main()
