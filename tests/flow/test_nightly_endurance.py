# SPDX-License-Identifier: Apache-2.0
"""Endurance: jobs for half an hour on eight hosts, one after the other, most of them with a fault.

Each job draws hosts, a program and a fault from a seed, which the test prints. HVDRUN_ENDURANCE_SEED repeats the
draws. The exit status must be that of the fault, and the launcher must name what the fault hit. Every host must be
clean afterwards, even before the test ends the fault. The test runs at least HVDRUN_ENDURANCE_JOBS (100) jobs, and
goes on until HVDRUN_ENDURANCE_SECONDS (1800) have passed. test_nightly_elastic.py measures the memory of a driver
that runs for long.
"""

import os
import random
import re
import signal
import sys
import time

from ground import mpi_worker, wait_until, worker
from hosts import Hosts, freeze, main, ssh_files

# ctest limit: 7200

JOBS = int(os.environ.get("HVDRUN_ENDURANCE_JOBS", "100"))
SECONDS = float(os.environ.get("HVDRUN_ENDURANCE_SECONDS", "1800"))
SEED = os.environ.get("HVDRUN_ENDURANCE_SEED") or str(random.SystemRandom().randrange(10**6))
HOSTS = range(1, 9)
NODE_TIMEOUT = 4
LOST, NOT_UP, REFUSED = 121, 122, 125


class Trial:
    """One job and what happens to it."""

    def __init__(self, test, number, rng):
        self.test, self.rng, self.job = test, rng, None
        self.hosts = sorted(rng.sample(HOSTS, rng.randint(2, len(HOSTS))))
        self.slots = {host: rng.randint(1, 3) for host in self.hosts}
        self.victim = rng.choice(self.hosts)
        self.rank = rng.randrange(self.size)
        self.gate, self.let_go = test.box.gate(f"gate-{number}")
        self.fault = rng.choice(self.faults())

    @property
    def size(self):
        return sum(self.slots.values())

    def __str__(self):
        where = ",".join(f"node{host}:{slots}" for host, slots in self.slots.items())
        return f"{self.fault.__name__}, victim node{self.victim}, rank {self.rank}, -H {where}"

    # the job

    def start(self, *words):
        options = ["--node-timeout", NODE_TIMEOUT, "--grace", 1, "--start-timeout", 60]
        hosts = ",".join(f"node{host}:{slots}" for host, slots in self.slots.items())
        self.job = self.test.ssh_start(*options, "-H", hosts, *words)

    def start_waiting(self, program="hang"):
        """Workers that wait, all of them."""
        self.start(*([worker(program), "--until", self.gate] if program == "hang" else [worker(program)]))
        self.job.wait_output("ready", count=self.size, timeout=60)

    def ends(self, *statuses, said=""):
        result = self.job.wait(90)
        self.test.assertIn(result.status, statuses, result.describe())
        if said and result.status != 0:
            self.test.expect_said(result, said)
        return result

    def completes(self):
        self.let_go()
        self.test.assertEqual(self.ends(0).stdout.count("done"), self.size, "lines were lost")

    def a_worker(self):
        """A rank and its process, on the victim."""
        return self.rng.choice(sorted(self.test.host(self.victim).workers().items()))

    # without a fault

    def nothing(self):
        self.start_waiting()
        self.completes()

    def horovod(self):
        self.start(worker("horovod_worker"))
        sums = set(re.findall(r"rank (\d+) of \d+: sum \d+", self.ends(0).stdout))
        self.test.assertEqual(len(sums), self.size)

    def mpi(self):
        # not mpich: over UCX it can spin in MPI_Finalize between hosts, under its own launcher too (docs/mpi.md)
        self.start(mpi_worker("mpi_ring", "openmpi"))
        self.ends(0)

    # faults of the program

    def exit(self):
        code = self.rng.choice([1, 7, 120, 255])
        self.start(worker("exit_with"), f"{self.rank}:{code}:{self.rng.randint(0, 300)}")
        self.test.expect_blame(self.ends(code), self.rank, code=code)

    def kill_worker(self):
        program, number = self.rng.choice([("hang", signal.SIGKILL), ("hang", signal.SIGSEGV), ("hang", signal.SIGABRT), ("stubborn", signal.SIGKILL)])
        self.start_waiting(program)
        rank, process = self.a_worker()
        os.kill(process.pid, number)
        self.test.expect_blame(self.ends(128 + number), rank, signal_number=number, host=f"node{self.victim}")

    def daemons(self):
        kind = self.rng.choice(["child", "daemon", "closed"])
        self.start(worker("orphan"), "--kind", kind, "--code", 3)
        self.ends(3)

    # faults of hosts and the network

    def kill_agent(self):
        self.start_waiting(self.rng.choice(["hang", "stubborn"]))
        os.kill(self.test.host(self.victim).agent().pid, signal.SIGKILL)
        self.ends(LOST, said=rf"node{self.victim}\b")

    def freeze_agent(self):
        self.start_waiting()
        freeze(self.test.host(self.victim).agent())
        self.ends(LOST, said=rf"node{self.victim}\b")

    def crash(self):
        self.start_waiting()
        self.test.host(self.victim).crash()
        self.ends(LOST, said=rf"node{self.victim}\b")

    def power_off(self):
        self.start_waiting()
        self.test.host(self.victim).power_off()
        self.ends(LOST, said=rf"node{self.victim}\b")

    def cut(self):
        self.start_waiting()
        self.test.host(self.victim).cut()
        self.ends(LOST, said=rf"node{self.victim}\b")

    def short_cut(self):
        """Shorter than --node-timeout: nobody is lost."""
        self.start_waiting()
        self.test.host(self.victim).cut()
        self.test.pause(self.rng.uniform(0.1, 1.5))
        self.test.host(self.victim).heal()
        self.completes()

    def slow(self):
        self.test.host(self.victim).slow("20mbit")
        self.start_waiting()
        self.completes()

    def crash_at_any_time(self):
        """Also while it comes up or ends: then who comes too late changes nothing."""
        self.start(worker("hang"), "--until", self.gate)
        self.test.pause(self.rng.uniform(0, 0.8))
        if self.rng.random() < 0.3:
            self.let_go()
        self.test.host(self.victim).crash()
        wait_until(lambda: self.job.popen.poll() is not None, "the job ends", 90)
        self.ends(*([LOST, REFUSED] + ([0] if os.path.exists(self.gate) else [])), said=rf"node{self.victim}\b")

    def refuse(self):
        self.test.host(self.victim).refuse()
        self.start(worker("hang"))
        self.ends(REFUSED, said=rf"node{self.victim}\b.*refused")

    def drop(self):
        self.test.host(self.victim).drop()
        self.start("--start-timeout", 3, worker("hang"))
        self.ends(NOT_UP, said=rf"node{self.victim}\b")

    # the user, and the driver

    def interrupt(self):
        self.start_waiting()
        number = self.rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
        self.job.signal(number)
        self.ends(128 + number)

    def interrupt_at_any_time(self):
        self.start(worker("hang"))
        self.test.pause(self.rng.uniform(0, 0.8))
        self.job.signal(signal.SIGTERM)
        self.ends(128 + signal.SIGTERM, -signal.SIGTERM)  # the latter before it catches signals

    def kill_driver_at_any_time(self):
        self.start(worker(self.rng.choice(["hang", "stubborn"])))
        self.test.pause(self.rng.uniform(0, 1.5))
        self.job.signal(signal.SIGKILL)
        self.ends(-signal.SIGKILL)

    def faults(self):
        return [self.nothing, self.horovod, self.mpi, self.exit, self.kill_worker, self.daemons, self.kill_agent, self.freeze_agent,
                self.crash, self.power_off, self.cut, self.short_cut, self.slow, self.crash_at_any_time, self.refuse, self.drop,
                self.interrupt, self.interrupt_at_any_time, self.kill_driver_at_any_time]


class Endurance(Hosts):

    count = len(HOSTS) + 1
    left_timeout = 30

    def run_trial(self, number, rng):
        trial = Trial(self, number, rng)
        try:
            trial.fault()
            # a host that is cut off learns of it by its own silence, and cleans itself
            self.check_hosts(timeout=30)
            self.box.check_nothing_left(self.left_timeout)
        except Exception as error:
            raise AssertionError(f"{error}\nseed {SEED}, job {number}: {trial}{trial.job.describe() if trial.job else ''}") from error
        finally:
            self.rig.restore()
        self.write_known_hosts("".join(ssh_files.known_hosts_lines(f"{host.name},{host.address}") for host in self.rig.hosts))
        self.box.jobs.remove(trial.job)
        trial.job.close()
        return trial.fault.__name__

    def test_consecutive_jobs(self):
        print(f"seed {SEED} ... ", end="", file=sys.stderr, flush=True)
        rng, counts, began = random.Random(SEED), {}, time.monotonic()
        while sum(counts.values()) < JOBS or time.monotonic() < began + SECONDS:
            name = self.run_trial(sum(counts.values()), random.Random(rng.random()))
            counts[name] = counts.get(name, 0) + 1
        print(f"{sum(counts.values())} jobs: {', '.join(f'{n} {name}' for name, n in sorted(counts.items()))} ... ",
              end="", file=sys.stderr, flush=True)

    def pause(self, seconds):
        time.sleep(seconds)


if __name__ == "__main__":
    main()
