# SPDX-License-Identifier: Apache-2.0
"""Evidence of failures: --evidence, and what a hang and --dump-on-failure leave behind (docs/failures.md)."""
# ctest waits

import glob
import json
import os
import re
import signal
import stat
import sys

from hostile import Hostile
from rig import Flow, main, patient, wait_until
from test_gpus import LIBRARY, OLD_LIBRARY, Gpus

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
# lines.txt is larger than 16 KiB
LOUD = SCRIPT.replace('print("warning', 'print("x" * 7000, file=sys.stderr, flush=True)\nprint("warning')
FILES = ["facts.json", "lines.txt", "report.json", "stacks.txt"]


# hangs again and again, each time until there is evidence of it, and then fails
HANGS = """\
import glob, os, time

def wait():
    time.sleep(1000)

if os.environ["RANK"] == "1":
    wait()
for count in range(1, 9):
    while not os.path.exists(f"hang{count}"):
        print("step", flush=True)
        time.sleep(0.1)
    while len(glob.glob("evidence/*/facts.json")) < count:
        time.sleep(0.1)
raise ValueError("row 7 is broken")
"""


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
        self.expect_said(result, r"the evidence of this failure is in \S+\.evidence")
        return re.search(r"is in (\S+\.evidence)", result.said).group(1)

    def test_a_failure(self):
        os.environ["SOME_API_KEY"] = "hush-hush"
        self.addCleanup(os.environ.pop, "SOME_API_KEY")
        result = self.run_script("fail", "-x", "MY_TOKEN=hush-hush", "--evidence", self.box.path("evidence"))
        self.expect(result, 1)
        folder, = self.folders()
        self.expect_said(result, r"the evidence of this failure is in " + folder)
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
        self.assertEqual(facts["environment"], {})  # hvdrun's own variables for each host are no news
        stacks = self.read(folder, "stacks.txt")
        self.assertEqual(stacks.count("train.py:4 wait"), 2, stacks)
        self.assertIn("A second later:", stacks)
        lines = self.read(folder, "lines.txt")
        for part in ("rank 0 on a:\n    warning of 0\n", "    ValueError: row 7 is broken\n", "[1]<stdout>:ready\n"):
            self.assertIn(part, lines)
        self.assertEqual(self.read_json(os.path.join(folder, "report.json"))["job"]["status"], 1)

    def test_the_last_rank(self):
        """No rank is left to look at. What it wrote and what its host knows is kept all the same."""
        script = self.write("last.py", "import os, sys, time\nif os.environ['RANK'] == '1': sys.exit()\n"
                                       "time.sleep(0.3)\n"
                                       "raise ValueError('row 7 is broken')\n")
        for options in (["-np", 1], ["-np", 2], ["-np", 1, "--min-np", 1, "--on-failure", "stop"]):
            with self.subTest(options=options):
                before = self.folders()
                job = self.start(*options, "--evidence", self.box.path("evidence"), sys.executable, script)
                self.expect(job.wait(60), 1)
                folder, = set(self.folders()) - set(before)
                facts = self.read_json(os.path.join(folder, "facts.json"))
                self.assertEqual(facts["text"], "rank 0 on localhost exited with code 1")
                self.assertIn("MemTotal", facts["hosts"][0]["memory"])
                self.assertIn("    ValueError: row 7 is broken\n", self.read(folder, "lines.txt"))
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

    def test_a_hang_that_is_only_a_warning(self):
        """With the option, it is evidence too: without a tree, and the job goes on."""
        job = self.start("-np", 3, "--grace", 1, "--hang-timeout", 2, "--on-hang", "warn", "--evidence", self.box.path("evidence"),
                         sys.executable, self.write("train.py", SCRIPT), "hang")
        wait_until(lambda: any(os.path.exists(os.path.join(folder, "facts.json")) for folder in self.folders()), "the evidence",
                   patient(60))
        job.signal(signal.SIGTERM)
        result = job.wait(patient(60))
        self.expect_said(result, r"the job hangs: no rank [^\n]*; rank 2 on \S+ is elsewhere: in train.py:7 load")
        self.expect_not_said(result, "Python stacks")
        facts = self.read_json(os.path.join(self.folders()[0], "facts.json"))
        self.assertEqual((facts["kind"], facts["rank"]), ("hang", 2))
        self.expect(result, 143)

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
        self.expect_said(result, r"evidence of this failure is incomplete: cannot write '/dev/null/evidence/[^']*': Not a directory\n")
        self.assertEqual(result.said.count("cannot write"), 1, result.said)
        self.expect_said(result, r"rank 2 exited with code 1")

    def test_a_failure_after_many(self):
        """The tree is shown, although there are too many folders already. One line says why there is not another."""
        job = self.start("-np", 2, "--grace", 1, "--hang-timeout", 0.5, "--on-hang", "warn", "--dump-on-failure", "--evidence",
                         "evidence", sys.executable, self.write("train.py", HANGS))
        for count in range(1, 9):
            self.write(f"hang{count}", "")
            if count < 8:
                job.wait_output("the job shows progress again", count=count, name="stderr", timeout=60)
        result = job.wait(60)
        self.expect(result, 1)
        self.assertEqual(len(self.folders()), 8)
        self.expect_said(result, r"(?m)^ +\[1\] [^\n]*train.py:4 wait; calls ")
        self.assertEqual(result.said.count("this job has 8 folders of evidence, and gets no more"), 1, result.said)

    def test_an_elastic_job(self):
        script = self.write("elastic.py", "import os, time\nprint('ready', flush=True)\nif os.environ['HVDRUN_EPOCH'] == '1':\n"
                                          "    time.sleep(1)\n    os._exit(3 if os.environ['RANK'] == '1' else time.sleep(1000))\n")
        result = self.run_job("-np", 2, "--min-np", 2, "-H", "a:1,b:1", "--transport", "local", "--grace", 1, "--evidence",
                              self.box.path("evidence"), sys.executable, script, timeout=120)
        self.expect(result, 0)
        facts = self.read_json(os.path.join(self.folders()[0], "facts.json"))
        self.assertEqual(facts["text"], "rank 1 on b exited with code 3")
        self.assertTrue(all(host["answered"] for host in facts["hosts"]))


ELASTIC = """\
import os, time
print("ready", flush=True)
time.sleep(0.5)
if os.environ["RANK"] == "1":
    raise ValueError("broken in epoch " + os.environ["HVDRUN_EPOCH"])
time.sleep(1000)
"""


class ManyEpochs(Gpus):

    def test_each_failure(self):
        """Each one has the lines of the rank that failed and the GPUs, although all workers end and start again
        meanwhile. The story of the job is about the last one."""
        self.gpus(HEALTHY, faults=[("slow", "nvmlInit_v2", 300)])
        result = self.start("-np", 2, "--min-np", 2, "--max-restarts", 1, "-H", "a:1,b:1", "--transport", "local", "--grace", 1,
                            "--evidence", self.box.path("evidence"), sys.executable, self.write("train.py", ELASTIC),
                            env=self.environment()).wait(patient(60))
        self.expect(result, 1)
        folders = sorted(glob.glob(self.box.path("evidence", "*")))
        self.assertEqual(len(folders), 2)
        for epoch, folder in enumerate(folders, 1):
            facts = self.read_json(os.path.join(folder, "facts.json"))
            self.assertEqual(facts["text"], "rank 1 on b exited with code 1")
            self.assertEqual(facts["epoch"], epoch)
            for host in facts["hosts"]:
                self.assertIn(host.get("gpus_missing"), (None, "NVIDIA's library did not answer in time"))
            with open(os.path.join(folder, "lines.txt")) as file:
                self.assertIn(f"    ValueError: broken in epoch {epoch}\n", file.read())
        self.assertIn("    its stderr: ValueError: broken in epoch 2\n", self.run_job("explain").stdout)


class FullDisk(Hostile, Flow):

    def test_one_line(self):
        """The job ends as it would otherwise, and a file is there as a whole or not at all."""
        for size in ("4k", "16k", "40k"):
            with self.subTest(size):
                mount, folder = self.small_folder(size, size)
                job = self.start_in_place(mount, "-np", 3, "--grace", 1, "-H", "a:2,b:1", "--transport", "local", "--evidence",
                                          folder, sys.executable, self.write("train.py", LOUD), "fail")
                job.wait_output("ready", count=3)
                disk = os.open(os.path.join("/proc", str(job.pid), "root") + folder, os.O_RDONLY)
                self.addCleanup(os.close, disk)
                result = self.expect(job.wait(patient(60)), 1)
                self.expect_said(result, r"the evidence of this failure is incomplete: cannot write '\S+': No space left on device\n")
                self.assertEqual(result.said.count("No space left"), 1, result.said)
                self.expect_not_said(result, "the evidence of this failure is in /")
                self.expect_said(result, r"rank 2: host b, pid \d+, exit code 1")
                self.expect_said(result, r"ValueError: row 7 is broken")
                self.check_files(f"/proc/self/fd/{disk}")

    def check_files(self, disk):
        folder, = os.listdir(disk)
        names = set(os.listdir(os.path.join(disk, folder)))
        self.assertLess(names, set(FILES))
        for name in names:
            with open(os.path.join(disk, folder, name)) as file:
                text = file.read()
            self.assertTrue(text.endswith("\n"))
            if name.endswith(".json"):
                json.loads(text)
            elif name == "lines.txt":
                self.assertIn("last lines of all:\n", text)
            else:
                self.assertIn("A second later:", text)


HEALTHY = {"uuid": "GPU-aaaa", "pci": "00000000:3B:00.0", "temperature": 41, "reasons": 1, "ecc_0_0": 2, "ecc_0_1": 9,
           "ecc_1_0": 0, "ecc_1_1": 4, "remapped": "0,1,0,0"}


class GpuEvidence(Gpus):

    def fail(self, library=LIBRARY, env=None, late=False):
        """What facts.json says of the host, and the story. A machine that is very busy has up to three tries."""
        for _ in range(3):
            host, story = self.fail_once(library, env)
            if late or "gpus" in host or not library:
                break
        return host, story

    def fail_once(self, library, env):
        result = self.run_job("-np", 2, "--grace", 1, "--evidence", self.box.path("evidence"), "sh", "-c",
                              'test $RANK = 0 || exit 3; sleep 60', env=env or self.environment(library), timeout=patient(60))
        self.expect(result, 3)
        folder = max(glob.glob(self.box.path("evidence", "*")), key=os.path.getmtime)
        host, = self.read_json(os.path.join(folder, "facts.json"))["hosts"]
        return host, self.run_job("explain", folder).stdout

    def test_a_healthy_gpu(self):
        """All that the library says is kept, and nothing of it is news."""
        self.gpus(HEALTHY)
        host, story = self.fail()
        self.assertEqual(host["gpus"], [{
            "index": 0, "uuid": "GPU-aaaa", "pci": "00000000:3B:00.0", "temperature_celsius": 41, "clock_reasons": ["idle"],
            "ecc_errors": {"corrected": {"volatile": 2, "aggregate": 9}, "uncorrected": {"volatile": 0, "aggregate": 4}},
            "remapped_rows": {"corrected": 0, "uncorrected": 1, "pending": False, "failed": False}}])
        self.assertNotIn("gpus_missing", host)
        self.assertNotIn("GPU", story)

    def test_what_is_missing_is_absent(self):
        """A GPU without ECC and rows, an older driver, and no driver at all: without a word about it."""
        bare = {"uuid": "GPU-aaaa", "temperature": 41}
        self.gpus(bare, dict(bare, ecc_1_0=1))
        host, _ = self.fail()
        self.assertEqual(host["gpus"], [{"index": 0, "uuid": "GPU-aaaa", "temperature_celsius": 41},
                                        {"index": 1, "uuid": "GPU-aaaa", "temperature_celsius": 41,
                                         "ecc_errors": {"corrected": {}, "uncorrected": {"volatile": 1}}}])
        self.gpus(HEALTHY)
        host, _ = self.fail(library=OLD_LIBRARY)
        self.assertEqual(host["gpus"][0]["clock_reasons"], ["idle"])
        self.assertNotIn("remapped_rows", host["gpus"][0])
        host, story = self.fail(library=None, env={"LD_LIBRARY_PATH": ""})
        self.assertFalse({"gpus", "gpus_missing"} & set(host))
        self.assertNotIn("NVIDIA", story)

    def test_sick_gpus(self):
        self.gpus(dict(HEALTHY, reasons=0x48, temperature=93), dict(HEALTHY, ecc_1_0=2, remapped="0,1,0,1"))
        host, story = self.fail()
        self.assertEqual(host["gpus"][0]["clock_reasons"], ["hardware slowdown", "hardware thermal slowdown"])
        self.assertRegex(story, r"    \S+: GPU 1: it could not replace a bad row of its memory; 2 uncorrected ECC errors since")
        self.assertRegex(story, r"    \S+: GPU 0 has lower clocks: hardware thermal slowdown, at 93 degrees Celsius\n")
        self.assertRegex(story, r"what to do:\n    start the next job without \S+, and have its GPUs checked")
        self.gpus(HEALTHY, faults=[("fail", "nvmlDeviceGetHandleByIndex_v2", 15)])
        host, story = self.fail()
        self.assertEqual(host["gpus"], [{"index": 0, "trouble": "is lost"}])
        self.assertRegex(story, r"    \S+: GPU 0: it is lost\n")

    def test_a_library_that_hangs(self):
        """The job ends all the same, with all other evidence and what was known by then."""
        for function, kept in (("nvmlInit_v2", []), ("nvmlDeviceGetTotalEccErrors", [])):
            with self.subTest(function):
                self.gpus(HEALTHY, faults=[("slow", function, 600000)])
                host, story = self.fail(late=True)
                self.assertEqual(host.get("gpus", []), kept)
                self.assertEqual(host["gpus_missing"], "NVIDIA's library did not answer in time")
                self.assertIn("limit:", host["cores"])
                self.assertRegex(story, r"    \S+: NVIDIA's library did not answer in time\n")
        self.gpus(HEALTHY, faults=[("fail", "nvmlDeviceGetCount_v2", 999)])
        host, _ = self.fail(late=True)
        self.assertFalse({"gpus", "gpus_missing"} & set(host))


if __name__ == "__main__":
    main()
