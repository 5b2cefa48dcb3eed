# SPDX-License-Identifier: Apache-2.0
"""Jobs in pods: without SSH, shared files, root or a file system that can be written to (docs/kubernetes.md)."""
# ctest waits
# ctest long

import os
import random
import re
import signal
import time

import kube
from ground import SOURCE, mpi_worker, sanitized, worker
from hosts import main, network
from jobs import Job
from pods import UNTIL_OPEN, MemoryGroup, Pods
from python import python_with

PROBE = r"""
import json, os, socket, sys
def fails(action):
    try:
        action()
        return False
    except OSError:
        return True
with open("/proc/self/status") as file:
    status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
with open("/proc/self/mountinfo") as file:
    places = {line.split()[4] for line in file}
print(json.dumps({
    "user": [os.getuid(), os.geteuid(), os.getgroups()], "rights": [status[name] for name in ("CapEff", "CapBnd", "NoNewPrivs")],
    "root is read-only": fails(lambda: open("/here", "w")) and fails(lambda: open("/opt/hvdrun/here", "w")),
    "folders to write to": sorted(place for place in places if os.path.isdir(place) and os.access(place, os.W_OK)),
    "MiB of /dev/shm": os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize >> 20, "/tmp": os.listdir("/tmp"),
    "seen from elsewhere": [path for path in sys.argv[1:] if os.path.exists(path)],
    "processes": [name for name in os.listdir("/proc") if name.isdigit()],
    "no SSH": fails(lambda: socket.create_connection(("127.0.0.1", 22), 1)),
}))
"""
GROWING = """
import time
print("up", flush=True)
kept = []
while True:
    kept.append(bytearray(b"x" * (4 << 20)))
    time.sleep(0.01)
"""
TORCH = """
import datetime, torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
value = torch.full((1000,), float(dist.get_rank() + 1))
dist.all_reduce(value)
print("rank", dist.get_rank(), "of", dist.get_world_size(), "sum", int(value[7]), flush=True)
dist.destroy_process_group()
"""
JAX = """
import json, os, socket, time
host, _, port = os.environ["JAX_COORDINATOR_ADDRESS"].rpartition(":")
me, count = int(os.environ["JAX_PROCESS_ID"]), int(os.environ["JAX_NUM_PROCESSES"])
if me == 0:
    server = socket.create_server(("", int(port)), family=socket.AF_INET6, dualstack_ipv6=True)
    others = [server.accept()[0] for _ in range(count - 1)]
    seen = sorted([0] + [int(one.recv(16)) for one in others])
    for one in others:
        one.sendall(json.dumps(seen).encode())
else:
    until = time.monotonic() + 60
    while True:
        try:
            one = socket.create_connection((host.strip("[]"), int(port)), 60)
            break
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
    one.sendall(str(me).encode())
    seen = json.loads(one.recv(1000))
print("process", me, "of", f"{count}:", seen, flush=True)
"""
HOROVOD = """
import torch
import horovod.torch as hvd
hvd.init()
total = hvd.allreduce(torch.tensor([float(hvd.rank() + 1)]), op=hvd.Sum).item()
print("rank", hvd.rank(), "of", hvd.size(), "sum", int(total), flush=True)
"""


class Place(Pods):

    def test_what_a_pod_has(self):
        """The tests below would say little in a place that shares more than the network."""
        result = self.expect(self.pod(1, "/usr/bin/python3", self.program("probe.py", PROBE), self.box.work, self.secret).wait(), 0)
        self.write("probe.json", result.stdout)
        self.assertEqual(self.read_json(self.box.path("probe.json")), {
            "user": [1000, 1000, []], "rights": ["0" * 16, "0" * 16, "1"], "root is read-only": True, "folders to write to": ["/dev/shm", "/tmp"],
            "MiB of /dev/shm": 64, "/tmp": [], "seen from elsewhere": [], "processes": ["1"], "no SSH": True})


class Manifests(Pods):
    """The command lines and variables of the manifests that hvdrun prints."""

    def manifest(self, kind):
        """The words of its container up to the program, and its variables."""
        with open(os.path.join(SOURCE, "examples/kubernetes", f"{kind}.yaml"), encoding="utf-8") as file:
            spec = kube.read(file.read())[-1]["spec"]
        if kind == "trainjob":
            container = spec["trainer"]
        else:
            job = spec if kind == "job" else spec["replicatedJobs"][0]["template"]["spec"]
            self.assertEqual(job["successPolicy"], {"rules": [{"succeededIndexes": "0"}]})
            container, = job["template"]["spec"]["containers"]
        words = kube.words(container)
        self.assertEqual(words[-2:], ["python3", "train.py"])
        return words[:-2], {one["name"]: one["value"] for one in container.get("env", [])}

    def indexed(self, kind, name, indexes, train):
        words, variables = self.manifest(kind)
        return [self.pod(index, *words, "sh", "-c", train, name=f"{name}-{index}", **{**variables, "JOB_COMPLETION_INDEX": index})
                for index in indexes]

    def test_a_pod_is_missing_at_the_end(self):
        """The pod of hvdrun succeeds, and so the Job (successPolicy)."""
        pods = self.indexed("job", "train", (1, 0), "echo $RANK of $WORLD_SIZE")
        self.assertIn("[0]<stdout>:0 of 2", self.end(pods)[1].lines)

    def test_a_job(self):
        train = ("echo $RANK of $WORLD_SIZE on $HVDRUN_HOSTNAME, user $(id -u), index $JOB_COMPLETION_INDEX; "
                 "[ $WORLD_SIZE = 3 ] || exec sleep 1000")
        result = self.end(self.indexed("job", "train", (2, 1, 0), train))[2]
        self.assertNotIn("variable", result.said)  # all of them are known to hvdrun
        for index in range(3):
            self.assertIn(f"[{index}]<stdout>:{index} of 3 on train-{index}, user 1000, index {index}", result.lines, result.describe())

    def test_a_jobset(self):
        self.server = "train-pod-0-0.train"
        result = self.end(self.indexed("jobset", "train-pod-0", (3, 0, 2, 1), "echo $RANK of $WORLD_SIZE on $HVDRUN_HOSTNAME"))[1]
        self.expect_lines(result, [f"[{rank}]<stdout>:{rank} of 32 on train-pod-0-{rank // 8}" for rank in range(32)])

    def test_a_trainjob(self):
        """The runtime of Trainer sets the variables, and its pods have no secret."""
        self.server = "train-node-0-0.train"
        words, _ = self.manifest("trainjob")
        pods = [self.pod(index, *words, "sh", "-c", "echo $RANK of $WORLD_SIZE, node $GROUP_RANK", name=f"train-node-0-{index}",
                         HVDRUN_DIAL_SECRET="", PET_NNODES=2, PET_NPROC_PER_NODE=2, PET_NODE_RANK=index,
                         PET_MASTER_ADDR=self.server, PET_MASTER_PORT=29400) for index in (1, 0)]
        self.expect_lines(self.end(pods)[1], [f"[{rank}]<stdout>:{rank} of 4, node {rank // 2}" for rank in range(4)])


class Names(Pods):

    def test_where_they_come_from(self):
        """The host name; the index that Kubernetes, JobSet or Trainer tell; or a label or the name of the pod in a variable of ours."""
        ways = (("train-1", {}), ("gke-node-x7", {"JOB_COMPLETION_INDEX": 2}), ("ip-10-0-0-7", {"PET_NODE_RANK": 3}),
                ("train-9qk2", {"HVDRUN_DIAL_NAME": "train-4"}))
        pods = [self.pod(number + 1, name=name, **env) for number, (name, env) in enumerate(ways)]
        driver = self.driver("train-[1-4]:1", "sh", "-c", "echo $RANK on $HVDRUN_HOSTNAME")
        self.expect_lines(self.end([driver, *pods])[0], [f"[{rank}]<stdout>:{rank} on train-{rank + 1}" for rank in range(4)])


class Life(Pods):
    """Pods come, go and come again."""

    def start_all(self, *options, hosts="train-[0-2]:1", script=UNTIL_OPEN):
        driver = self.driver(hosts, *options, "sh", "-c", script)
        pods = {1: self.pod(1), 2: self.pod(2)}
        for rank in range(3):
            driver.wait_output(f"{rank} of 3 on train-{rank}")
        return driver, pods

    def finish(self, driver, pods):
        self.open(driver, *pods.values())
        result = self.end([driver, *pods.values()])[0]
        return result

    def is_back(self, driver, number):
        """With the rank that it had."""
        driver.wait_output(f"{number} of 3 on train-{number}", count=2, timeout=60)

    def in_random_order(self, hosts, *options):
        """Each pod of five starts some time after the others, also that of hvdrun."""
        seed = int(os.environ.get("HVDRUN_PODS_SEED", random.randrange(1 << 32)))
        window = 60 if os.environ.get("HVDRUN_NIGHTLY") else 4
        print(f"HVDRUN_PODS_SEED={seed}", flush=True)
        chance = random.Random(seed)
        begin, pods = time.monotonic(), {}
        for at, number in sorted((chance.uniform(0, window), number) for number in range(5)):
            time.sleep(max(0, begin + at - time.monotonic()))
            pods[number] = self.driver(hosts, *options, "sh", "-c", UNTIL_OPEN) if number == 0 else self.pod(number)
        for number in range(5):
            pods[0].wait_output(f" of 5 on train-{number}", timeout=60)
        driver = pods.pop(0)
        return self.finish(driver, pods)

    def test_a_fixed_job_in_random_order(self):
        result = self.in_random_order("train-[0-4]:1", "--start-timeout", "10m")
        self.expect_lines(result, [f"[{rank}]<stdout>:{rank} of 5 on train-{rank}" for rank in range(5)])

    def test_an_elastic_job_in_random_order(self):
        self.in_random_order("train-[0-4]:1", "--min-np", 2)

    def test_whoever_comes(self):
        """Without a list, hvdrun takes pods of any names; its own has no ranks."""
        driver = self.driver(None, "--min-np", 2, "--max-np", 3, "sh", "-c", UNTIL_OPEN)
        pods = {number: self.pod(number, name=f"train-{word}") for number, word in ((1, "x7k2p"), (2, "b9d4q"), (3, "m3z8w"))}
        for word in ("x7k2p", "b9d4q", "m3z8w"):
            driver.wait_output(f" of 3 on train-{word}")
        pods.pop(2).kill_all()
        pods[4] = self.pod(4, name="train-q5t1c")
        driver.wait_output(" of 3 on train-q5t1c", timeout=60)
        self.finish(driver, pods)

    def test_killed_with_grace(self):
        """The agent ends with 143 when its workers have ended, and the pod that comes in its place is on another machine."""
        driver, pods = self.start_all("-np", 3, "--min-np", 2, script=f"trap 'echo saved; exit 143' TERM; {UNTIL_OPEN}")
        pods[1].terminate()
        driver.wait_output(r"\[1\]<stdout>:saved")
        driver.wait_output("1 of 2 on train-2")
        self.expect(pods.pop(1).wait(), 143)
        pods[1] = self.pod(1, at=4)
        self.is_back(driver, 1)
        self.expect_not_said(self.finish(driver, pods), "lost train")

    def test_killed_without_grace(self):
        driver, pods = self.start_all("-np", 3, "--min-np", 2)
        pods.pop(1).kill_all()
        driver.wait_output("1 of 2 on train-2")
        pods[1] = self.pod(1, at=4)
        self.is_back(driver, 1)
        self.expect_said(self.finish(driver, pods), "lost train-1")

    def test_a_look_from_outside(self):
        """As `kubectl exec` does it, in the pod of hvdrun: its commands find the job."""
        driver, pods = self.start_all("-np", 3, "--min-np", 2)
        inside = ("nsenter", "--target", driver.init().pid, "--all", "setpriv", "--reuid", 1000, "--regid", 1000, "--clear-groups", "hvdrun")
        path = {"PATH": "/opt/hvdrun:/usr/bin", "TMPDIR": None, "XDG_RUNTIME_DIR": None, "HOME": "/"}
        self.assertIn("train-2", self.expect(Job(self.box, [*inside, "status"], env=path).wait(), 0).stdout)
        self.expect(Job(self.box, [*inside, "drain", "train-2"], env=path).wait(), 0)
        driver.wait_output("1 of 2 on train-1")
        self.expect(pods.pop(2).wait(), 0)
        self.finish(driver, pods)

    def test_a_fixed_job_loses_a_pod(self):
        driver, pods = self.start_all()
        pods.pop(2).kill_all()
        self.expect_said(self.end([driver, pods[1]], 121)[0], "train-2[^\n]* lost")

    def test_the_pod_of_hvdrun_is_killed(self):
        driver, pods = self.start_all()
        driver.kill_all()
        for result in self.end(pods.values(), 125):
            self.assertEqual(result.stderr.splitlines()[-1:], ["hvdrun-agent: lost the connection to hvdrun, and ends the workers"])

    def test_a_short_cut(self):
        """The pod answers again before it counts as lost, and no worker starts again."""
        driver, pods = self.start_all("-np", 3, "--min-np", 2, "--node-timeout", "5m")
        network.link(2, False)
        driver.wait_output("train-2: no heartbeat for", name="stderr", timeout=200)
        network.link(2, True)
        driver.wait_output("train-2[^\n]* answers again", name="stderr", timeout=60)
        result = self.finish(driver, pods)
        self.assertEqual(len(result.lines), 3, result.describe())

    def test_a_long_cut(self):
        """The others go on; a new pod takes the place, also while the old one still runs on its machine. That one ends its workers."""
        driver, pods = self.start_all("-np", 3, "--min-np", 2)
        network.link(2, False)
        driver.wait_output("1 of 2 on train-1", timeout=60)
        old, pods[2] = pods[2], self.pod(2, at=4)
        self.is_back(driver, 2)
        network.link(2, True)
        self.assertEqual(self.expect(old.wait(90), 125).stderr.splitlines()[-1:],
                         ["hvdrun-agent: lost the connection to hvdrun, and ends the workers"])
        self.finish(driver, pods)

    def test_a_limit_of_memory(self):
        """The kernel kills a rank that outgrows it, and hvdrun says so. The agent and the other pods live on."""
        group = MemoryGroup("grows", (768 if sanitized() else 192) << 20)
        self.addCleanup(group.close)
        if group.folder is None:
            self.skipTest("this machine lets us make no cgroup with a limit of memory")
        path = self.program("grows.py", GROWING)
        driver = self.driver("train-[0-1]:1", "sh", "-c", f"[ $RANK = 0 ] && exec sleep 1000; exec /usr/bin/python3 {path}")
        pods = [self.pod(1, group=group)]
        result = self.expect(driver.wait(60), 137)
        self.expect_blame(result, 1, signal_number=signal.SIGKILL, host="train-1")
        self.expect_said(result, "out of memory: the kernel killed processes on train-1 while the rank ran")
        self.end(pods, 137)


class Programs(Pods):
    """Workers of all kinds, without shared files."""

    def run_on(self, hosts, *words, **env):
        pods = [self.pod(1), self.pod(2)]
        result = self.expect(self.driver(hosts, *words, **env).wait(120), 0)
        self.end(pods)
        return result

    def in_image(self, name, kind):
        return os.path.join("/app/workers", os.path.basename(mpi_worker(name, kind)))

    def test_openmpi(self):
        """Through PMIx."""
        result = self.run_on("train-[1-2]:2", self.in_image("mpi_hello", "openmpi"), OMPI_MCA_mpi_yield_when_idle=1)
        self.expect_lines(result, [f"[{rank}]<stdout>:rank {rank} of 4 sum 6" for rank in range(4)])

    def test_mpich(self):
        """Through PMI-1. MPICH may hang at its end (test_hosts_mpi.py), so the job is ended when all ranks have spoken."""
        pods = [self.pod(1), self.pod(2)]
        driver = self.driver("train-[1-2]:2", self.in_image("mpi_hello", "mpich"))
        for rank in range(4):
            driver.wait_output(rf"\[{rank}\]<stdout>:rank {rank} of 4 sum 6", timeout=60)
        driver.interrupt()
        status = driver.wait().status
        self.assertIn(status, (0, 130), driver.describe())
        self.end(pods, status)

    def test_mpich_in_one_pod(self):
        pod = self.pod(1)
        result = self.expect(self.driver("train-1:3", self.in_image("mpi_hello", "mpich")).wait(120), 0)
        self.expect_lines(result, [f"[{rank}]<stdout>:rank {rank} of 3 sum 3" for rank in range(3)])
        self.end([pod])

    def test_jax(self):
        """A stand-in for jax.distributed: process 0 serves the coordinator's address, and all others come to it."""
        result = self.run_on("train-1:1,train-2:2", "/usr/bin/python3", self.program("jax_job.py", JAX))
        self.expect_lines(result, [f"[{rank}]<stdout>:process {rank} of 3: [0, 1, 2]" for rank in range(3)])

    def test_horovod(self):
        """The stand-in for Horovod's own worker: its controller finds all ranks through the agents."""
        result = self.run_on("train-1:1,train-2:2", f"/app/workers/{os.path.basename(worker('horovod_worker'))}")
        sums = set(re.findall(r"rank (\d) of 3: sum (\d+)", result.stdout))
        self.assertEqual(sums, {(str(rank), "3") for rank in range(3)}, result.describe())

    def python(self, *modules):
        found = os.path.realpath(python_with(*modules))
        if not found.startswith("/usr/"):
            self.skipTest(f"{found} is not in the image of the pods")
        return found

    def test_the_package_horovod(self):
        """The package of this project."""
        python = self.python("torch", "cloudpickle")
        result = self.run_on("train-[0-2]:1", "--horovod", "bundled", python, self.program("hvd_job.py", HOROVOD), OMP_NUM_THREADS=1)
        self.expect_lines(result, [f"[{rank}]<stdout>:rank {rank} of 3 sum 6" for rank in range(3)])

    def test_pytorch(self):
        """Also beside the driver."""
        python = self.python("torch")
        result = self.run_on("train-[0-2]:1", python, self.program("torch_job.py", TORCH), OMP_NUM_THREADS=1)
        self.expect_lines(result, [f"[{rank}]<stdout>:rank {rank} of 3 sum 6" for rank in range(3)])


if __name__ == "__main__":
    main()
