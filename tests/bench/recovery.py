#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long does an elastic job of 4 ranks on 2 hosts need to recover from a loss? How long does a job of 2 ranks on 2
hosts need to grow to 4 ranks on 3? The worker stands in for @hvd.elastic.run, with steps of 5 ms and a commit every
5 steps. The clock starts just before the signal, the crash, or the change of the host list. Every value comes from a
new job, and the kinds of events take turns. The second table shows how long the survivors pause when a new process
imports for 0 s and for 5 s. It compares jobs with and without --rejoin together.

  notice      the launcher's event: worker_exit, node_lost, or agent_up of the new host (its agent is
              connected; on the rig, the driver first copied the agent to the host)
  asked       the last survivor has asked for its new rank
  answered    the last survivor has its new rank
  first step  every survivor has made its first step in the new epoch
  all ranks   every rank, also the workers that were started for the lost ones, has made its first step
  lag         the time that the launcher itself needs: from the last request, or from the notice if that
              comes later, to the last answer. Target: 0.1 s (plus the time of a spawn, if there is one)
  next step   the last survivor has made its next step
  pause       the longest time between two steps of a survivor
"""

import json
import os
import random
import subprocess
import sys
import time

import bench
import worlds

FIRST = ("-H", "{0}:2,{1}:2", "--min-np", "2")
GROW = ("-np", "2", "--min-np", "2", "--max-np", "4")
ADDED = (*GROW, "--hosts-watch", "LIST", "--grow-delay", "0")
IMPORTS = (0, 5)  # s
STILL = 0.15  # s; target
TAIL = 0.3  # s; after the last change


class Event:
    """One kind of event: how the job starts, what happens, which ranks remain, and how many there are at last."""

    def __init__(self, name, args, act, notice, after, lost=(), before=4, gloo=30, prelude=0):
        self.name, self.args, self.act, self.notice, self.after = name, args, act, notice, after
        self.lost, self.before, self.gloo, self.prelude = lost, before, gloo, prelude
        self.starts = after - before + len(lost)


def kill(world, _, members):
    pid = world.pid(members[3])
    moment = time.monotonic()
    os.kill(pid, 9)
    return moment


def crash(world, _, members):
    moment = time.monotonic()
    world.crash(members, world.host(1))
    return moment


def silence(world, _, members):
    moment = time.monotonic()
    world.silence(members, world.host(1))
    return moment


def add(world, run, _):
    moment = time.monotonic()
    run.set_hosts(f"{world.host(0)}:1", f"{world.host(2)}:1", f"{world.host(1)}:2")
    return moment


def kinds_of(world):
    """The launcher notices a silent host after --node-timeout. On the rig, the workers' own timeout (Gloo's) is
    shorter, so that the workers wait for the launcher and the result shows the launcher's time."""
    silent = "host powered off" if isinstance(world, worlds.RigHosts) else "host hangs"
    return [
        Event("worker killed", FIRST, kill, "worker_exit", after=4, lost=(3,)),
        Event("worker killed, its slot is blacklisted", FIRST, kill, "worker_exit", after=3, lost=(3,), prelude=2),
        Event("host crashes", FIRST, crash, "node_lost", after=2, lost=(2, 3)),
        Event("host crashes, a spare takes over", ("-np", "4", "-H", "{0}:2,{1}:2,{2}:2", "--min-np", "2", "--spares", "1"),
              crash, "node_lost", after=4, lost=(2, 3)),
        Event(silent + ", --node-timeout 5s (default)", FIRST, silence, "node_lost", after=2, lost=(2, 3), gloo=2),
        Event(silent + ", --node-timeout 2s", (*FIRST, "--node-timeout", "2s"), silence, "node_lost", after=2,
              lost=(2, 3), gloo=1),
        Event("host added, script every 1 s, --grow-delay 1s (defaults)", (*GROW, "--host-discovery-script", "SCRIPT"),
              add, "agent_up", after=4, before=2),
        Event("host added, --hosts-watch, --grow-delay 0", ADDED, add, "agent_up", after=4, before=2),
    ]


def notice_of(kind, world, run, moment):
    wanted = {} if kind.notice == "worker_exit" else {"host": world.host(1)}
    return run.event(kind.notice, moment, **wanted)["at"] - moment


def first_of(run, what, moment, members, until):
    """Takes each member's last stamp of a kind between two moments. Returns the latest of them, and whether any member
    had two."""
    mine = {}
    for one in run.stamps.since(moment, what):
        if one.time <= until:
            mine.setdefault((one.group, one.pid), []).append(one.time)
    times = [mine[(member.host, member.pid)] for member in members]
    return max(each[-1] for each in times) - moment, max(map(len, times)) > 1


def steps_of(run, member, since):
    """The times of its stamped steps after a moment."""
    return [one.time for one in sorted(run.stamps.update(), key=lambda one: one.time)
            if one.what in ("first-step", "step") and (one.group, one.pid) == (member.host, member.pid) and one.time > since]


def measure(world, kind):
    """One job, one event."""
    hosts = [world.host(number) for number in range(3)]
    with worlds.Run(world) as run:
        run.set_hosts(f"{hosts[0]}:1", f"{hosts[2]}:1")
        run.start([word.format(*hosts) for word in kind.args], ["--steps", 1000000, "--step-ms", 5, "--commit", 5], kind.gloo)
        members, _ = run.members(kind.before)
        if kind.act is add:
            world.forget(hosts[1])
        for _ in range(kind.prelude):
            time.sleep(0.2)
            moment = kill(world, run, members)
            members, _ = run.members(4, since=moment, among=[members[rank] for rank in range(3)])
        time.sleep(random.uniform(0.3, 1.3))
        moment = kind.act(world, run, members)
        survivors = [member for rank, member in members.items() if rank not in kind.lost]
        _, whole = run.members(kind.after, since=moment, among=survivors)
        last_step = max(steps_of(run, member, moment)[0] for member in survivors)
        asked, twice = first_of(run, "asked", moment, survivors, last_step)
        answered, _ = first_of(run, "answered", moment, survivors, last_step)
        notice = notice_of(kind, world, run, moment)
        epoch = run.event("epoch", moment)
        lag = answered - (asked if kind.act is add else max(asked, notice))
        return {"notice": notice, "asked": asked, "answered": answered, "first_step": last_step - moment,
                "whole": whole - moment, "lag": lag, "asked_twice": twice, "phases": epoch.get("phases"), "size": epoch.get("size")}


def run_rounds(world, options):
    """{name of the kind: [sample]}. The kinds take turns."""
    kinds = [kind for kind in kinds_of(world) if not options.only or options.only in kind.name]
    found = {kind.name: {"starts": kind.starts, "samples": [], "failed": []} for kind in kinds}
    for number in range(options.rounds):
        for kind in kinds:
            bench.say(f"{world.name}, round {number + 1} of {options.rounds}: {kind.name}")
            try:
                found[kind.name]["samples"].append(measure(world, kind))
            except (AssertionError, OSError) as error:
                found[kind.name]["failed"].append(str(error)[-3000:])
                bench.say(f"FAILED: {str(error)[:3000]}")
            world.restore()
    return found


def as_table(found):
    rows = []
    for name, kind in found.items():
        samples = kind["samples"]
        columns = [bench.pair([one[key] for one in samples])
                   for key in ("notice", "asked", "answered", "first_step", "whole", "lag")]
        late = sum(one["lag"] > 0.1 for one in samples)
        verdict = "-" if not samples else "met" if not late else f"missed in {late}"
        rows.append([name, f"{len(samples)}" + (f" ({len(kind['failed'])} failed)" if kind["failed"] else ""),
                     kind["starts"] or "none", *columns, verdict])
    return bench.table(["event", "n", "started", "notice", "asked", "answered", "first step", "all ranks", "lag", "lag <= 0.1 s"], rows)


# how long the survivors stand still

def pause_kinds():
    """[(name, rejoin, seconds of an import, event)]"""
    kill_one = Event("worker killed", FIRST, kill, "worker_exit", after=4, lost=(3,))
    add_one = Event("host added", ADDED, add, "agent_up", after=4, before=2)
    return [(event.name, rejoin, seconds, event) for event in (kill_one, add_one) for seconds in IMPORTS
            for rejoin in ("early", "together")]


def stand_still(world, kind, rejoin, seconds):
    """One job, one event."""
    hosts = [world.host(number) for number in range(3)]
    with worlds.Run(world) as run:
        run.set_hosts(f"{hosts[0]}:1", f"{hosts[2]}:1")
        run.start([*(word.format(*hosts) for word in kind.args), "--rejoin", rejoin],
                  ["--steps", 1000000, "--step-ms", 5, "--commit", 5, "--stamp-steps", "--import-ms", 1000 * seconds])
        members, _ = run.members(kind.before)
        time.sleep(random.uniform(0.3, 1.3))
        moment = kind.act(world, run, members)
        survivors = [member for rank, member in members.items() if rank not in kind.lost]
        _, whole = run.members(kind.after, since=moment, among=survivors)
        time.sleep(TAIL)
        steps = [[moment, *steps_of(run, member, moment)] for member in survivors]
        return {"next_step": max(times[1] for times in steps) - moment, "whole": whole - moment,
                "pause": max(later - earlier for times in steps for earlier, later in zip(times, times[1:]))}


def compare_pauses(world, options):
    """{(name, rejoin, import): [sample]}. The kinds take turns."""
    kinds = [kind for kind in pause_kinds() if not options.only or options.only in kind[0]]
    found = {kind[:3]: [] for kind in kinds}
    for number in range(options.rounds):
        for name, rejoin, seconds, event in kinds:
            bench.say(f"pauses, round {number + 1} of {options.rounds}: {name}, {rejoin}, import of {seconds} s")
            found[(name, rejoin, seconds)].append(stand_still(world, event, rejoin, seconds))
    return found


def pauses_table(found):
    rows = []
    for (name, rejoin, seconds), samples in found.items():
        key = "pause" if name == "host added" else "next_step"  # what the target limits
        late = sum(one[key] > STILL for one in samples)
        columns = [bench.pair([one[each] for one in samples]) for each in ("next_step", "pause", "whole")]
        rows.append([name, f"{seconds} s", rejoin, len(samples), *columns, "met" if not late else f"missed in {late}"])
    return bench.table(["event", "import", "--rejoin", "n", "next step", "pause", "all ranks", f"target {STILL} s"], rows)


def in_the_rig(options):
    """Runs this program in a box. Returns its results, or a line that says why there are none."""
    argv = [sys.executable, "-B", os.path.abspath(__file__), "--in-the-rig", "--rounds", str(options.rounds)]
    argv += ["--only", options.only] if options.only else []
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
    last = done.stdout.strip().split("\n")[-1]
    return json.loads(last) if done.returncode == 0 else f"not run: {last or 'it ended with ' + str(done.returncode)}"


def rig_main(options):
    import entrance
    from ground import BUILD, HVDRUN, SOURCE, WORKERS
    if "HVDRUN_RIG_KEEPER" not in os.environ:
        entrance.enter([SOURCE, BUILD, os.path.dirname(HVDRUN), WORKERS])
    print(json.dumps(run_rounds(worlds.RigHosts(4), options)))


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="values of each kind (10)")
    parser.add_argument("--only", help="only kinds of events whose name contains this")
    parser.add_argument("--where", choices=["local", "pauses", "rig", "all"], default="all")
    parser.add_argument("--in-the-rig", action="store_true", help="used by the program itself")
    options = parser.parse_args()
    bench.begin()
    if options.in_the_rig:
        rig_main(options)
        return
    report = bench.Report("recovery", options)
    note = "Seconds, median / worst. Started: how many workers of the new epoch are new processes.\n\n"
    if options.where in ("local", "all"):
        found = run_rounds(worlds.Simulated(), options)
        report.add("Simulated hosts (--transport local)", note + as_table(found), "local", found)
    if options.where in ("pauses", "all"):
        pauses = compare_pauses(worlds.Simulated(), options)
        report.add("How long the survivors stand still (simulated hosts)", "Seconds, median / worst.\n\n" + pauses_table(pauses),
                   "pauses", {"; ".join(map(str, kind)): samples for kind, samples in pauses.items()})
    if options.where in ("rig", "all"):
        found = in_the_rig(options)
        text = found if isinstance(found, str) else note + as_table(found)
        report.add("Rig hosts (ssh, network namespaces)", text, "rig", found)
    report.finish()


if __name__ == "__main__":
    main()
