# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs whose workers cannot rejoin: all are ended and all start again, with the hosts that
there are, another MASTER_PORT and a higher TORCHELASTIC_RESTART_COUNT. With a plain program, which is
quick, and with real torch.distributed (gloo) and the example script."""
# ctest long
# ctest waits
# ctest warm: Torch

import collections
import os
import re
import signal
import subprocess
import sys
import unittest

from elastic import Elastic
from ground import Later
from rig import SOURCE, Flow, main, nightly, plain, sanitized, wait_until

Start = collections.namedtuple("Start", "rank size restart port epoch host pid")
START = re.compile(r"start rank (\d+) of (\d+) restart (\d+) port (\d+) epoch (\d+) host (\S+) pid (\d+)")
PLAIN = """#!/bin/sh
echo "start rank $RANK of $WORLD_SIZE restart $TORCHELASTIC_RESTART_COUNT port $MASTER_PORT epoch $HVDRUN_EPOCH" \\
    "host $HVDRUN_HOSTNAME pid $$"
[ ! -e "crash-$RANK" ] || exit 7
while [ ! -e may-end ]; do sleep 0.2; done
"""


class Restart(Elastic, Flow):

    def run_plain(self, *args, **options):
        script = self.write("worker.sh", PLAIN, 0o755)
        events = self.box.path("events")
        self.events_path = events
        return self.start_elastic("--events", events, "--grace", 1, "--grow-delay", "200ms", *args, script, **options)

    def let_go(self):
        self.write("may-end", "")

    def starts(self, job, restart):
        """Those of one start of all: {rank: Start}."""
        found = {}
        for match in START.finditer(job.output()):
            one = Start(*map(int, match.groups()[:5]), match[6], int(match[7]))
            if one.restart == restart:
                self.assertNotIn(one.rank, found, Later(f"two of rank {one.rank} in one epoch", job.describe()))
                found[one.rank] = one
        return found

    def wait_start(self, job, size, restart, timeout=30):
        def there():
            found = self.starts(job, restart)
            if len(found) < size and job.popen.poll() is not None:
                raise AssertionError(f"ended too early{job.describe()}")
            return found if len(found) == size else None
        found = wait_until(there, f"{size} workers in restart {restart}", timeout)
        self.assertEqual({one.size for one in found.values()}, {size}, job.describe())
        self.assertEqual(sorted(found), list(range(size)))
        self.assertEqual(len({one.port for one in found.values()}), 1)
        self.assertEqual(len({one.epoch for one in found.values()}), 1)
        return found

    def hosts_of(self, starts):
        return [starts[rank].host for rank in sorted(starts)]

    def finish(self, job):
        self.let_go()
        return self.expect(job.wait(), 0)


class Plain(Restart):

    def test_killed_worker(self):
        job = self.run_plain("-H", "a:2,b:2", "--min-np", 2)
        first = self.wait_start(job, 4, 0)
        os.kill(first[2].pid, signal.SIGKILL)
        second = self.wait_start(job, 4, 1)
        self.assertEqual(self.hosts_of(second), self.hosts_of(first), "stable host, stable rank")
        self.assertNotEqual(second[0].port, first[0].port, "stragglers of the old epoch must not get in")
        self.assertGreater(second[0].epoch, first[0].epoch)
        for one in first.values():
            wait_until(lambda: not os.path.exists(f"/proc/{one.pid}"), "the old ones are gone")
        result = self.finish(job)
        self.expect_said(result, r"epoch 2: 4 ranks on 2 hosts")

    def test_many_restarts(self):
        job = self.run_plain("-H", "a:1,b:1", "--min-np", 1, "--max-restarts", 6)
        for count in range(5):
            started = self.wait_start(job, 2, count)
            os.kill(started[count % 2].pid, signal.SIGKILL)
        self.wait_start(job, 2, 5)
        self.finish(job)

    def test_max_restarts(self):
        job = self.run_plain("-H", "a:1,b:1", "--min-np", 1, "--max-restarts", 1)
        os.kill(self.wait_start(job, 2, 0)[1].pid, signal.SIGKILL)
        second = self.wait_start(job, 2, 1)
        os.kill(second[1].pid, signal.SIGSEGV)
        result = self.expect(job.wait(), 128 + signal.SIGSEGV)
        self.expect_said(result, "max-restarts")

    def test_no_restarts(self):
        job = self.run_plain("-H", "a:1,b:1", "--min-np", 1, "--max-restarts", 0)
        os.kill(self.wait_start(job, 2, 0)[0].pid, signal.SIGKILL)
        self.expect(job.wait(), 137)

    def test_crash_on_every_host_is_the_programs(self):
        for rank in range(3):
            self.write(f"crash-{rank}", "")
        job = self.run_plain("-H", "a:1,b:1,c:1", "--min-np", 1, "--max-restarts", 100)
        self.expect_said(self.expect(job.wait(), 7), "blacklisted|every host")

    def test_lost_host_costs_no_restart_of_the_crashes(self):
        job = self.run_plain("-np", 4, "--min-np", 2, "--max-restarts", 0, *self.discover("a:2", "b:2"))
        self.wait_start(job, 4, 0)
        self.crash_for_good(job, "b", "a:2")
        self.assertEqual(self.hosts_of(self.wait_start(job, 2, 1)), ["a", "a"])
        self.finish(job)

    def test_max_preemptions(self):
        job = self.run_plain("-np", 4, "--min-np", 2, "--max-preemptions", 0, *self.discover("a:2", "b:2"))
        self.wait_start(job, 4, 0)
        os.kill(self.agent_of(job, "b").pid, signal.SIGKILL)
        result = job.wait()
        self.assertNotIn(result.status, (0, 125), result.describe())
        self.expect_said(result, "max-preemptions")

    def test_host_added(self):
        job = self.run_plain("-np", 2, "--min-np", 2, "--max-np", 6, "--on-failure", "restart", *self.discover("a:2"))
        self.wait_start(job, 2, 0)
        self.set_hosts("a:2", "b:2")
        self.assertEqual(self.hosts_of(self.wait_start(job, 4, 1)), ["a", "a", "b", "b"])
        self.finish(job)

    def test_host_returns_and_has_its_ranks_again(self):
        job = self.run_plain("-np", 4, "--min-np", 2, "--max-np", 4, *self.discover("a:2", "b:2"))
        self.wait_start(job, 4, 0)
        self.crash_for_good(job, "a", "b:2")
        self.assertEqual(self.hosts_of(self.wait_start(job, 2, 1)), ["b", "b"])
        self.set_hosts("a:2", "b:2")
        self.assertEqual(sorted(self.hosts_of(self.wait_start(job, 4, 2))), ["a", "a", "b", "b"])
        self.finish(job)

    def test_below_min_np_waits(self):
        job = self.run_plain("-np", 4, "--min-np", 3, *self.discover("a:2", "b:2"))
        self.wait_start(job, 4, 0)
        self.crash_for_good(job, "b", "a:2")
        self.pause(1.5)
        self.assertEqual(self.starts(job, 1), {})
        self.assertIsNone(job.popen.poll(), job.describe())
        self.set_hosts("a:2", "c:1")
        self.wait_start(job, 3, 1)
        self.finish(job)

    def test_drain(self):
        job = self.run_plain("-np", 2, "--min-np", 1, *self.discover("a:1", "b:1"))
        self.wait_start(job, 2, 0)
        os.kill(self.agent_of(job, "b").pid, signal.SIGTERM)
        self.assertEqual(self.hosts_of(self.wait_start(job, 1, 1)), ["a"])
        self.finish(job)

    def test_rejoin_was_wished_but_nobody_can(self):
        # the choice is the user's: nobody registers, so the next epoch cannot be a rejoin of survivors
        job = self.run_plain("-H", "a:1,b:1", "--min-np", 1, "--on-failure", "rejoin", "--rejoin-timeout", "1s")
        os.kill(self.wait_start(job, 2, 0)[1].pid, signal.SIGKILL)
        wait_until(lambda: len(START.findall(job.output())) >= 4 or job.popen.poll() is not None, "a new epoch, or the end")
        job.signal(signal.SIGTERM)
        job.wait()

    def test_ordinary_job_is_not_elastic(self):
        job = self.run_plain("-H", "a:1,b:1")
        os.kill(self.wait_start(job, 2, 0)[1].pid, signal.SIGKILL)
        self.expect_blame(self.expect(job.wait(), 137), 1, signal_number=signal.SIGKILL)


class Torch(Restart):

    STEPS = 150
    SAID = re.compile(r"rank (\d+) of (\d+): restart (\d+), port (\d+), from step (\d+), pid (\d+)")

    @classmethod
    def setUpClass(cls):
        cls.python = None
        for path in (sys.executable, "/usr/bin/python3"):
            if os.access(path, os.X_OK) and subprocess.run([path, "-c", "import torch"], capture_output=True,
                                                           check=False).returncode == 0:
                cls.python = path
                break
        if cls.python is None:
            raise unittest.SkipTest("no torch on this machine (Debian: apt install python3-torch)")
        if sanitized():
            raise unittest.SkipTest("torch is too slow beside a sanitized launcher")

    def argv(self, *options):
        return [self.python, "-B", os.path.join(SOURCE, "examples/elastic/torch_restart.py"), "--steps", str(self.STEPS),
                "--checkpoint", self.box.path("checkpoint.pt"), *map(str, options)]

    def run_torch(self, *args):
        return self.start_elastic("--grace", 2, "--grow-delay", "200ms", *args, *self.argv("--pause", 0.03),
                                  env={"OMP_NUM_THREADS": "1"})

    def wait_said(self, job, size, restart):
        def there():
            found = [list(map(int, said)) for said in self.SAID.findall(job.output())]
            found = [one for one in found if one[1] == size and one[2] == restart]
            return sorted(found) if len(found) == size else None
        return wait_until(there, f"{size} ranks in restart {restart}", 60)

    def expect_result(self, job):
        """The final loss is that of a run alone without any fault."""
        result = self.expect(job.wait(120), 0)
        final = re.findall(rf"final loss [\d.]+ after {self.STEPS} steps", result.stdout)
        self.assertEqual(len(final), 1, result.describe())
        os.unlink(self.box.path("checkpoint.pt"))
        env = self.box.environment({"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29511})
        alone = subprocess.run(self.argv(), env=env, capture_output=True, text=True, timeout=120, check=True)
        self.assertIn(final[0], alone.stdout)
        return result

    @plain
    def test_killed_rank(self):
        job = self.run_torch("-H", "a:1,b:1", "--min-np", 1)
        first = self.wait_said(job, 2, 0)
        job.wait_output(r"step 20:", timeout=60)
        os.kill(first[1][5], signal.SIGKILL)
        second = self.wait_said(job, 2, 1)
        self.assertNotEqual(second[0][3], first[0][3], "another MASTER_PORT")
        self.assertGreaterEqual(second[0][4], 20, "goes on from its checkpoint")
        self.expect_result(job)

    @nightly("as Plain, which needs no seconds to import torch")
    def test_host_added(self):
        job = self.run_torch("-np", 1, "--min-np", 1, "--max-np", 3, *self.discover("a:1"))
        self.wait_said(job, 1, 0)
        self.set_hosts("a:1", "b:1")
        self.wait_said(job, 2, 1)
        self.expect_result(job)

    @nightly("as Plain, which needs no seconds to import torch")
    def test_host_lost(self):
        job = self.run_torch("-np", 2, "--min-np", 1, *self.discover("a:1", "b:1"))
        self.wait_said(job, 2, 0)
        self.crash_for_good(job, "b", "a:1")
        self.wait_said(job, 1, 1)
        self.expect_result(job)

    @nightly("as Plain, which needs no seconds to import torch")
    def test_max_restarts(self):
        job = self.run_torch("-H", "a:1,b:1", "--min-np", 1, "--max-restarts", 1)
        os.kill(self.wait_said(job, 2, 0)[1][5], signal.SIGKILL)
        os.kill(self.wait_said(job, 2, 1)[0][5], signal.SIGKILL)
        result = self.expect(job.wait(), 137)
        self.expect_said(result, r"rank 0: host a, pid \d+, signal 9 \(SIGKILL\)")

    @nightly("as test_exit.py, which needs no torch")
    def test_the_cause_and_not_the_first_to_exit(self):
        # rank 1 leaves the group after its exception and then waits, as a library's shutdown may
        script = self.write("ddp.py", """if True:
            import sys, time, torch, torch.distributed as dist
            dist.init_process_group("gloo")
            dist.all_reduce(torch.ones(4))
            if dist.get_rank() == 1 and sys.argv[1] == "exit":
                import os
                os._exit(0)
            if dist.get_rank() == 1:
                import atexit
                atexit.register(time.sleep, 60)
                atexit.register(dist.destroy_process_group)
                raise ValueError("row 7 is broken")
            dist.all_reduce(torch.ones(4))
            dist.all_reduce(torch.ones(4))
        """)
        for how, why in (("raise", "ValueError: row 7 is broken"), ("exit", "it exited with code 0 before its peers")):
            with self.subTest(how=how):
                result = self.run_job("-np", 3, self.python, "-B", script, how, env={"OMP_NUM_THREADS": "1"})
                self.assertEqual(result.status, 1, result.describe())
                self.expect_said(result, f"rank 1 is most likely the cause: {why}; rank [02] exited with code 1")


if __name__ == "__main__":
    main()
