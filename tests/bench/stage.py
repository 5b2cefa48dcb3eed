#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long does a folder take to all hosts of the rig? The hosts share the processors and the memory of this machine,
and their disks are in memory (tmpfs), with room for what they get. In turns, each way starts with empty hosts:

  hvdrun     a job of `true` with --stage, its start and end included; then again, with the copies there
  rsync      one rsync -a over ssh for each host, all at once; then again
  sbcast     what srun --bcast does: one file of the same size (it copies files, not folders)

The folder has one large file, and small ones beside it. CPU: of all processes on all hosts, which are here; on a busy
machine, only this says something. `--ways hvdrun,rsync` leaves ways out."""

import json
import os
import shutil
import subprocess
import sys
import time

import bench

FOLDER = "/tmp/staged"
WAYS = ("hvdrun", "rsync", "sbcast")
STORE = f"/tmp/hvdrun-stage-{os.geteuid()}"


def make_folder(path, mib, files):
    os.makedirs(path)
    with open(os.path.join(path, "large"), "wb") as file:
        for _ in range(mib):
            file.write(os.urandom(1 << 20))
    for number in range(files):
        folder = os.path.join(path, str(number // 100))
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, str(number)), "wb") as file:
            file.write(os.urandom(2000))


def cpu_s():
    """What all processes of the box have used, those included that their parents have waited for."""
    ticks = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                ticks += sum(int(word) for word in file.read().rpartition(")")[2].split()[11:15])
        except OSError:
            pass
    return ticks / os.sysconf("SC_CLK_TCK")


def timed(run):
    """{wall, cpu} or {error}."""
    before, begin = cpu_s(), time.monotonic()
    problem = run()
    wall = time.monotonic() - begin
    return {"error": problem} if problem else {"wall": wall, "cpu": cpu_s() - before}


def make_room(rig, options):
    """The rig's /tmp, and the folder that holds the source, are made for small files."""
    page_kib, own_kib = 4, 16  # a file takes whole pages, and memory of the kernel
    need = options.mib + options.files * (page_kib + own_kib) // 1024 + 64
    with open("/proc/meminfo", encoding="ascii") as file:
        free = next(int(line.split()[1]) // 1024 for line in file if line.startswith("MemAvailable:"))
    if need * (options.hosts + 1) > free:
        sys.exit(f"needs {need * (options.hosts + 1)} MiB of memory, and this machine has {free}: take a smaller --mib or --hosts")
    room = f"remount,size={max(1024, 2 * need)}m"  # until a copy that is replaced has gone
    for host in rig.hosts[1:]:
        host.run("mount", "-o", room, "/tmp")
    subprocess.run(["mount", "-o", f"remount,size={4096 + need}m", rig.top], check=True)


def together(commands, env):
    """All at once; None, or what one of them says."""
    started = [subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                text=True) for argv in commands]
    said = [(one.communicate()[1], one.returncode) for one in started]
    return next((text.strip()[-200:] or str(code) for text, code in said if code), None)


def measure(options):
    """Runs in a box of the rig."""
    import slurm
    import slurm_files
    import worlds
    from box import Box
    from ground import HVDRUN
    from hosts import Rig
    names = [f"node{number}" for number in range(1, options.hosts + 1)]
    cluster = slurm_files.missing() is None or not slurm_files.missing()
    if cluster:
        Rig.prepare = lambda rig: slurm.Cluster(rig, names, {})
    world, box = worlds.RigHosts(options.hosts + 1), Box()
    words = [str(word) for word in world.words(box)]
    config, env = words[-1], box.environment({})
    make_room(world.rig, options)
    source = box.path("src")
    make_folder(source, options.mib, options.files)
    large = os.path.join(source, "large")

    def clear():
        for host in world.rig.hosts[1:]:
            host.run("rm", "-rf", FOLDER, STORE)

    def hvdrun():
        return together([[HVDRUN, *words, "-H", ",".join(f"{name}:1" for name in names), "--stage", source, "true"]], env)

    def rsync():
        return together([["rsync", "-a", "-e", f"ssh -F {config}", source + "/", f"{name}:{FOLDER}/"] for name in names], env)

    def sbcast():
        script = box.path("job.sh")
        with open(script, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\nexec sbcast -f {large} {FOLDER}\n")
        os.chmod(script, 0o755)
        return together([["salloc", "--quiet", f"-N{options.hosts}", script]], env)

    ways = {"hvdrun": hvdrun}
    if shutil.which("rsync"):
        ways["rsync"] = rsync
    found = {}
    if cluster:
        slurm.Cluster.one.wait_idle()
        ways["sbcast"] = sbcast
    ways = {name: run for name, run in ways.items() if not options.ways or name in options.ways.split(",")}
    together([[HVDRUN, *words, "-H", ",".join(f"{name}:1" for name in names), "true"]], env)  # sends the agent
    for turn in range(options.rounds):
        bench.say(f"stage: round {turn + 1} of {options.rounds}")
        for name, run in ways.items():
            clear()
            found.setdefault(name, []).append(timed(run))
            if name != "sbcast":
                found.setdefault(f"{name}, again", []).append(timed(run))
    clear()
    world.restore()
    box.close()
    return found


def in_the_rig(options):
    argv = [sys.executable, "-B", os.path.abspath(__file__), "--in-the-rig"]
    for name in ("rounds", "mib", "files", "hosts", "ways"):
        argv += [f"--{name}", str(getattr(options, name))]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
    last = done.stdout.strip().split("\n")[-1]
    return json.loads(last) if done.returncode == 0 else sys.exit(f"stage.py: {last or done.returncode}")


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--files", type=int, default=10000)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--ways", default="", help="only these, with commas between them")
    parser.add_argument("--in-the-rig", action="store_true", help="used by the program itself")
    options = parser.parse_args()
    unknown = [way for way in options.ways.split(",") if way not in ("", *WAYS)]
    if unknown:
        sys.exit(f"stage.py: --ways: {unknown[0]!r} is none of {', '.join(WAYS)}")
    bench.begin()
    if options.in_the_rig:
        import entrance
        from ground import BUILD, HVDRUN, SOURCE
        if "HVDRUN_RIG_KEEPER" not in os.environ:
            entrance.enter([SOURCE, BUILD, os.path.dirname(HVDRUN)])
        print(json.dumps(measure(options)))
        return
    report, found, rows = bench.Report("stage", options), in_the_rig(options), []
    for name, values in found.items():
        there = [value["wall"] for value in values if "wall" in value]
        middle = bench.summary(there)["median"]
        cpu = bench.summary([value["cpu"] for value in values if "cpu" in value])["median"]
        rows.append([name, len(there), bench.pair(there), f"{cpu:.2f}" if there else "-",
                     f"{options.mib * options.hosts / middle:.0f}" if middle else "-",
                     len(values) - len(there)])
    notes = [f"- {name}: {value['error']}" for name, values in found.items() for value in values if "error" in value][:4]
    report.add(f"{options.mib} MiB and {options.files} small files to {options.hosts} hosts, seconds",
               bench.table(["way", "n", "median / worst", "CPU s", "MiB/s to all", "failed"], rows) + "\n\n" + "\n".join(notes),
               "stage", found)
    report.finish()


if __name__ == "__main__":
    main()
