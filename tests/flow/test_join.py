# SPDX-License-Identifier: Apache-2.0
"""Lines of torchrun that somebody starts on each host: the copies become one job (docs/pytorch.md)."""
# ctest waits
# ctest long

import os
import signal

from ground import HVDRUN, sanitized, wait_until
from hosts import Hosts, main, network, unittest
from jobs import Job
from procfs import kill
from python import find_python

PORT = 29400
WHERE = ("--no-python", "sh", "-c", "echo $RANK of $WORLD_SIZE on $HVDRUN_HOSTNAME at $MASTER_ADDR run $TORCHELASTIC_RUN_ID")
REDUCE = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
one = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(one)
print("rank", dist.get_rank(), "sum", int(one), "of", dist.get_world_size(), flush=True)
dist.barrier()
"""


class Joining(Hosts):

    def copy(self, number, *line, before=(), env=None):
        """A copy of hvdrun on a host, as a scheduler would start it."""
        return self.copy_of([HVDRUN, *before, "torchrun", *line], number, env)

    def copy_of(self, words, number=1, env=None):
        return Job(self.box, self.host(number).enter(words, cwd=self.box.work), env={"TMPDIR": "/tmp", "XDG_RUNTIME_DIR": None, **(env or {})})

    def line(self, *words, host="node1", nodes=3, each=1):
        return ["--nnodes", nodes, "--nproc-per-node", each, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"{host}:{PORT}",
                "--rdzv-id", "77", *words]

    def end(self, copies, status=0):
        return [self.expect(copy.wait(120), status) for copy in copies]

    @staticmethod
    def waiting(copy, why="Connection refused"):
        copy.wait_output(rf"waiting for hvdrun: .*{why}", name="stderr")
        return copy

    def wait_driver(self):
        wait_until(lambda: str(PORT) in self.host(1).run("ss", "-Hltn"), "the driver waits for the others", 60)

    @staticmethod
    def ranks_of(result):
        return len(result.stdout.splitlines())

    def expect_ranks(self, result, lines):
        self.expect_lines(result, [f"[{rank}]<stdout>:{line}" for rank, line in enumerate(lines)])


class OneMachine(Joining):
    """Several copies on one machine, as users try it."""

    @unittest.skipIf(sanitized(), "PyTorch's own threads say nothing about hvdrun")
    def test_pytorch(self):
        python = find_python("torch")
        if python is None:
            self.skipTest("no Python has torch (Debian: apt install python3-torch)")
        env = {"PYTHON_EXEC": python, "OMP_NUM_THREADS": 1}
        line = self.line(self.write("job.py", REDUCE), host="localhost", nodes=2, each=2)
        results = self.end([self.copy(1, *line, env=env) for _ in range(2)])
        driver, = [result for result in results if result.stdout]
        self.expect_ranks(driver, [f"rank {rank} sum 10 of 4" for rank in range(4)])

    def test_the_first_is_the_driver(self):
        """Whichever the kernel lets have the port."""
        line = self.line(*WHERE, host="127.0.0.1", nodes=3)
        results = self.end([self.copy(1, *line) for _ in range(3)])
        self.assertEqual(sorted(self.ranks_of(result) for result in results), [0, 0, 3])

    def test_one_machine_is_not_many(self):
        line = self.line(*WHERE, host="127.0.0.1", nodes=2)
        driver, = [result for result in self.end([self.copy(1, *line) for _ in range(2)]) if result.stdout]
        self.expect_said(driver, r"node-1 is the same machine as localhost: .*; start one agent there \(or one copy of the line\)")

    def test_ranks_of_hosts(self):
        """Of the static backend; either starts first. The status is the same everywhere."""
        for first in (0, 1):
            with self.subTest(first=first):
                line = ["--nnodes", 2, "--master-addr", "127.0.0.1", "--master-port", PORT, *WHERE[:-1], "echo $RANK on $HVDRUN_HOSTNAME "
                        "$MASTER_PORT; [ $RANK = 0 ] || exit 7"]
                copies = {}
                for rank in (first, 1 - first):
                    copies[rank] = self.copy(1, "--node-rank", rank, *line)
                    if rank == 1 and first == 1:
                        self.waiting(copies[rank])
                result = self.end([copies[0], copies[1]], 7)[0]
                self.assertIn("[1]<stdout>:1 on node-1", result.stdout)
                self.assertNotIn(str(PORT), result.stdout, "the port of the meeting is in use")


    def test_cores_of_ranks(self):
        """No machine has so many: the copies have what stands before the line."""
        words = [HVDRUN, "--map-by", "ppr:1:node:PE=100000", "deepspeed", "--num_nodes", 2, "--master_addr", "127.0.0.1", "--master_port", PORT,
                 "--no_python", "--no_local_rank", "true"]
        copies = [self.copy_of([*words[:4], "--node_rank", rank, *words[4:]]) for rank in range(2)]
        self.expect_said(self.end(copies)[0], "node-1: --cpus-per-proc 100000: a worker has fewer cores")


class ManyHosts(Joining):

    def test_the_node_of_the_endpoint_is_the_driver(self):
        copies = [self.waiting(self.copy(number, *self.line(*WHERE))) for number in (2, 3)]
        copies.append(self.copy(1, *self.line(*WHERE)))
        results = self.end(copies)
        self.expect_ranks(results[2], [f"{rank} of 3 on {name} at {network.address(1)} run 77"
                                       for rank, name in enumerate(("localhost", "node-1", "node-2"))])
        self.expect_said(results[2], rf"without a secret \(HVDRUN_DIAL_SECRET=FILE\), whoever knows the rendezvous id \(77\) and reaches port {PORT}")
        self.assertEqual([result.stdout for result in results[:2]], ["", ""])

    def test_the_driver_is_first(self):
        copies = [self.copy(1, *self.line(*WHERE)), self.copy(3, *self.line(*WHERE)), self.copy(2, *self.line(*WHERE))]
        self.assertEqual(self.ranks_of(self.end(copies)[0]), 3)

    @unittest.skipIf(sanitized(), "PyTorch's own threads say nothing about hvdrun")
    def test_pytorch(self):
        python = find_python("torch")
        if python is None:
            self.skipTest("no Python has torch (Debian: apt install python3-torch)")
        line = self.line(self.write("job.py", REDUCE))
        copies = [self.copy(number, *line, env={"PYTHON_EXEC": python, "OMP_NUM_THREADS": 1}) for number in (1, 2, 3)]
        self.expect_ranks(self.end(copies)[0], [f"rank {rank} sum 6 of 3" for rank in range(3)])

    def test_variables_of_pods(self):
        """As Kubeflow's Trainer sets them. Their ranks say where each one is."""
        def pod(number, rank):
            env = {"PET_NNODES": "3", "PET_NPROC_PER_NODE": "2", "PET_NODE_RANK": rank, "PET_MASTER_ADDR": "node1",
                   "PET_MASTER_PORT": "29500", "NUMBER": number}
            return self.copy(number, "--no-python", "sh", "-c", "echo $RANK $GROUP_RANK $HVDRUN_HOSTNAME $MASTER_ADDR", env=env)
        copies = [pod(1, 0), pod(2, 2), pod(3, 1)]
        result = self.end(copies)[0]
        names = ("localhost", "node-1", "node-2")
        self.expect_ranks(result, [f"{rank} {rank // 2} {names[rank // 2]} node1" for rank in range(6)])

    def test_other_numbers_of_ranks(self):
        """Each copy says how many ranks its host gets; a word is counted there."""
        report, hosts = self.box.path("report"), ("localhost", "node-1", "node-2")
        copies = [self.copy(number, *self.line(*WHERE, each=each), before=["--report", report]) for number, each in ((1, 3), (2, 1), (3, 2))]
        result = self.end(copies)[0]
        counts = [len([line for line in result.stdout.splitlines() if f" of 6 on {name} " in line]) for name in hosts]
        self.assertEqual((counts[0], sorted(counts[1:])), (3, [1, 2]), result.describe())
        self.assertEqual([rank["host"] for rank in self.read_json(report)["ranks"]], [name for name in hosts for _ in range(counts.pop(0))])
        copies = [self.copy(number, "--node-rank", number - 1, *self.line(*WHERE, nodes=2, each=each))
                  for number, each in ((1, 1), (2, "auto"))]
        self.assertGreaterEqual(self.ranks_of(self.end(copies)[0]), 2)

    @unittest.skipIf(any(map(os.path.exists, ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd"))), "this machine has GPUs, or a driver of them")
    def test_gpus_that_only_nvidia_smi_knows(self):
        """As with WSL. The agents ask it; a dry run does not need it."""
        smi = self.write("nvidia-smi", "#!/bin/sh\nprintf 'GPU 0: x\\nGPU 1: x\\n'\n", 0o755)
        env = {"PATH": f"{os.path.dirname(smi)}:{os.environ['PATH']}"}
        line = self.line(*WHERE, nodes=2, each="gpu")
        for number in (1, 2):
            self.expect_said(self.expect(self.copy(number, *line).wait(), 123), "this machine has no GPU that hvdrun can see")
            self.expect(self.copy(number, *line, before=["--dry-run"]).wait(), 0)
            self.addCleanup(self.host(number).run, "sh", "-c", "umount -l /dev; rm -rf /tmp/dev", check=False)
            self.host(number).run("sh", "-c", "mkdir -p /tmp/dev/upper /tmp/dev/work && mount -t overlay overlay -o "
                                  "lowerdir=/dev,upperdir=/tmp/dev/upper,workdir=/tmp/dev/work /dev && touch /dev/dxg", check=False)
            if not os.path.exists(self.host(number).path("/dev/dxg")):
                self.skipTest("no overlay over /dev")
        for each in ("gpu", "auto"):
            line = self.line(*WHERE, nodes=2, each=each)
            result = self.end([self.copy(number, *line, env=env) for number in (1, 2)])[0]
            self.assertEqual(self.ranks_of(result), 4, result.describe())

    def test_last_call(self):
        """Of MIN:MAX, the first hosts wait for more before they start; the last one ends that."""
        line = self.line("--no-python", "sh", "-c", "echo $RANK of $WORLD_SIZE", nodes="1:3")
        copies = [self.copy(number, "--rdzv-conf=last_call_timeout=600", *line) for number in (1, 2)]
        copies[0].wait_output(r"[12] slots? (is|are) enough to start; waiting \d+ s for more hosts", name="stderr")
        copies.append(self.copy(3, *line))
        self.expect_ranks(self.end(copies)[0], [f"{rank} of 3" for rank in range(3)])
        job = self.copy(1, "--rdzv-conf", "last_call_timeout=1", *line)
        self.expect_ranks(self.end([job])[0], ["0 of 1"])

    def test_is_host(self):
        """The address is one of no interface, as of a load balancer."""
        self.rig.alias(1, ["service"])
        line = self.line(*WHERE, host="service", nodes=2)
        copies = [self.copy(2, "--rdzv-conf", "is_host=false", *line), self.copy(1, "--rdzv-conf=is_host=true", *line)]
        self.assertEqual(self.ranks_of(self.end(copies)[1]), 2)

    def test_a_name_that_is_not_known_yet(self):
        copies = [self.copy(number, *self.line(*WHERE, host="later", nodes=2)) for number in (1, 2)]
        for copy in copies:
            copy.wait_output("waiting for the host of the driver: cannot look up later", name="stderr")
        self.rig.alias(1, ["later"])
        self.assertEqual(self.ranks_of(self.end(copies)[0]), 2)

    def test_tasks_of_srun(self):
        """Of one srun, or of one for each host."""
        def task(number, tasks, before):
            env = {"SLURM_JOB_ID": 7, "SLURM_STEP_ID": number, "SLURM_STEP_NUM_TASKS": tasks, "SLURM_PROCID": number % tasks,
                   "SLURM_JOB_NODELIST": "node[1-2]", "SLURM_JOB_NUM_NODES": 2, "SLURM_TASKS_PER_NODE": "1(x2)",
                   "SLURMD_NODENAME": f"node{number}"}
            return self.copy(number, *self.line(*WHERE, nodes=2), env=env, before=before)
        for tasks, before in ((2, ()), (1, ("--scheduler", "none"))):
            with self.subTest(tasks=tasks):
                self.assertEqual(self.ranks_of(self.end([task(number, tasks, before) for number in (1, 2)])[0]), 2)

    def test_accelerate(self):
        def copy(number, rank):
            words = [HVDRUN, "accelerate", "launch", "--num_machines", 2, "--machine_rank", rank, "--main_process_ip", "node1",
                     "--main_process_port", PORT, "--num_processes", 4, "--no_python", "sh", "-c", "echo $RANK of $WORLD_SIZE"]
            return self.copy_of(words, number)
        self.expect_ranks(self.end([copy(1, 0), copy(2, 1)])[0], [f"{rank} of 4" for rank in range(4)])

    def test_a_host_goes_and_comes_back(self):
        gate, open_gate = self.box.gate()
        line = self.line("--max-restarts", 3, "--no-python", "sh", "-c", f"echo $RANK of $WORLD_SIZE; while [ ! -e {gate} ]; do sleep 0.05; done",
                         nodes="1:2")
        job, other = self.copy(1, *line), self.copy(2, *line)
        job.wait_output("1 of 2")
        kill(self.host(2).agent().pid)
        job.wait_output("0 of 1")
        self.assertNotEqual(other.wait().status, 0)
        other = self.copy(2, *line)
        job.wait_output("1 of 2", count=2, timeout=60)
        open_gate()
        self.end([job, other])

    def test_a_host_crashes(self):
        """Of a job with a fixed size and restarts, another host takes the place."""
        gate, open_gate = self.box.gate()
        line = self.line("--max-restarts", 3, "--no-python", "sh", "-c", f"echo $RANK of $WORLD_SIZE; while [ ! -e {gate} ]; do sleep 0.05; done",
                         nodes=2)
        job, other = self.copy(1, *line), self.copy(2, *line)
        job.wait_output("1 of 2")
        self.host(2).crash()
        other.wait()
        other = self.copy(3, *line)
        job.wait_output("1 of 2", count=2, timeout=90)
        open_gate()
        self.end([job, other])


class Mistakes(Joining):

    def test_another_id_or_secret(self):
        own, other = self.write("own", "0" * 32, 0o600), self.write("other", "1" * 32, 0o600)
        for right, wrong, words in (({}, {}, ["--rdzv-id", "78"]), ({"HVDRUN_DIAL_SECRET": own}, {"HVDRUN_DIAL_SECRET": other}, []),
                                    ({"HVDRUN_DIAL_SECRET": own}, {}, [])):
            with self.subTest(wrong=wrong, words=words):
                line = self.line(*WHERE, nodes=2)
                job = self.copy(1, *line, env=right)
                self.wait_driver()
                stranger = self.copy(3, "--rdzv-conf", "join_timeout=60", *line[:-len(WHERE)], *words, *WHERE, env=wrong)
                job.wait_output("refused a connection from .*does not have the key", name="stderr")
                result = self.expect(stranger.wait(), 125)
                self.assertRegex(result.stderr.splitlines()[-1], rf"^hvdrun-agent: the hvdrun at node1:{PORT} is of another job "
                                 r"\(.*does not have the key.*\): give both the same secret and --dial-id \(for torchrun, --rdzv-id\)")
                friend = self.copy(2, *line, env=right)
                result = self.end([job, friend])[0]
                self.assertEqual(self.ranks_of(result), 2, result.describe())
                (self.expect_not_said if right else self.expect_said)(result, "without a secret")

    def test_a_driver_of_a_job_before(self):
        """It is still there when the copies of the next job come, and ends in time."""
        line = self.line(*WHERE, nodes=2)
        before = self.copy(1, "--node-rank", 0, *line)
        self.wait_driver()
        line = [*line[:-len(WHERE)], "--rdzv-id", "78", "--rdzv-conf", "join_timeout=3000", *WHERE]  # a tenth of it is for strangers
        other = self.waiting(self.copy(2, *line), "have the key")
        for one in self.host(1).processes():
            if one.comm == "hvdrun":
                os.kill(one.pid, signal.SIGTERM)
        before.wait()
        self.assertEqual(self.ranks_of(self.end([self.copy(1, *line), other])[0]), 2)

    def test_copies_that_differ(self):
        """The job is that of the driver. With restarts, the numbers of ranks must be the same."""
        def copies(*words, nodes=2, each=1, **options):
            line = self.line(*words, nodes=2, **options)
            return self.copy(1, *line, *WHERE), self.copy(2, *self.line(*words, nodes=nodes, each=each), "--no-python", "true", "x\ny")
        result = self.end(copies(nodes=3))[0]
        self.expect_said(result, r"hvdrun: node-1: the line there has '3 true x\?y' where this one has '2 sh -c echo ")
        self.assertEqual(self.ranks_of(result), 2)
        job, other = copies("--max-restarts", 1, each=4)
        job.wait_output("node-1: its line wants 4 for the ranks of each host, and that of the driver 1; with restarts or MIN:MAX", name="stderr")
        said = self.expect(other.wait(), 125).stderr
        self.assertIn("hvdrun-agent: hvdrun does not take this host: its line wants 4 for the ranks of each host", said)
        self.assertNotIn("lost the connection", said)
        for one in self.host(1).processes():
            if one.comm == "hvdrun":
                os.kill(one.pid, signal.SIGTERM)
        job.wait()

    def test_too_few_ranks(self):
        """The driver learns it when the others are there, one of which it did not need so far."""
        copies = [self.copy(number, "--node-rank", number - 1, *self.line(*WHERE, each=each), before=["-np", 4] if number == 1 else ())
                  for number, each in ((1, 2), (2, 1))]
        self.expect_said(self.expect(copies[0].wait(), 123),
                         r"-np beside the lines of the hosts: not enough slots: 4 ranks wanted, 3 slots found \(localhost: 2, node-1: 1\)")
        self.expect(copies[1].wait(), 123)

    def test_a_driver_that_never_comes(self):
        result = self.expect(self.copy(2, "--rdzv-conf", "join_timeout=5", *self.line(*WHERE)).wait(), 125)
        self.assertRegex(result.stderr.splitlines()[-1], rf"^hvdrun-agent: cannot reach hvdrun \({network.address(1)}:{PORT}: Connection refused\)")
        self.expect(self.copy(2, *self.line(*WHERE), before=["--start-timeout", "5s"]).wait(), 125)
        result = self.expect(self.copy(2, "--rdzv-conf", "join_timeout=1", *self.line(*WHERE, host="nowhere")).wait(), 125)
        self.expect_said(result, r"cannot look up nowhere:29400: .*; the copies of this line meet there")

    def test_two_of_rank_0(self):
        line = ["--node-rank", 0, *self.line(*WHERE, nodes=2)]
        first = self.copy(1, *line)
        self.wait_driver()
        result = self.expect(self.copy(1, *line).wait(), 125)
        self.expect_said(result, rf"cannot open port {PORT}, where agents dial in .*: has another copy node rank 0, too")
        for one in self.host(1).processes():
            if one.comm == "hvdrun":
                os.kill(one.pid, signal.SIGTERM)
        first.wait()

    def test_others_that_never_come(self):
        result = self.expect(self.copy(1, "--rdzv-conf", "join_timeout=10", *self.line(*WHERE)).wait(90), 125)
        self.expect_said(result, "node-1: connect: no agent of this name has dialled in")

    def test_what_it_says_without_others(self):
        before = ["--dry-run"]
        result = self.expect(self.copy(2, *self.line(*WHERE, host="nowhere"), before=before).wait(), 0)
        for name in ("localhost", "node-1", "node-2"):
            self.assertIn(name, result.stdout)
        for number in (1, 2):  # each copy says so at once
            result = self.expect(self.copy(number, "--max-restarts", 1, *self.line(*WHERE, each="cpu")).wait(), 2)
            self.expect_said(result, "hvdrun counts only the GPUs of other hosts")
        result = self.expect(self.copy(2, "--node-rank", 3, *self.line(*WHERE)).wait(), 2)
        self.expect_said(result, "the line has hosts 0 to 2, and this is host 3")
        for words in (["-H", "a,b"], ["-H", "a,b", "--transport", "local"]):
            result = self.expect(self.copy(1, *self.line(*WHERE), before=words).wait(), 2)
            self.expect_said(result, "the line wants 3 hosts, and hvdrun knows 2, so it does not wait for others at node1:29400")


if __name__ == "__main__":
    main()
