# SPDX-License-Identifier: Apache-2.0
"""`hvdrun pmix`: tools get the process table of a job, and nothing else."""
# ctest waits

import os
import re
import signal
import subprocess

from hostile import STRANGER, Hostile, lacks
from job_commands import JobCommands
from rig import main, wait_until, worker


class Tools(JobCommands, Hostile):

    def begin(self, *args):
        """A job that runs, its server for tools, and what that says: the launcher's pid, and the file."""
        self.gate, self.let_go = self.box.gate()
        job = self.start(*args, worker("hang"), "--until", self.gate)
        job.wait_output("ready", count=3)
        server = wait_until(self.serve, "the server of a job that has just started")
        said = dict(line.split(": ", 1) for line in server.output().splitlines() if ": " in line)
        return job, server, said["PMIX_SERVER_PIDINFO"], said["PMIX_TOOL_ATTACHMENT_FILE"]

    def serve(self):
        """The command, once it serves; None if it has not found the job, which may not be in the list yet."""
        server = self.start("pmix")
        wait_until(lambda: server.popen.poll() is not None or "PMIX_TOOL_ATTACHMENT_FILE" in server.output(), "a word of the server")
        return server if "PMIX_TOOL_ATTACHMENT_FILE" in server.output() else None

    def tool(self, *words, become=(), limit="60"):
        """What a tool prints, to its end."""
        done = subprocess.run(["timeout", limit, *become, worker("mpi_tool"), *words], env=self.box.environment(),
                              capture_output=True, text=True, check=False)
        return done.stdout.splitlines()

    def test_table_of_all_ranks(self):
        job, server, pid, path = self.begin("-H", "a:2,b:1", "--transport", "local")
        ranks = job.workers()
        self.assertEqual(int(pid), job.pid)
        want = [f"table {rank} {host} {ranks[rank].pid} hvdrun-" for rank, host in ((0, "a"), (1, "a"), (2, "b"))]
        for how in (("pid", pid), ("file", path)):
            said = self.tool(*how)
            rows = [re.sub(r"hvdrun-.*", "hvdrun-", line) for line in said if re.match(r"table \d+ ", line)]
            self.assertEqual(rows, want, said)
            self.assertIn("local 0", said, "both are simulated hosts")
            self.assertNotIn("it may kill", said)
            self.assertNotIn("an answer about queues", said)
        self.let_go()
        self.expect(job.wait(), 0)
        self.expect(server.wait(), 0)
        self.assertFalse(os.path.exists(path), "the file goes with the job")

    def test_ranks_of_this_machine(self):
        job, server, pid, _ = self.begin("-np", 3)
        self.assertIn("local 3", self.tool("pid", pid))
        server.signal(signal.SIGTERM)
        self.expect(server.wait(), 0)
        self.let_go()
        self.expect(job.wait(), 0)

    def test_a_tool_that_stays_or_is_killed(self):
        job, server, _, path = self.begin("-np", 3)
        with subprocess.Popen([worker("mpi_tool"), "file", path, "hang"], env=self.box.environment(), stdout=subprocess.PIPE,
                              text=True) as one:
            while "local" not in one.stdout.readline():
                pass
            self.assertIn("table 3", self.tool("file", path), "beside the other")
            one.kill()
        self.assertIn("table 3", self.tool("file", path))
        with subprocess.Popen([worker("mpi_tool"), "file", path, "hang"], env=self.box.environment(), stdout=subprocess.PIPE,
                              text=True) as one:
            while "local" not in one.stdout.readline():
                pass
            self.let_go()
            self.expect(job.wait(), 0)
            self.expect(server.wait(), 0)
            one.kill()

    def test_another_user_gets_nothing(self):
        """Even one who knows where the server listens."""
        become = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
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
        wait_until(lambda: server.popen.poll() is not None, "the end of the server")

    def test_no_job(self):
        self.refused("no running job", "pmix")


if __name__ == "__main__":
    main()
