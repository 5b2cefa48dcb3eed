# SPDX-License-Identifier: Apache-2.0
"""The batch scripts of examples/slurm as they are; what a test has to change is given to sbatch beside them."""
# ctest waits
# ctest long
# ctest plain

import os
import re
import shutil
import subprocess

from ground import BUILD, SOURCE, wait_until
from jobs import Job
from slurm import HVDRUN, Slurm, main, unittest, worker

FOLDER = os.path.join(SOURCE, "examples/slurm")
PI = "24 items: pi is 3.141592653590"

# Stand-ins: they write down how they were called, and run the program without a container.
APPTAINER = """#!/bin/bash
echo "$@" >> "$CALLS"
test "$1" = exec || exit 90
shift
while test "${1#-}" != "$1"; do case $1 in --bind) shift 2;; *) shift;; esac; done
IMAGE_INSIDE=$1
export IMAGE_INSIDE
shift
exec "$@"
"""
SRUN = """#!/bin/bash
words=()
for word; do case $word in --container-*) echo "$word" >> "$CALLS";; *) words+=("$word");; esac; done
exec %s "${words[@]}"
"""


class Example(Slurm):

    def setUp(self):
        super().setUp()
        self.calls = self.box.path("calls")
        self.environ = {"PATH": os.pathsep.join([self.box.path("bin"), os.path.dirname(HVDRUN), os.environ["PATH"]]),
                        "CALLS": self.calls}

    def example(self, name, *options, arguments=(), env=None):
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            text = file.read()
        return self.submit(text, *options, env={**self.environ, **(env or {})}, arguments=[str(word) for word in arguments])

    def saver(self, pause_ms):
        """The words of examples/elastic/plain_restart, which saves what it has done."""
        program, items = self.box.path("plain_restart"), self.box.path("items")
        if not os.path.exists(program):
            source = os.path.join(SOURCE, "examples/elastic/plain_restart.c")
            subprocess.run(["cc", "-D_GNU_SOURCE", "-O1", "-o", program, source], check=True)
        os.makedirs(items, exist_ok=True)
        return [program, "--folder", items, "--pause-ms", pause_ms]

    def called(self):
        with open(self.calls, encoding="ascii") as file:
            return file.read().splitlines()


class Scripts(Example):

    def test_static(self):
        result = self.expect(self.example("static.sbatch", arguments=[worker("hello")]).wait(), 0)
        self.assertEqual(len(set(re.findall(r"^\[(\d)\]<stdout>:", result.stdout, re.M))), 4, result.describe())
        self.expect(self.example("static.sbatch", arguments=[worker("exit_with"), "3:9"]).wait(), 9)

    def test_static_trains(self):
        train = os.path.join(BUILD, "examples/train/train")
        if not os.access(train, os.X_OK):
            raise unittest.SkipTest("the examples are not built (HVDRUN_EXAMPLES)")
        result = self.expect(self.example("static.sbatch", arguments=[train, "--epochs", "2"]).wait(120), 0)
        self.assertIn("4 ranks", result.stdout, result.describe())

    def test_preemptible(self):
        job = self.example("preemptible.sbatch", arguments=self.saver(5))
        job.wait_output("start 1", count=4)
        wait_until(lambda: os.listdir(self.box.path("items")), "something is saved")
        job.cancel("--signal=USR1", "--batch")
        result = self.expect(job.wait(120), 0)
        self.assertEqual(result.shown["Restarts"], "1", result.describe())
        self.assertRegex(result.stdout, "continues item", result.describe())
        self.assertIn(PI, result.stdout, result.describe())
        report = self.read_json(self.box.path(f"preemptible-{job.id}.json"))
        self.assertEqual((report["job"]["status"], report["scheduler"]["restart_count"]), (0, 1))

    def test_container_by_apptainer(self):
        self.write("bin/apptainer", APPTAINER, 0o755)
        job = self.example("container.sbatch", env={"IMAGE": "train.sif", "OPTIONS": "--nv"},
                           arguments=["sh", "-c", "echo $RANK in $IMAGE_INSIDE on $(hostname)"])
        result = self.expect(job.wait(), 0)
        self.expect_lines(result, [f"[{rank}]<stdout>:{rank} in train.sif on node{1 + rank // 2}" for rank in range(4)])
        self.assertEqual({line.split(" sh ")[0] for line in self.called()}, {f"exec --nv --bind {self.box.work} train.sif"})
        self.assertEqual(len(self.called()), 4)

    def test_container_by_pyxis(self):
        self.write("bin/srun", SRUN % shutil.which("srun"), 0o755)
        agent = os.path.join(os.path.dirname(HVDRUN), "lib/hvdrun")
        job = self.example("container.sbatch", env={"CONTAINER": "pyxis", "IMAGE": "train.sqsh", "AGENT": agent},
                           arguments=["sh", "-c", "echo $RANK on $(hostname)"])
        result = self.expect(job.wait(), 0)
        self.expect_lines(result, [f"[{rank}]<stdout>:{rank} on node{1 + rank // 2}" for rank in range(4)])
        self.assertEqual(self.called(), ["--container-image=train.sqsh",
                                         f"--container-mounts={self.box.work}:{self.box.work},{agent}:{agent}",
                                         f"--container-workdir={self.box.work}"])

    def test_container_without_an_image(self):
        result = self.example("container.sbatch", arguments=["true"]).wait()
        self.assertNotEqual(result.status, 0)
        self.assertIn("IMAGE=train.sif", result.stderr, result.describe())
        result = self.expect(self.example("container.sbatch", env={"IMAGE": "x", "CONTAINER": "box"}).wait(), 2)
        self.assertIn("apptainer or pyxis", result.stderr, result.describe())


class Elastic(Example):

    def test_goes_on_without_a_node(self):
        job = self.example("elastic.sbatch", arguments=self.saver(8))
        job.wait_output("of 4: start 1", count=4)
        self.host(3).crash()
        job.wait_output("of 3: start 2", count=3)
        result = self.expect(job.wait(120), 0)
        self.assertIn(PI, result.stdout, result.describe())

    def test_grows(self):
        job = self.example("elastic.sbatch", "-N3", arguments=self.saver(8))
        job.wait_output("of 3: start 1", count=3)
        missing = ({"node1", "node2", "node3", "node4"} - set(job.nodes())).pop()
        grow = Job(self.box, [os.path.join(FOLDER, "grow.sh"), job.id, "1", "1"],
                   env={**self.environ, "SLURM_JOB_ID": job.id, "SLURM_NNODES": "3"}).wait(60)
        self.expect(grow, 0)
        self.assertIn(f"the job may use {missing}", grow.stdout, grow.describe())
        job.wait_output("of 4: start 2", count=4)
        result = self.expect(job.wait(120), 0)
        self.assertIn(PI, result.stdout, result.describe())
        self.assertEqual([name for name in os.listdir(self.box.work) if "resize" in name], [])


if __name__ == "__main__":
    main()
