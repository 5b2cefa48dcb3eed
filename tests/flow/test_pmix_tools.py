# SPDX-License-Identifier: Apache-2.0
"""`hvdrun pmix`: tools get the process table of a job, and nothing else."""
# ctest waits

import glob
import os
import re
import signal
import subprocess
import time

from hostile import STRANGER, Hostile, lacks
from job_commands import JobCommands
from rig import main, wait_until, worker


class Tools(JobCommands, Hostile):

    def begin(self, *args):
        """A job that runs, its server for tools, and what that says: the launcher's pid, and the file."""
        self.gate, self.let_go = self.box.gate()
        job = self.start(*args, worker("hang"), "--until", self.gate)
        job.wait_output("ready", count=3)
        wait_until(lambda: self.ask("ps", "-q").lines, "the job in the list")
        server = self.start("pmix")
        server.wait_output("PMIX_TOOL_ATTACHMENT_FILE")
        said = dict(line.split(": ", 1) for line in server.output().splitlines() if ": " in line)
        return job, server, said["PMIX_SERVER_PIDINFO"], said["PMIX_TOOL_ATTACHMENT_FILE"]

    def tool(self, *words, become=(), limit="60"):
        """What a tool prints, to its end."""
        done = subprocess.run(["timeout", limit, *become, worker("mpi_tool"), *words], env=self.box.environment(),
                              capture_output=True, text=True, check=False)
        return done.stdout.splitlines()

    def test_table_of_all_ranks(self):
        job, server, pid, path = self.begin("--mpi=pmix", "-H", "a:2,b:1", "--transport", "local")
        ranks = job.workers()
        nspace = ranks[0].environ()["PMIX_NAMESPACE"]
        rows = [f"{rank} {host} {ranks[rank].pid} {nspace}" for rank, host in ((0, "a"), (1, "a"), (2, "b"))]
        want = [f"namespaces {nspace}", "table 3", *(f"table {row}" for row in rows), "first 3", *(f"first {row}" for row in rows),
                "no other: NOT-FOUND", "ready"]
        for how in (("pid", pid), ("file", path)):
            self.assertEqual(self.tool(*how), want)
        self.let_go()
        self.expect(job.wait(), 0)
        self.expect(server.wait(), 0)
        self.assertFalse(os.path.exists(path), "the file goes with the job")

    def test_two_servers_of_a_job(self):
        """Each is found by its pid, also when the other one has ended."""
        job, one, first, _ = self.begin("-np", 3)
        socket, = glob.glob(os.path.join(self.folder(), "*.control"))
        two = self.start("pmix", socket)
        two.wait_output("PMIX_TOOL_ATTACHMENT_FILE")
        self.assertIn("table 3", self.tool("pid", str(two.pid)))
        self.assertEqual(int(first), one.pid)
        one.signal(signal.SIGTERM)
        self.expect(one.wait(), 0)
        self.assertIn("table 3", self.tool("pid", str(two.pid)))
        self.let_go()
        self.expect(job.wait(), 0)
        self.expect(two.wait(), 0)

    def test_after_a_long_silence(self):
        """The job closes a connection that does nothing for 10 s."""
        job, server, _, path = self.begin("-np", 3)
        time.sleep(11)
        self.assertIn("table 3", self.tool("file", path))
        self.let_go()
        self.expect(job.wait(), 0)
        self.expect(server.wait(), 0)

    def test_a_job_that_does_not_answer(self):
        job, server, _, path = self.begin("-np", 3)
        job.signal(signal.SIGSTOP)
        self.assertEqual(self.tool("file", path), [])
        job.signal(signal.SIGCONT)
        self.assertIn("table 3", self.tool("file", path), "no late answer is in between")
        job.signal(signal.SIGKILL)
        result = server.wait()
        self.expect(result, 1)
        self.assertRegex(result.stderr, r"\Ahvdrun: job \S+ is lost: .*\n\Z")
        job.wait()

    def test_a_tool_that_stays_or_is_killed(self):
        job, server, _, path = self.begin("-np", 3)
        for killed_first in (True, False):
            with subprocess.Popen([worker("mpi_tool"), "file", path, "hang"], env=self.box.environment(), stdout=subprocess.PIPE,
                                  text=True) as one:
                while one.stdout.readline().rstrip() not in ("ready", ""):
                    pass
                self.assertIn("table 3", self.tool("file", path), "beside the other")
                if not killed_first:
                    self.let_go()
                    self.expect(job.wait(), 0)
                    self.expect(server.wait(), 0)
                one.kill()
            if killed_first:
                self.assertIn("table 3", self.tool("file", path))

    def become(self):
        words = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
        why = lacks(*words, "bash", "-c", "true")
        if why:
            self.skipTest(f"no other user: {why}")
        return words

    def test_a_silent_stranger_holds_nobody_up(self):
        become = self.become()
        job, server, _, path = self.begin("-np", 3)
        with open(path, encoding="utf-8") as file:
            port = re.search(r"tcp4://127\.0\.0\.1:(\d+)", file.read())[1]
        with subprocess.Popen([*become, "bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo there && exec sleep 600"],
                              stdout=subprocess.PIPE, text=True) as one:
            self.assertEqual(one.stdout.readline(), "there\n")
            self.assertIn("table 3", self.tool("file", path))
            one.kill()
        self.let_go()
        self.expect(job.wait(), 0)
        self.expect(server.wait(), 0)

    def test_another_user_gets_nothing(self):
        """Even one who knows where the server listens."""
        become = self.become()
        why = lacks(*become, "test", "-x", worker("mpi_tool"))
        if why:
            self.skipTest(f"no other user: {why}")
        job, server, _, path = self.begin("-np", 3)
        self.assertNotIn("table 3", self.tool("file", path, become=become))
        with open(path, encoding="utf-8") as file:
            content = file.read()
        copy = self.write("known", content, 0o644)
        os.chmod(self.box.root, 0o755)
        for folder in (self.box.work, self.box.tmp):
            os.chmod(folder, 0o755)
        said = self.tool("file", copy, become=become, limit="5")  # libpmix waits after its connection has been cut
        self.assertFalse([line for line in said if line.startswith("table")], said)
        self.assertIn("table 3", self.tool("file", path))
        self.let_go()
        self.expect(job.wait(), 0)
        self.expect(server.wait(), 0)

    def test_no_job(self):
        self.refused("no running job", "pmix")


if __name__ == "__main__":
    main()
