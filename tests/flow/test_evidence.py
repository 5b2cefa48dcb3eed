# SPDX-License-Identifier: Apache-2.0
"""Evidence of failures: --evidence, and what a hang and --dump-on-failure leave behind (docs/failures.md)."""
# ctest waits

import glob
import os
import re
import stat
import sys

from rig import Flow, main

SCRIPT = """\
import os, sys, time

def wait():
    time.sleep(1000)

def load():
    time.sleep(1001)

rank = int(os.environ["RANK"])
print("ready", flush=True)
print("warning of", rank, file=sys.stderr, flush=True)
if rank == 2 and sys.argv[1] == "fail":
    time.sleep(1)
    raise ValueError("row 7 is broken")
if rank == 2 and sys.argv[1] == "crash":
    time.sleep(1)
    os.abort()
load() if rank == 2 else wait()
"""
FILES = ["facts.json", "lines.txt", "report.json", "stacks.txt"]


class Evidence(Flow):

    def run_script(self, what, *options, hosts="a:2,b:1"):
        """Does not look for what is left, which removes the records of jobs."""
        return self.start("-np", 3, "--grace", 1, "-H", hosts, "--transport", "local", *options, sys.executable,
                          self.write("train.py", SCRIPT), what).wait(120)

    def folders(self):
        return sorted(glob.glob(self.box.path("evidence", "*")))

    def read(self, folder, name):
        with open(os.path.join(folder, name)) as file:
            return file.read()

    def own_folder(self, result):
        """The folder that hvdrun has chosen itself."""
        self.expect_said(result, r"what is known about this failure is in \S+\.evidence")
        return re.search(r"is in (\S+\.evidence)", result.said).group(1)

    def test_a_failure(self):
        os.environ["SOME_API_KEY"] = "hush-hush"
        self.addCleanup(os.environ.pop, "SOME_API_KEY")
        result = self.run_script("fail", "-x", "MY_TOKEN=hush-hush", "--evidence", self.box.path("evidence"))
        self.expect(result, 1)
        folder, = self.folders()
        self.expect_said(result, r"what is known about this failure is in " + folder)
        self.assertEqual(sorted(os.listdir(folder)), FILES)
        for name in FILES:
            path = os.path.join(folder, name)
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
            self.assertNotIn("hush-hush", self.read(folder, name))
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
        facts = self.read_json(os.path.join(folder, "facts.json"))
        self.assertEqual((facts["kind"], facts["text"], facts["rank"]), ("failure", "rank 2 on b exited with code 1", 2))
        self.assertEqual([(rank["host"], rank.get("exit_code")) for rank in facts["ranks"]], [("a", None), ("a", None), ("b", 1)])
        self.assertEqual([(host["host"], host["answered"]) for host in facts["hosts"]], [("a", True), ("b", True)])
        for host in facts["hosts"]:
            self.assertIn("limit:", host["cores"])
            self.assertIn("MemTotal", host["memory"])
            self.assertIn("free", host["folders"])
            self.assertTrue(host["kernel"])
        stacks = self.read(folder, "stacks.txt")
        self.assertEqual(stacks.count("train.py:4 wait"), 2, stacks)
        self.assertIn("A second later:", stacks)
        lines = self.read(folder, "lines.txt")
        for part in ("rank 0 on a:\n    warning of 0\n", "    ValueError: row 7 is broken\n", "[1]<stdout>:ready\n"):
            self.assertIn(part, lines)
        self.assertEqual(self.read_json(os.path.join(folder, "report.json"))["job"]["status"], 1)

    def test_a_timeout(self):
        self.expect(self.run_script("wait", "--timeout", 2, "--no-stack-traces", "--evidence", self.box.path("evidence")), 124)
        facts = self.read_json(os.path.join(self.folders()[0], "facts.json"))
        self.assertEqual((facts["kind"], facts["rank"]), ("timeout", None))

    def test_a_hang_without_the_option(self):
        result = self.expect(self.run_script("hang", "--hang-timeout", 2), 119)
        folder = self.own_folder(result)
        facts = self.read_json(os.path.join(folder, "facts.json"))
        self.assertEqual((facts["kind"], facts["rank"]), ("hang", 2))
        self.assertIn("rank 2 on b is elsewhere: in train.py:7 load", facts["text"])

    def test_a_failure_without_the_option(self):
        result = self.expect(self.run_script("crash", "--dump-on-failure"), 134)
        facts = self.read_json(os.path.join(self.own_folder(result), "facts.json"))
        self.assertEqual(facts["text"], "rank 2 on b was killed by SIGABRT")
        result = self.expect(self.run_script("fail"), 1)
        self.expect_not_said(result, "is known")

    def test_variables_that_differ(self):
        script = self.write("job.sh", '#!/bin/sh\n[ "$HVDRUN_HOSTNAME" = b ] && export OMP_NUM_THREADS=7 DB_PASSWORD=hush\n'
                                      "exec " + sys.executable + ' "$@"\n', 0o755)
        train = self.write("train.py", SCRIPT)
        result = self.run_job("-np", 3, "--grace", 1, "-H", "a:2,b:1", "--transport", "local", "--timeout", 2, "--evidence",
                              self.box.path("evidence"), script, train, "wait", timeout=120)
        self.expect(result, 124)
        environment = self.read_json(os.path.join(self.folders()[0], "facts.json"))["environment"]
        self.assertEqual(environment["OMP_NUM_THREADS"]["b"], "7")
        self.assertEqual(environment["DB_PASSWORD"], {"a": None, "b": "(hidden, 4 bytes)"})
        self.assertNotIn("RANK", environment)

    def test_a_folder_that_cannot_be_written(self):
        result = self.expect(self.run_script("fail", "--evidence", "/dev/null/evidence"), 1)
        self.expect_said(result, r"cannot write '/dev/null/evidence/[^']*': Not a directory; the job goes on")
        self.expect_said(result, r"rank 2 exited with code 1")

    def test_an_elastic_job(self):
        script = self.write("elastic.py", "import os, time\nprint('ready', flush=True)\nif os.environ['HVDRUN_EPOCH'] == '1':\n"
                                          "    time.sleep(1)\n    os._exit(3 if os.environ['RANK'] == '1' else time.sleep(1000))\n")
        result = self.run_job("-np", 2, "--min-np", 2, "-H", "a:1,b:1", "--transport", "local", "--grace", 1, "--evidence",
                              self.box.path("evidence"), sys.executable, script, timeout=120)
        self.expect(result, 0)
        facts = self.read_json(os.path.join(self.folders()[0], "facts.json"))
        self.assertEqual(facts["text"], "rank 1 on b exited with code 3")
        self.assertTrue(all(host["answered"] for host in facts["hosts"]))


if __name__ == "__main__":
    main()
