# SPDX-License-Identifier: Apache-2.0
"""Jobs in real containers, and the commands of docs/containers.md."""
# ctest waits
# ctest long
# ctest plain

import ipaddress
import os
import re

import kube
import test_docs
from container_engine import Podman
from containers import Containers, call, main
from ground import SOURCE
from jobs import Job

HOSTS = "trainer-0,trainer-1,trainer-2"
WAIT = ("sh", "-c", "sleep 1000")
# seen once: the exec of a killed container had not ended when the silence ended the wait for it
KILLED = r"(docker ended with exit status 137 \(SIGKILL\)|no heartbeat for \d)"
COUNT = ("sh", "-c", "echo rank $RANK of $WORLD_SIZE; while test ! -e /shared/enough; do sleep 0.1; done")


class Docs(test_docs.Shows, Containers):

    block_pattern = test_docs.block_pattern("console containers(?: podman)?")
    command_timeout = 240  # podman-compose may need a minute for four containers on a busy machine

    def setUp(self):
        super().setUp()
        self.make_folder()

    def test_pages(self):
        shown = [one for name in ["README.md", *self.pages()] for one in self.check_page(name)]
        self.assertGreaterEqual(sum(bool(one.lines) for one in shown), 2, "are the blocks still recognized?")


class Faults(Containers):
    """What happens to a container happens to a host."""

    def setUp(self):
        super().setUp()
        self.make_small_volume("compose_shared")
        self.up("trainer-0", "trainer-1", "trainer-2")

    def make_small_volume(self, name):
        self.docker("volume", "create", name)
        place = self.docker("volume", "inspect", "-f", "{{.Mountpoint}}", name)
        call("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place)
        self.addCleanup(call, "umount", place)

    def job(self, *args, hosts=HOSTS):
        return self.start("--transport", "docker", "--wdir", "/app", "-H", hosts, *args)

    def wait_everywhere(self, job):
        for name in HOSTS.split(","):
            self.wait_rank(name, job)

    def expect_lost(self, job, pattern):
        self.expect_said(self.expect(job.wait(), 121), rf"node trainer-2 was lost: {pattern}")

    def expect_unreached(self, hosts, pattern, **env):
        result = self.start("--transport", "docker", "-H", hosts, "true", env=env).wait()
        self.expect_said(self.expect(result, 125), pattern)
        self.assertEqual(len(result.said.strip().split("\n")), 1, result.describe())

    def test_one_after_the_other(self):
        for fault in (self.unknown, self.killed, self.driver_killed, self.silent, self.killed_elastic, self.full_volume,
                      self.disconnected):
            with self.subTest(fault.__name__):
                fault()
                self.check_containers()

    def unknown(self):
        self.expect_unreached("trainer-0,trainer-7", r"^hvdrun: trainer-7: connect: no container has this name")

    def killed(self):
        job = self.job(*WAIT)
        self.wait_everywhere(job)
        self.docker("kill", "trainer-2")
        self.expect_lost(job, KILLED)
        self.expect_unreached("trainer-0,trainer-2", r"^hvdrun: trainer-2: connect: the container is not running")
        self.docker("start", "trainer-2")

    def driver_killed(self):
        job = self.job(*WAIT)
        self.wait_everywhere(job)
        job.kill()  # then no container may keep a process, which the caller checks

    def silent(self):
        job = self.job("--node-timeout", "4", *WAIT)
        self.wait_everywhere(job)
        resume = self.pause("trainer-2")
        self.expect_lost(job, r"no heartbeat for \d")
        resume()

    def killed_elastic(self):
        job = self.job("--min-np", "2", *COUNT)
        self.wait_everywhere(job)
        self.docker("kill", "trainer-2")
        job.wait_output("rank 1 of 2$")
        self.docker("start", "trainer-2")
        job.wait_output("rank 2 of 3$", count=2, timeout=40)
        self.docker("exec", "trainer-0", "touch", "/shared/enough")
        result = self.expect(job.wait(), 0)
        self.expect_said(result, f"lost trainer-2: {KILLED}")
        self.expect_said(result, r"epoch 3: 3 ranks on 3 hosts \(added trainer-2")

    def full_volume(self):
        self.docker("exec", "trainer-0", "sh", "-c", "cat /dev/zero > /shared/full", check=False)
        result = self.expect(self.job("python3", "train.py", hosts="trainer-0,trainer-1").wait(), 1)
        self.expect_blame(result, 0, code=1, host="trainer-0")
        self.assertIn("train.py: cannot write the checkpoint /shared/checkpoint.pt: No space left on device",
                      result.stderr, result.describe())

    def disconnected(self):
        """hvdrun in trainer-0 reaches the others over the network that trainer-2 loses."""
        job = self.docker_job("exec", "trainer-0", "hvdrun", "-H", HOSTS, "--wdir", "/", "--node-timeout", "4", *WAIT)
        self.wait_everywhere(job)
        self.docker("network", "disconnect", "compose_train", "trainer-2")
        self.expect_lost(job, r"no heartbeat for \d")
        self.docker("restart", "-t0", "trainer-2")  # what served the connection would wait for long


class Networks(Containers):
    """Each container has a network of its own first, and only the second one leads to the other container."""

    def test_the_shared_network_is_used(self):
        for network in ("left", "right", "train"):
            self.docker("network", "create", network)
        for name in ("left", "right"):
            self.docker("run", "-d", "--name", name, "--hostname", name, "--network", name, "hvdrun-trainer", "sleep", "1000")
            self.docker("network", "connect", "train", name)
        found = re.search(r'"subnet": *"([^"]+)"', self.docker("network", "inspect", "train"), re.I)[1]
        shared = ipaddress.ip_network(found)
        script = 'echo $MASTER_ADDR $(ip -o -4 addr show dev $GLOO_SOCKET_IFNAME | sed "s/.* inet //; s/[/].*//")'
        result = self.expect(self.run_job("--transport", "docker", "-H", "left,right", "--wdir", "/", "sh", "-c", script), 0)
        addresses = " ".join(line.split(":", 1)[1] for line in result.lines if ":" in line).split()
        self.assertEqual(len(addresses), 4, result.describe())
        for address in addresses:
            self.assertIn(ipaddress.ip_address(address), shared, result.describe())
        result = self.run_job("-v", "--transport", "docker", "-H", "left,right", "--wdir", "/", "true")
        self.expect_said(self.expect(result, 0), r"left: workers use eth\d \(\d")
        said = re.search(r"left: workers use eth\d \(([\d.]+)", result.said)[1]
        self.assertIn(ipaddress.ip_address(said), shared, result.describe())


REDUCE = """
import datetime, os, torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
value = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(value)
print("rank", dist.get_rank(), "of", dist.get_world_size(), "user", os.getuid(), "sum", int(value), flush=True)
dist.destroy_process_group()
"""


class Pods(Containers):
    """Pods of podman run the command line of the Job in examples/kubernetes as its manifest wants it. Without a cluster, the test is
    what Kubernetes is for them: it makes the secret, the name in the DNS and the pods, and starts one again."""

    def setUp(self):
        super().setUp()
        self.docker("network", "create", "train")
        with open(os.path.join(SOURCE, "examples/kubernetes/job.yaml"), encoding="utf-8") as file:
            spec = kube.read(file.read())[-1]["spec"]["template"]["spec"]
        self.container, = spec["containers"]
        self.user = spec["securityContext"]
        rights = self.container["securityContext"]
        self.assertEqual((rights["readOnlyRootFilesystem"], rights["allowPrivilegeEscalation"], rights["capabilities"]["drop"]), (True, False, ["ALL"]))
        # a container of a pod has the volumes of its first one already
        self.conf = self.engine.write("pods.conf", self.engine.settings.format(volumes="", top=self.engine.top))
        call("sh", "-c", "head -c 32 /dev/urandom | base64 | podman secret create train -")
        self.addCleanup(call, "podman", "secret", "rm", "train")
        self.addCleanup(call, "podman", "pod", "rm", "--all", "--force", "--time", "0")

    def pod(self, index, *words):
        name, user = f"train-{index}", self.user["runAsUser"]
        call("podman", "pod", "create", "--name", name, "--hostname", name, "--network", "train", "--network-alias", f"{name}.train",
             "--shm-size", "64m", "--infra-image", "hvdrun-trainer", "--infra-command", "sleep 1000", "--replace")
        env = [f"--env={one['name']}={one['value']}" for one in self.container["env"]]
        return Job(self.box, ["podman", "run", "--pod", name, "--name", f"{name}-hvdrun", "--read-only", "--read-only-tmpfs=false", "--user", f"{user}:{user}",
                              "--cap-drop", "all", "--security-opt", "no-new-privileges", "--tmpfs", "/tmp:mode=1777",
                              "--secret", f"train,target={self.env('HVDRUN_DIAL_SECRET')},gid={self.user['fsGroup']},mode=0440",
                              *env, f"--env=JOB_COMPLETION_INDEX={index}", "--workdir", "/", "hvdrun-trainer", *kube.words(self.container)[:-2], *words],
                   env={"CONTAINERS_CONF": self.conf})

    def env(self, name):
        return {one["name"]: one["value"] for one in self.container["env"]}[name]

    def test_training(self):
        pods = [self.pod(index, "--min-np", "3", "python3", "-c", REDUCE) for index in (2, 0, 1)]
        result = self.expect(pods[1].wait(120), 0)
        for rank in range(3):
            self.assertIn(f"[{rank}]<stdout>:rank {rank} of 3 user 1000 sum 6", result.lines, result.describe())
        for pod in pods:
            self.expect(pod.wait(60), 0)

    def test_one_goes_and_comes_back(self):
        """First without grace, then with it."""
        pods = [self.pod(index, "-np", "3", "sh", "-c", "echo $RANK of $WORLD_SIZE on $HVDRUN_HOSTNAME; while [ ! -e /tmp/open ]; do sleep 0.05; done")
                for index in range(3)]
        pods[0].wait_output("2 of 3 on train-2", timeout=60)
        self.assertIn("3 ranks on 3 hosts", call("podman", "exec", "train-0-hvdrun", "hvdrun", "status")[1])
        for count, (words, status) in enumerate(((("kill",), 137), (("stop", "--time", "60"), 143)), 1):
            call("podman", *words, "train-2-hvdrun")
            self.expect(pods.pop().wait(), status)
            pods[0].wait_output("1 of 2 on train-1", count=count)
            pods.append(self.pod(2))
            pods[0].wait_output("2 of 3 on train-2", count=count + 1, timeout=60)
        for index in range(3):
            call("podman", "exec", f"train-{index}-hvdrun", "touch", "/tmp/open")
        for pod in pods:
            self.expect(pod.wait(60), 0)


if __name__ == "__main__":
    main(Podman)
