# SPDX-License-Identifier: Apache-2.0
"""A word with a running job: hvdrun status, drain, undrain and add, over its control socket."""
# ctest waits

import glob
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import unittest

from elastic import Elastic
from job_commands import JobCommands
from rig import HVDRUN, main, patient, wait_until, worker

NOBODY = 65534


class Control(Elastic, JobCommands):

    def job_status(self, *words):
        return json.loads(self.ask("status", "--json", *words).stdout)

    def host_status(self, name):
        return {one["host"]: one for one in self.job_status()["hosts"]}.get(name)

    def wait_host(self, name, **wanted):
        """Waits until the status says this of a host."""
        def there():
            found = self.host_status(name)
            return found is not None and all(found.get(key) == value for key, value in wanted.items())
        wait_until(there, f"host {name} with {wanted}")

    def hosts_of(self, members):
        return [members[rank].host for rank in sorted(members)]

    def expect_survivors(self, before, after, ranks):
        self.assertEqual([after[rank].pid for rank in range(len(ranks))], [before[rank].pid for rank in ranks])

    def sockets(self, top=None):
        return glob.glob(os.path.join(top or self.box.tmp, "hvdrun-*", ".jobs-*", "*.control"))

    def plain(self, *args, steps=40, hang_at=20, **options):
        """A program that cannot rejoin; in its first epoch it stops at a step and waits for what happens."""
        hang = ["--hang-at", hang_at] if hang_at else []
        return self.start_elastic(
            "--grace", 2, "--grow-delay", "200ms", *args, worker("elastic_plain"), "--steps", steps, "--step-ms", 2,
            "--checkpoint", self.box.path("checkpoint"), *hang, **options)

    def plain_result(self, steps=40):
        """What the program says that nobody disturbs."""
        result = self.expect(self.run_job("-np", 1, worker("elastic_plain"), "--steps", steps, "--step-ms", 0), 0)
        return re.search(r"final \d+ \w+", result.stdout)[0]

    def finish_plain(self, job, steps=40):
        result = self.expect(job.wait(), 0)
        finals = re.findall(r"final \d+ \w+", result.stdout)
        self.assertEqual(finals, [self.plain_result(steps)], result.describe())
        return result


class Status(Control):

    def test_table(self):
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2)
        job.members(4)
        wait_until(lambda: self.job_status()["state"] == "running", "the job runs")
        shown = self.ask("status").stdout
        self.assertRegex(shown, r"\Ahvdrun-\S+: running, epoch 1, 4 ranks on 2 hosts, up \d+ s\n")
        self.assertRegex(shown, r"(?m)^host +state +slots +ranks$")
        self.assertRegex(shown, r"(?m)^a +up +2 +0-1$")
        self.assertRegex(shown, r"(?m)^b +up +2 +2-3$")
        job.finish()

    def test_json(self):
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2)
        before = job.members(4)
        status = self.job_status()
        told = [one.environ()["HVDRUN_JOB_ID"] for one in job.tree() if "HVDRUN_JOB_ID" in one.environ()]
        self.assertEqual(set(told), {status["job"]})
        self.assertEqual((status["epoch"], status["size"]), (1, 4))
        self.assertGreater(status["up_s"], 0)
        self.assertEqual([(one["host"], one["slots"], one["ranks"]) for one in status["hosts"]],
                         [("a", 2, [0, 1]), ("b", 2, [2, 3])])
        job.kill(before[3])
        job.members(4, but=before)
        job.wait_event("epoch_met", epoch=3)
        status = self.job_status()
        self.assertEqual(status["epoch"], 3)
        self.assertRegex(status["events"][-2]["text"], r"epoch 3: 4 ranks on 2 hosts \(.*; started after .*\)")
        self.assertRegex(status["events"][-1]["text"], r"epoch 3: all ranks are connected, \S+ s after the change")
        self.assertRegex(self.ask("status").stdout, r"(?m)^\d\d:\d\d:\d\d  epoch 2: 3 ranks on 2 hosts")
        job.finish()

    def test_spare_host(self):
        job = self.train("-np", 2, "--min-np", 1, "--max-np", 2, "--spares", 1, *self.discover("a:1", "b:1", "c:1"))
        before = job.members(2)
        spare, = set("abc") - set(self.hosts_of(before))  # the one that came last
        self.wait_host(spare, state="up", spare=True, ranks=[])
        self.assertRegex(self.ask("status").stdout, rf"(?m)^{spare} +up +1 +- +spare$")
        job.finish()

    def test_of_a_job_that_waits(self):
        job = self.train("-np", 4, "--min-np", 4, *self.discover("a:2"))
        wait_until(self.sockets, "the control socket")
        self.assertRegex(self.ask("status").stdout, r"\A\S+: waiting for hosts, ")
        self.ask("add", "b:2")
        both = ["a", "a", "b", "b"]  # in the order in which their agents are up
        self.assertIn(self.hosts_of(job.members(4)), (both, both[::-1]))
        job.finish()


class Add(Control):

    def test_rejoin(self):
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2, "--max-np", 6)
        before = job.members(4)
        self.assertEqual(self.ask("add", "c:2").stdout, "the job may use c:2\n")
        after = job.members(6)
        self.expect_survivors(before, after, (0, 1, 2, 3))
        self.assertEqual(self.hosts_of(after), ["a", "a", "b", "b", "c", "c"])
        result = job.finish()
        self.expect_said(result, r"epoch 2: 6 ranks on 3 hosts \(added c")
        self.assertNotRegex(result.stdout, r"\blost rank")

    def test_restart(self):
        job = self.plain("-np", 4, "-H", "a:2,b:2", "--min-np", 2)
        job.wait_output(r"epoch 1 restart 0 rank \d/4 step 19", count=4)
        self.ask("add", "c:2")
        job.wait_output(r"epoch 2 restart 1 rank \d/6 resumes at (\d+)$", count=6)
        result = self.finish_plain(job)
        self.assertEqual(set(re.findall(r"rank \d/6 resumes at (\d+)", result.stdout)), {"19"}, "the checkpoint")

    def test_several_at_once(self):
        job = self.train("-H", "a:1", "--min-np", 1, "--max-np", 5)
        job.members(1)
        self.ask("add", "b:1,n[1-2]:1,c")
        self.assertEqual(self.hosts_of(job.members(5)), ["a", "b", "n1", "n2", "c"])
        self.assertEqual([one["size"] for one in job.events("epoch")], [1, 5])
        job.finish()

    def test_more_slots_of_a_host(self):
        job = self.train("-H", "a:2", "--min-np", 1, "--max-np", 4)
        before = job.members(2)
        self.ask("add", "a:4")
        self.expect_survivors(before, job.members(4), (0, 1))
        job.finish()

    def test_stays_when_discovery_finds_others(self):
        job = self.train("-np", 1, "--min-np", 1, "--max-np", 9, *self.discover("a:1"))
        job.members(1)
        self.ask("add", "x:1")
        job.members(2)
        self.set_hosts("a:1", "b:1")
        self.assertEqual(sorted(self.hosts_of(job.members(3))), ["a", "b", "x"])
        job.finish()

    def test_what_is_no_list_of_hosts(self):
        self.refused("slots|number", "add", "c:many", status=2)
        self.refused("expected: hvdrun add HOSTS", "add", status=2)


class Drain(Control):

    def test_rejoin(self):
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2, "--report", self.box.path("report"))
        before = job.members(4)
        self.assertEqual(self.ask("drain", "b").stdout, "draining b\n")
        after = job.members(2, but=before)
        self.expect_survivors(before, after, (0, 1))
        self.wait_host("b", state="drained", ranks=[])
        self.assertRegex(self.ask("status").stdout, r"(?m)^b +drained +2 +-")
        job.trains()
        result = job.finish()
        # in order, at a commit: nothing is rolled back, and 134 of those who go is no failure
        self.assertNotRegex(result.stdout, r"\blost rank")
        self.expect_not_said(result, r"rank \d+ (failed|exited|was killed)|134|\blost b\b")
        self.expect_said(result, r"epoch 2: 2 ranks on 1 host \(.*\bb\b")
        elastic = self.read_json(self.box.path("report"))["elastic"]
        self.assertEqual((elastic["preemptions"], elastic["hosts_lost"], elastic["crashes"]), (1, 0, 0))

    def test_restart(self):
        job = self.plain("-np", 4, "-H", "a:2,b:2", "--min-np", 2)
        job.wait_output(r"epoch 1 restart 0 rank \d/4 step 19", count=4)
        self.ask("drain", "b")
        job.wait_output(r"epoch 2 restart 1 rank \d/2 resumes at (\d+)$", count=2)
        result = self.finish_plain(job)
        self.assertEqual(set(re.findall(r"rank \d/2 resumes at (\d+)", result.stdout)), {"19"}, "the checkpoint")
        self.expect_not_said(result, r"rank \d+ (failed|exited|was killed)")

    def test_undrain(self):
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2)
        before = job.members(4)
        self.ask("drain", "b")
        two = job.members(2, but=before)
        self.wait_host("b", state="drained")
        self.assertEqual(self.ask("undrain", "b").stdout, "the job may use b again\n")
        after = job.members(4, but=two)
        self.expect_survivors(before, after, (0, 1))
        self.wait_host("b", state="up", ranks=[2, 3])
        job.finish()

    def test_undrain_before_it_has_left(self):
        self.gloo_timeout = 60
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2)
        before = job.members(4)
        job.kill(before[1], number=signal.SIGSTOP)  # nobody gets to a commit
        self.ask("drain", "b", "--within", "1h")
        self.wait_host("b", state="draining")
        self.assertRegex(self.ask("status").stdout, r"(?m)^b +draining +2 +2-3 +leaves within (1 h|59 min)")
        self.ask("undrain", "b")
        self.wait_host("b", state="up")
        self.assertRegex(self.ask("status").stdout, r"(?m)^b +up +2 +2-3$")
        job.kill(before[1], number=signal.SIGCONT)
        after = job.members(4)
        self.assertEqual({one.pid for one in after.values()}, {one.pid for one in before.values()})
        job.finish()

    def test_twice_and_what_was_never_drained(self):
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2)
        before = job.members(4)
        self.ask("undrain", "a")
        self.ask("drain", "b")
        self.ask("drain", "b")
        job.members(2, but=before)
        self.ask("drain", "b")
        job.trains()
        self.assertEqual([one["size"] for one in job.events("epoch")], [4, 2])
        job.finish()

    def test_unknown_host(self):
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2)
        job.members(4)
        for word in ("drain", "undrain"):
            self.refused("^hvdrun: nosuch is not a host of this job; 'hvdrun status' lists the hosts$", word, "nosuch")
        job.trains()
        job.finish()


class Which(Control):

    def test_no_job(self):
        for words in (["status"], ["drain", "a"], ["undrain", "a"], ["add", "a:1"]):
            self.refused("found no running job of this user", *words)
        self.refused("found no job 'nosuch' of this user", "status", "nosuch")

    def test_wrong_words(self):
        self.refused("expected: hvdrun drain HOST", "drain", status=2)
        self.refused("--within", "drain", "a", "--within", "soon", status=2)
        self.refused("expected: hvdrun status", "status", "--within", "3", status=2)
        self.assertIn("Usage: hvdrun drain [OPTIONS] HOST\n", self.ask("drain", "--help").stdout)

    def test_a_program_of_that_name(self):
        self.write("status", "#!/bin/sh\necho it is me\n", 0o755)
        self.expect_lines(self.run_job("-np", 1, "./status"), ["[0]<stdout>:it is me"])

    def test_two_jobs(self):
        gate, let_go = self.box.gate("both-may-end")
        jobs = [self.start_elastic("-H", f"{name}:1", "--min-np", 1, worker("hang"), "--until", gate) for name in "ab"]
        for job in jobs:
            job.wait_output("ready")
        wait_until(lambda: len(self.sockets()) == 2, "two control sockets")
        paths = self.sockets()
        ids = [os.path.basename(path).removesuffix(".control") for path in paths]
        for words in (["status"], ["drain", "a"], ["add", "c"]):
            first, second = rf"{ids[0]} \([^)]*\)", rf"{ids[1]} \([^)]*\)"
            self.refused(f"2 jobs run here; name one of them: ({first}, {second}|{second}, {first})", *words)
        for path, name in zip(paths, ids):
            self.assertEqual([self.job_status(word)["job"] for word in (name, path)], [name, name])
        hosts = {name: self.job_status(name)["hosts"][0]["host"] for name in ids}
        self.assertEqual(sorted(hosts.values()), ["a", "b"])
        of_a = next(name for name in ids if hosts[name] == "a")
        self.ask("add", "c:1", "--job", of_a)
        wait_until(lambda: len(self.job_status(of_a)["hosts"]) == 2, "c is known to the job of a")
        let_go()
        for job in jobs:
            self.expect(job.wait(), 0)


class Socket(Control):

    def test_mode_and_end(self):
        job = self.train("-H", "a:2", "--min-np", 1)
        job.members(2)
        path, = self.sockets()
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertTrue(stat.S_ISSOCK(os.stat(path).st_mode))
        for folder in (os.path.dirname(path), os.path.dirname(os.path.dirname(path))):
            self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
        job.finish()
        self.assertEqual(self.sockets(), [])

    def test_a_killed_driver(self):
        job = self.train("-H", "a:2", "--min-np", 1)
        job.members(2)
        job.signal(signal.SIGKILL)
        job.wait()
        wait_until(lambda: not self.box.strays(), "agents and workers end themselves")
        self.refused("found no running job of this user", "status")
        self.assertIn(": lost: its hvdrun is gone", self.ask("status", "hvdrun").stdout)

    def test_a_killed_driver_without_agents(self):
        """The next job removes its socket. Its record stays."""
        job = self.train(*self.discover(), "--min-np", 1)
        path, = wait_until(self.sockets, "the control socket")
        self.assertEqual(job.agents(), [])
        job.signal(signal.SIGKILL)
        job.wait()
        wait_until(lambda: not self.box.strays(), "the end of its processes")
        other = self.train("-H", "a:1", "--min-np", 1)
        other.members(1)
        self.assertFalse(os.path.exists(path))
        lost = os.path.splitext(os.path.basename(path))[0]
        self.assertRegex(self.ask("ps", "-a").stdout, rf"(?m)^{lost} +lost ")
        other.finish()

    @unittest.skipUnless(os.getuid() == 0, "only root can be somebody else")
    def test_another_user(self):
        shared = tempfile.mkdtemp(prefix="hvdt-")
        self.addCleanup(shutil.rmtree, shared, ignore_errors=True)
        os.chmod(shared, 0o1777)
        job = self.train("-H", "a:2", "--min-np", 1, env={"TMPDIR": shared})
        job.members(2)
        path, = self.sockets(shared)

        def stranger(*words):
            return subprocess.run([HVDRUN, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd="/",
                                  user=NOBODY, group=NOBODY, extra_groups=[], timeout=patient(30),
                                  env=self.box.environment({"TMPDIR": shared, "HOME": "/", "XDG_RUNTIME_DIR": None}))
        try:
            done = stranger("--version")
        except PermissionError:
            done = None
        if done is None or done.returncode != 0:
            job.finish()
            self.skipTest("nobody may not run hvdrun from where it is built")
        done = stranger("status")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("found no running job of this user", done.stderr)
        done = stranger("drain", "a", "--job", path)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done)
        self.assertIn("Permission denied", done.stderr)
        # not even when its folders and the socket are thrown open
        for folder in (os.path.dirname(os.path.dirname(path)), os.path.dirname(path)):
            os.chmod(folder, 0o755)
        os.chmod(path, 0o666)
        done = stranger("drain", "a", "--job", path)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done)
        self.assertNotIn("Permission denied", done.stderr)
        for folder in (os.path.dirname(os.path.dirname(path)), os.path.dirname(path)):
            os.chmod(folder, 0o700)
        self.assertEqual(self.ask("status", env={"TMPDIR": shared}).stdout.count("up "), 2, "the job, and host a")
        job.finish()


if __name__ == "__main__":
    main()
