# SPDX-License-Identifier: Apache-2.0
"""examples/horovod and horovod.run() on hosts of the rig: two hosts, a worker that is killed, a host that is lost, and
one that comes."""
# ctest long
# ctest plain
# ctest waits

import os
import re
import signal

from elastic import write_atomically
from hosts import Hosts, main
from jobs import Job
from python import package_environment, python_with
from rig import BUILD, SOURCE, nightly
from worldlines import places, wait_world

EXAMPLES = os.path.join(SOURCE, "examples/horovod")
UNTIL_GATE = os.path.join(SOURCE, "tests/flow/until_gate.py")
SLOW = ("--pause", 0.5, "--epochs", 8)
QUIET = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
RUN = """
import os
import horovod

def task(first):
    import horovod.torch as hvd
    import torch
    hvd.init()
    return os.uname().nodename, hvd.local_rank(), hvd.allreduce(torch.tensor([float(first)]), op=hvd.Sum).item()

if __name__ == "__main__":
    print(horovod.run(task, args=(2,), num_proc=3, hosts="node1:1,node2:2", use_gloo=True))
"""


class HorovodHosts(Hosts):

    def setUp(self):
        super().setUp()
        self.python = python_with("torch", "cloudpickle")

    def train(self, *launcher, script="train_elastic.py", options=()):
        """It pauses in each step until finish() has begun."""
        gate, self.let_go = self.box.gate()
        own = ("--horovod", "bundled", "--node-timeout", 3, "--gloo-timeout-seconds", 3)
        argv = (self.python, UNTIL_GATE, gate, os.path.join(EXAMPLES, script), *options)
        return self.ssh_start(*own, *launcher, *argv, env=QUIET)

    def finish(self, job):
        self.let_go()
        result = self.expect(job.wait(120), 0)
        self.assertIn("done after 8 epochs", result.stdout, result.describe())
        return result

    def test_two_hosts(self):
        job = self.train("-H", "node1:1,node2:1", script="train.py")
        result = self.expect(job.wait(120), 0)
        accuracy = re.findall(r"epoch 4: 2 ranks, loss [\d.]+, accuracy ([\d.]+) %", result.stdout)
        self.assertGreater(float(accuracy[0]), 90, result.describe())

    def test_run_on_two_hosts(self):
        """The workers get their function, and give back what it returned, over the network."""
        env = package_environment(PATH=os.pathsep.join([BUILD, os.environ["PATH"]]), HVDRUN_SSH_CONFIG=self.ssh_config)
        result = self.expect(Job(self.box, [self.python, self.write("run.py", RUN)], env=env).wait(120), 0)
        self.assertEqual(result.lines, ["[('node1', 0, 6.0), ('node2', 0, 6.0), ('node2', 1, 6.0)]"], result.describe())

    @nightly("flow.horovod_examples kills workers of simulated hosts")
    def test_a_worker_is_killed(self):
        """Another one takes its place on its host, and the training goes on from a commit."""
        job = self.train("-H", "node1:1,node2:1", "--min-np", 1, options=SLOW)
        at = wait_world(job, 2)
        job.wait_output(r"epoch 1:", timeout=60)
        killed = [one for one in self.host(2).processes() if "HOROVOD_RANK" in one.environ()]
        self.assertEqual(len(killed), 1, job.describe())
        os.kill(killed[0].pid, signal.SIGKILL)
        wait_world(job, 2, after=at)
        result = self.finish(job)
        begun = [int(more.split()[1]) for _, size, _, more in places(result.stdout) if size == 2]
        self.assertGreater(min(begun[-2:]), 0, result.describe())

    def test_a_host_is_lost_and_another_comes(self):
        hosts = self.write("hosts", "node1:1\nnode2:1\n")
        job = self.train("--hosts-watch", hosts, "--min-np", 1, "--grow-delay", 0, options=SLOW)
        at = wait_world(job, 2)
        self.host(2).power_off()
        write_atomically(hosts, "node1:1\n")
        at = wait_world(job, 1, after=at)
        write_atomically(hosts, "node1:1\nnode3:1\n")
        wait_world(job, 2, after=at)
        self.finish(job)


if __name__ == "__main__":
    main()
