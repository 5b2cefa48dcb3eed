# SPDX-License-Identifier: Apache-2.0
"""The soak: an elastic training on eight hosts, with faults of every kind for half an hour.

The faults are random and last for HVDRUN_SOAK_SECONDS (1800). The test prints their seed, and HVDRUN_SOAK_SEED
repeats them as far as a test with real processes can. Now and then the test ends all faults. The job must then
return to its full size on its own. Nothing from before may remain on a host, and the driver must not have grown. At
the end, the result is that of an undisturbed training, and every host is clean.
"""

import json
import os
import random
import signal
import sys
import time

from elastic import Elastic, Training
from ground import WORKERS, patient, sanitized, wait_until, worker
from hosts import Hosts, main
from procfs import process

# ctest limit: 3600

SECONDS = float(os.environ.get("HVDRUN_SOAK_SECONDS", "1800"))
SEED = os.environ.get("HVDRUN_SOAK_SEED") or str(random.SystemRandom().randrange(10**6))
HOSTS = range(1, 1 + int(os.environ.get("HVDRUN_SOAK_HOSTS", "8")))
SLOTS = 2  # of each host, in fair weather
SOUND = 5  # the program never crashes on this host, else it would be the program's fault
CRASHES, CRASHES_WITHIN = 2, 620  # of the program on one host: fewer than strikes, and their decay in s
UNTOUCHED = 2  # so many hosts are left alone at any time
FAULTS_BETWEEN_CALMS = 12
GROWTH_KB = 3072  # what allocator, report and last events may take; a leak per fault would be more


class Storm:
    """What happens to the hosts. A fault returns how it is healed; None: by itself; False: it could not be."""

    def __init__(self, test, job, rng):
        self.test, self.job, self.rng = test, job, rng
        self.slots = {number: SLOTS for number in HOSTS}
        self.unlisted, self.broken_discovery = set(), False
        self.troubled = {}  # number, or "network", "discovery": (when it is healed, how)
        self.crashes = {number: [] for number in HOSTS}
        self.began, self.journal = time.monotonic(), []

    def note(self, text):
        self.journal.append(f"{time.monotonic() - self.began:7.1f} s  {text}")

    # faults

    def workers(self, number):
        return [one for one in self.test.host(number).processes() if one.exe().startswith(WORKERS + os.sep)]

    def _signal_worker(self, number, signum):
        now, crashes = time.monotonic(), self.crashes[number]
        crashes[:] = [when for when in crashes if now - when < CRASHES_WITHIN]
        there = self.workers(number)
        if number == SOUND or len(crashes) >= CRASHES or not there:
            return False
        crashes.append(now)
        os.kill(self.rng.choice(there).pid, signum)
        return None

    def kill_worker(self, number):
        return self._signal_worker(number, signal.SIGKILL)

    def freeze_worker(self, number):
        return self._signal_worker(number, signal.SIGSTOP)

    def _signal_agent(self, number, signum):
        if not self.test.host(number).agents():
            return None
        pid = self.test.host(number).agent().pid
        try:
            os.kill(pid, signum)
        except ProcessLookupError:
            return None
        return pid

    def kill_agent(self, number):
        return None if self._signal_agent(number, signal.SIGKILL) else False

    def freeze_agent(self, number):
        pid = self._signal_agent(number, signal.SIGSTOP)

        def thaw():
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        return thaw if pid else False

    def terminate_agent(self, number):
        return (lambda: self.ask("undrain", number)) if self._signal_agent(number, signal.SIGTERM) else False

    def ask(self, word, number, *more):
        done = self.test.start(word, f"node{number}", *more).wait()
        self.test.assertIn(done.status, (0, 1), done.describe())  # 1: it is not listed at present

    def drain(self, number):
        self.ask("drain", number, *self.rng.choice([[], ["--within", "3s"], ["--within", "1h"]]))
        return lambda: self.ask("undrain", number)

    def crash(self, number):
        self.test.host(number).crash()
        return self.test.host(number).power_on

    def power_off(self, number):
        self.test.host(number).power_off()
        return self.test.host(number).power_on

    def cut(self, number):
        self.test.host(number).cut()
        return self.test.host(number).heal

    def lose_packets(self, number):
        self.test.rig.loss(20, number)

        def heal():
            self.test.rig.rules.clear()
            self.test.rig.add_rules()
        return heal

    def unlist(self, number):
        self.unlisted.add(number)
        self.write_hosts()

        def heal():
            self.unlisted.discard(number)
            self.write_hosts()
        return heal

    def change_slots(self, number):
        self.slots[number] = self.rng.choice([1, 3])
        self.write_hosts()

        def heal():
            self.slots[number] = SLOTS
            self.write_hosts()
        return heal

    def break_discovery(self, _):
        os.unlink(self.test.box.path("hosts"))
        self.broken_discovery = True

        def heal():
            self.broken_discovery = False
            self.write_hosts()
        return heal

    def write_hosts(self):
        if not self.broken_discovery:
            self.test.set_hosts(*(f"node{number}:{count}" for number, count in self.slots.items() if number not in self.unlisted))

    # the weather

    def faults(self):
        """(fault, whose trouble it is if not the host's)"""
        host = [self.kill_worker, self.kill_worker, self.freeze_worker, self.kill_agent, self.freeze_agent, self.terminate_agent, self.drain,
                self.drain, self.crash, self.power_off, self.cut, self.unlist, self.change_slots]
        return [(fault, None) for fault in host] + [(self.lose_packets, "network"), (self.break_discovery, "discovery")]

    def strike(self):
        """One fault, somewhere."""
        fault, whose = self.rng.choice(self.faults())
        sound = [number for number in HOSTS if number not in self.troubled]
        if whose in self.troubled or (whose is None and len(sound) <= UNTOUCHED):
            return
        number = self.rng.choice(sound)
        heal = fault(number)
        if heal is not False:  # there was something to hit
            self.note(f"{fault.__name__}{'' if whose == 'discovery' else f' node{number}'}")
        if heal:
            self.troubled[number if whose is None else whose] = (time.monotonic() + self.rng.uniform(0.5, 12), heal)

    def crash_everything(self):
        self.heal(everything=True)
        self.note("every host crashes")
        for number in HOSTS:
            self.troubled[number] = (time.monotonic() + self.rng.uniform(0, 5), self.crash(number))

    def heal(self, everything=False):
        for key, (when, heal) in list(self.troubled.items()):
            if everything or when <= time.monotonic():
                self.note(f"healed: {key}")
                heal()
                del self.troubled[key]


class Soak(Elastic, Hosts):

    count = len(HOSTS) + 1
    left_timeout = 30

    def process_of(self, member):
        raise NotImplementedError("faults choose processes on their host")

    def start_training(self, steps):
        options = self.discover(*(f"node{number}:{SLOTS}" for number in HOSTS))
        gate, let_go = self.box.gate("may-end")
        events = self.box.path("events")
        job = self.ssh_start(
            "-np", 4, "--min-np", 2, "--max-np", SLOTS * len(HOSTS), *options, "--on-failure", "rejoin", "--node-timeout", 3,
            "--rejoin-timeout", "8s", "--grow-delay", "500ms", "--blacklist-cooldown-range", 1, 4, "--grace", 1,
            "--events", events, "--report", self.box.path("report"), worker("elastic_horovod"), "--steps", steps,
            "--commit", 10, "--step-ms", 20, "--until", gate, "--alarm", int(patient(2 * SECONDS + 600)),
            env={"HOROVOD_GLOO_TIMEOUT_SECONDS": "10"})
        return Training(self, job, steps, let_go, events)

    # calm

    def status(self):
        done = self.start("status", "--json").wait()
        self.box.jobs.pop()  # one of very many
        return json.loads(done.stdout) if done.status == 0 else {}

    def is_whole(self, job):
        """All ranks that there can be train together, and nobody else is there."""
        if job.popen.poll() is not None:
            raise AssertionError("the job has ended")
        size, status = SLOTS * len(HOSTS), self.status()
        if (status.get("state"), status.get("size")) != ("running", size):
            return False
        last = job.said()[-size:]
        if sorted(one.rank for one in last) != list(range(size)) or len({(one.round, one.size) for one in last}) != 1:
            return False
        return all(len(self.storm.workers(number)) == SLOTS and len(self.host(number).agents()) == 2 for number in HOSTS)

    def measure(self, job):
        """Memory of the driver, and its descriptors when it does nothing."""
        folder = f"/proc/{job.pid}/fd"
        return process(job.pid).rss_kb(), min(len(os.listdir(folder)) for _ in range(20) if not self.pause(0.03))

    def calm(self, job):
        self.storm.heal(everything=True)
        for number in HOSTS:
            self.storm.ask("undrain", number)
        self.storm.note("all is healed")
        wait_until(lambda: self.is_whole(job), "the job comes back to its full size", 120)
        sample = self.measure(job)
        self.storm.note(f"the job is whole again; the driver has {sample[0]} kB, {sample[1]} descriptors")
        return sample

    def check_samples(self, samples):
        third = len(samples) // 3
        if third == 0:
            return
        memory, files = ([[sample[kind] for sample in part] for part in (samples[:third], samples[-third:])] for kind in (0, 1))
        if not sanitized():  # which keeps what was freed for a while
            self.assertLessEqual(max(memory[1]), max(memory[0]) + GROWTH_KB, f"the driver grows: {samples}")
        self.assertLessEqual(min(files[1]), min(files[0]) + 1, f"the driver keeps descriptors: {samples}")

    # the storm

    def weather(self, job, rng):
        end, faults, samples, crashed = self.storm.began + SECONDS, 0, [self.calm(job)], SECONDS < 300
        while time.monotonic() < end:
            self.storm.strike()
            faults += 1
            self.pause(rng.uniform(0.1, 4))
            self.storm.heal()
            if not crashed and time.monotonic() > self.storm.began + SECONDS / 3:
                crashed = True
                self.storm.crash_everything()
            if faults % FAULTS_BETWEEN_CALMS == 0:
                samples.append(self.calm(job))
        samples.append(self.calm(job))
        return samples

    def test_soak(self):
        print(f"seed {SEED}, {SECONDS:.0f} s ... ", end="", file=sys.stderr, flush=True)
        rng = random.Random(SEED)
        job = self.start_training(max(60, int(6 * SECONDS)))
        self.storm = Storm(self, job, rng)
        try:
            samples = self.weather(job, rng)
            result = job.finish(timeout=SECONDS + 120, aborts=True)
        except Exception as error:
            journal = "\n".join(self.storm.journal[-60:])
            raise AssertionError(f"{error}\nseed {SEED}; what happened:\n{journal}{job.describe()}") from error
        self.check_samples(samples)
        self.expect_not_said(result, "every host|at fault")
        elastic = self.read_json(self.box.path("report"))["elastic"]
        told = [event["epoch"] for event in job.events("epoch")]  # one that a further fault cuts short is not told
        self.assertEqual(told, sorted(set(told)))
        self.assertLessEqual(len(told), elastic["epochs"])
        self.assertGreater(2 * len(told), elastic["epochs"])
        print(f"{len(samples)} calms, {elastic['epochs']} epochs, {elastic['crashes']} crashes, {elastic['hosts_lost']} hosts lost, "
              f"{elastic['preemptions']} preempted, {elastic['lost_s']:.0f} s lost, driver {' '.join(f'{kb}kB/{files}' for kb, files in samples)} ... ",
              end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
