# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of one process of hvdrun at a random moment, after which nothing may remain (D6).

A round has a kind of job, a moment and a victim. The moment is between the job's first instruction and
a little after its usual end. The victim is the driver, or one of the agents and keepers that run then.
All three come from the seed and the number of the round, which a failure names. HVDRUN_SIGKILL=SEED:NUMBER
repeats that round alone. The moment is then the same, but what the machine does at that moment is not.
"""

import ctypes
import glob
import os
import random
import re
import signal
import subprocess
import sys
import time

from elastic import Elastic
from ground import mpi_worker, patient, worker
from procfs import descendants, process
from rig import Flow
from test_keeper import RELAY, Host

_CLONE_NEWNS = 0x20000
SHM = "/dev/shm"
# A search for leaks has a process of its own at the end; when that is hit, LeakSanitizer waits for ever.
NO_LEAKS = {"ASAN_OPTIONS": "detect_leaks=0"}
KEPT = re.compile(r"/hvdrun-\d+(/(hvdrun-agent|checked)-[^/]+)?$")


def private_shm():
    """Gives this process, and all that it starts, a /dev/shm of their own; whether it could."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS) != 0:
        return False
    return all(subprocess.run(command, capture_output=True, check=False).returncode == 0
               for command in (["mount", "--make-rprivate", "/"], ["mount", "-t", "tmpfs", "none", SHM]))


class Sigkill(Elastic, Flow):

    alone = False  # whether /dev/shm is ours alone, so that all in it is of the job
    left_timeout = 20

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.alone = private_shm()

    def setUp(self):
        super().setUp()
        self.host = Host(self.box, env=NO_LEAKS)
        self.addCleanup(self.host.close)
        self.relay = self.write("relay.py", RELAY)
        litter = self.box.litter
        self.box.litter = lambda: litter() + self.host_litter()

    def host_litter(self):
        """What is left on the far host, but the agent's image, which is kept for the next job."""
        return [os.path.join(folder, name) for folder, folders, files in os.walk(self.host.tmp)
                for name in folders + files if not KEPT.search(os.path.join(folder, name))]

    # the kinds of jobs; each ends by itself within a second

    def plain(self):
        return ["-np", 4, worker("exit_with"), "all:0:150"]

    def hosts(self):
        return ["-H", "a:2,b:2,c:2", "--transport", "local", worker("exit_with"), "all:0:150"]

    def mpi(self):
        return ["-np", 2, mpi_worker("mpi_hello", "openmpi"), 100]

    def elastic(self):
        return ["--transport", "local", *self.discover("a:1", "b:1"), "--min-np", 2, worker("exit_with"), "all:0:150"]

    def far(self):
        """Agents under keepers, on a host that is not below the driver."""
        return ["-H", "a:2,b:2", "--launch-agent", f"{sys.executable} {self.relay} {self.host.path} %h",
                worker("exit_with"), "all:0:150"]

    def stubborn(self):
        return ["-np", 2, worker("exit_with"), "all:0:150:ignore", ":", "-np", 1, worker("orphan"), "--kind", "closed",
                ":", "-np", 1, worker("orphan"), "--kind", "daemon", ":", "-np", 1, worker("stop"), "--kind", "daemon"]

    kinds = ("plain", "hosts", "mpi", "elastic", "far", "stubborn")

    def begin(self, kind):
        env = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none", **NO_LEAKS}
        return self.start("--grace", "300ms", "--drain-timeout", "100ms", "--elastic-timeout", 5, *getattr(self, kind)(), env=env)

    def usual_length(self, kind):
        """In seconds, undisturbed; of the second, when the first has left its image of the agent."""
        for _ in range(2 if kind == "far" else 1):
            began = time.monotonic()
            self.expect(self.begin(kind).wait(), 0)
        return time.monotonic() - began

    # one round

    def victims(self, job):
        """The driver, and whoever else of us is there."""
        return [job.pid] + [one.pid for one in descendants(job.pid) + self.host.processes() if one.state != "Z" and
                            os.path.basename(one.exe()).startswith("hvdrun")]

    def strike(self, job, rng):
        """Kills one; returns who it was: "driver", "agent", or "nobody" when all was over."""
        driver_first = rng.random() < 0.4
        victims = self.victims(job)
        victim = victims[0] if driver_first or len(victims) == 1 else victims[1 + rng.randrange(len(victims) - 1)]
        if job.popen.poll() is not None or process(victim) is None:
            return "nobody"
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            return "nobody"
        return "driver" if victim == job.pid else "agent"

    def shared_memory(self):
        found = []
        if self.alone:
            for folder, _, files in os.walk(SHM):
                found += [os.path.join(folder, name) for name in files]
        return found

    def judge(self, job, kind, who):
        result = job.wait()
        if who == "driver":
            self.assertIn(result.status, (0, -signal.SIGKILL), result.describe())
            if result.status != 0:  # the record of a short job goes before its socket, which the next command removes
                for kind in ("*.control", "*.new"):
                    for socket in glob.glob(os.path.join(self.box.jobs_folder(), kind)):
                        os.unlink(socket)
        else:  # It may have done its part. A child before its exec is one of us too: it was to become a rank (137), or
            # the way to a host (125). An elastic job lives on, or has too few hosts left.
            more = {"elastic": (123,), "far": (125,)}.get(kind, ())
            self.assertIn(result.status, (0, 121, 137, *more), result.describe())
        self.box.check_nothing_left(self.left_timeout)
        deadline = time.monotonic() + patient(self.left_timeout)
        while self.shared_memory() and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual(self.shared_memory(), [])
        return result.status

    def rounds(self, seed, numbers, kinds=None):
        """Plays these rounds; what each hit is printed in the end."""
        kinds = kinds or self.kinds
        lengths, hits = {kind: self.usual_length(kind) for kind in kinds}, {}
        for number in numbers:
            rng = random.Random(f"{seed}:{number}")
            kind = rng.choice(kinds)
            after = rng.uniform(0, 1.1) * lengths[kind]
            with self.subTest(replay=f"HVDRUN_SIGKILL={seed}:{number}", kind=kind, after=round(after, 4)):
                job = self.begin(kind)
                time.sleep(after)
                who = self.strike(job, rng)
                status = self.judge(job, kind, who)
                key = f"{kind} {who} -> {status}"
                hits[key] = hits.get(key, 0) + 1
            for job in self.box.jobs:
                job.close()
            self.box.jobs.clear()
        print(f"seed {seed}: " + ", ".join(f"{hits[key]} x {key}" for key in sorted(hits)), flush=True)

    def wanted(self, seed, count):
        """The rounds of this run, or the one that HVDRUN_SIGKILL names."""
        text = os.environ.get("HVDRUN_SIGKILL", "")
        if text:
            seed, number = text.split(":")
            return seed, [int(number)]
        return seed, range(count)
