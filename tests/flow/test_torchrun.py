# SPDX-License-Identifier: Apache-2.0
"""Lines of torchrun, as they stand (docs/pytorch.md): beside the real torchrun, and with real torch.distributed (gloo)."""
# ctest waits

import json
import os
import re
import subprocess
import unittest

from python import find_python
from rig import HVDRUN, Flow, Job, main, sanitized

SHOW = """
import json, os, sys
names = [n for n in os.environ if n.startswith(("TORCHELASTIC_", "GROUP_", "ROLE_", "LOCAL_", "MASTER_"))
         and n not in ("LOCAL_SIZE",)] + ["RANK", "WORLD_SIZE"]
shown = json.dumps({"env": {n: os.environ[n] for n in sorted(names)}, "argv": sys.argv, "name": __name__})
os.write(1, f"SHOW {shown}\\n".encode())  # at once: torchrun's ranks share a stream
"""
REDUCE = """
import os, sys
import torch, torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    dist.init_process_group("gloo")
    one = torch.ones(1) * (dist.get_rank() + 1)
    dist.all_reduce(one)
    print("sum", int(one), "of", dist.get_world_size(), "restart", os.environ["TORCHELASTIC_RESTART_COUNT"], flush=True)
    dist.barrier()
    if sys.argv[1:] == [os.environ["RANK"]]:
        raise ValueError("no more data")
    if sys.argv[1:] == ["kill"] and os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os.kill(os.getpid(), 9)
    if len(sys.argv) > 1:
        dist.barrier()
main()
"""
TALK = """
import os, sys
print("out", os.environ["RANK"], flush=True)
print("err", os.environ["RANK"], file=sys.stderr, flush=True)
"""


class Line(Flow):

    modules = ()

    def setUp(self):
        super().setUp()
        self.python = find_python(*self.modules)
        if self.python is None:
            self.skipTest("no Python has torch (Debian: apt install python3-torch)")

    def torchrun(self, *args, before=(), env=None, **options):
        own = {"PYTHON_EXEC": self.python, "OMP_NUM_THREADS": 1, **(env or {})}
        return self.run_job(*before, "torchrun", *args, env=own, **options)

    def shown(self, result):
        """What each rank shows, by its rank."""
        found = [json.loads(line) for line in re.findall(r"SHOW (\{.*\})$", result.stdout, re.M)]
        return {int(one["env"]["RANK"]): one for one in found}


class Lines(Line):

    def test_ways_to_start_a_program(self):
        script = self.write("show.py", SHOW)
        plain = self.shown(self.expect(self.torchrun("--nproc-per-node", 2, script, "a", ":", "--b"), 0))
        self.assertEqual(sorted(plain), [0, 1])
        self.assertEqual(plain[1]["argv"], [script, "a", ":", "--b"])
        module = self.shown(self.expect(self.torchrun("--nproc_per_node=2", "-m", "show", "a"), 0))
        self.assertEqual(module[0]["argv"][1:], ["a"])
        path = self.shown(self.expect(self.torchrun("--run-path", script, "a"), 0))
        self.assertEqual((path[0]["argv"], path[0]["name"]), ([script, "a"], "__main__"))
        bare = self.expect(self.torchrun("--no-python", "--nproc-per-node", 2, "sh", "-c", "echo rank $RANK"), 0)
        self.expect_lines(bare, ["[0]<stdout>:rank 0", "[1]<stdout>:rank 1"])

    def test_a_link_with_its_name(self):
        script = self.write("show.py", SHOW)
        link = self.box.path("torchrun")
        os.symlink(HVDRUN, link)
        job = Job(self.box, [link, "--standalone", "--nproc-per-node", "2", script, "status"],
                  env={"PYTHON_EXEC": self.python})
        self.assertEqual(sorted(self.shown(self.expect(job.wait(), 0))), [0, 1])

    def test_variables_as_in_a_pod(self):
        script = self.write("show.py", SHOW)
        env = {"PET_NNODES": "1", "PET_NPROC_PER_NODE": "2", "PET_NODE_RANK": "0", "PET_MASTER_ADDR": "127.0.0.1",
               "PET_MASTER_PORT": "29400"}
        shown = self.shown(self.expect(self.torchrun(script, env=env), 0))
        self.assertEqual(sorted(shown), [0, 1])
        self.assertEqual({one["env"]["MASTER_PORT"] for one in shown.values()}, {"29400"})

    def test_hosts(self):
        script = self.write("show.py", SHOW)
        hosts = ["-H", "a:1,b:1,c:1", "--transport", "local"]
        result = self.torchrun("--nnodes", 2, "--nproc-per-node", 2, "--role", "trainer", "--rdzv-id", 77,
                               "--rdzv-backend", "c10d", "--rdzv-endpoint", "a:29400", script, before=hosts)
        shown = self.shown(self.expect(result, 0))
        for rank in range(4):
            env = shown[rank]["env"]
            self.assertEqual([env[n] for n in ("WORLD_SIZE", "GROUP_RANK", "LOCAL_RANK", "ROLE_NAME", "TORCHELASTIC_RUN_ID")],
                             ["4", str(rank // 2), str(rank % 2), "trainer", "77"], result.describe())
        result = self.expect(self.torchrun("--nproc-per-node", 1, script, before=hosts), 0)
        self.assertEqual(sorted(self.shown(result)), [0, 1, 2], "without --nnodes, all hosts")

    def test_the_own_address_is_that_of_this_machine(self):
        line = ["--local-addr", "here.example", "--no-python", "sh", "-c", "echo at $MASTER_ADDR"]
        result = self.expect(self.torchrun(*line), 0)
        self.expect_lines(result, ["[0]<stdout>:at here.example"])
        result = self.expect(self.torchrun(*line, before=["-H", "a", "--transport", "local"]), 0)
        self.assertNotIn("here.example", result.stdout)

    def test_restarts_on_the_slots_of_the_line(self):
        script = self.write("show.py", SHOW)
        result = self.torchrun("--nproc-per-node", 2, "--max-restarts", 3, script,
                               before=["-H", "a:1,b:1", "--transport", "local"])
        shown = self.shown(self.expect(result, 0))
        self.assertEqual(sorted(shown), [0, 1, 2, 3])
        self.assertEqual({one["env"]["TORCHELASTIC_MAX_RESTARTS"] for one in shown.values()}, {"3"})
        result = self.torchrun("--nnodes", 2, "--nproc-per-node", 1, "--max-restarts", 1, "--no-python", "sh", "-c",
                               '[ "$RANK $TORCHELASTIC_RESTART_COUNT" != "1 0" ] || kill -9 $PPID; echo $RANK of $WORLD_SIZE',
                               before=["-H", "a:1,b:1,c:1", "--transport", "local"])
        self.expect_said(self.expect(result, 0), r"epoch 2: 2 ranks on 2 hosts \(lost b: ")

    def test_hosts_that_a_script_finds(self):
        script, finds = self.write("show.py", SHOW), self.write("discover.sh", "#!/bin/sh\necho a\necho b\n", 0o755)
        result = self.torchrun("--nnodes", 2, "--nproc-per-node", 2, "--max-restarts", 1, script,
                               before=["--host-discovery-script", finds, "--transport", "local"])
        self.assertEqual(sorted(self.shown(self.expect(result, 0))), [0, 1, 2, 3])

    def test_refusals(self):
        result = self.expect(self.torchrun("--nproc-per-node", "x", "--rdzv-backend", "etcd", "--logs-specs", "a", "t.py"), 2)
        self.assertEqual(len(result.stderr.splitlines()), 3, result.describe())
        for line, hosts in ((["--nnodes", 2], 2), (["--nnodes", "3:4"], 3)):
            result = self.expect(self.torchrun(*line, "--nproc-per-node", 1, "t.py"), 2)
            self.expect_said(result, f"the line wants {hosts} hosts, and hvdrun knows 1; name them before")
        result = self.expect(self.torchrun("--nnodes", 2, "--master-addr", "node7", "t.py", before=["-H", "a"]), 2)
        self.expect_said(result, "hvdrun knows 1, so it does not wait for others at node7:29500; name all hosts, or none")
        result = self.expect(self.torchrun("--nproc-per-node", 1, "t.py", before=["-np", 2]), 2)
        self.expect_said(result, "-np beside the line of torchrun: .*ppr:1:node has room for 1 rank on 1 host, but 2 are wanted")
        result = self.expect(self.torchrun("--nproc-per-node", "cpu", "t.py", before=["-H", "a,b"]), 2)
        self.expect_said(result, r"torchrun \(--map-by\): hvdrun counts only the GPUs of other hosts")
        result = self.expect(self.torchrun("--nnodes", 1, "--node-rank", 1, "t.py"), 2)
        self.expect_said(result, "the line is that of host 1: start hvdrun once, .*; or on each host, without -H")

    def test_all_mistakes_and_the_line_without_them(self):
        result = self.torchrun("--foo=1", "-H", "a", before=["--tranport", "local"])
        self.expect_said(self.expect(result, 2), "unknown option '--tranport': did you mean '--transport'")
        self.expect_said(result, "torchrun: --foo=1: unknown option\n")
        self.expect_said(result, "-H is an option of hvdrun: write it before the launcher, as in hvdrun -H ... torchrun ...")
        self.assertNotIn("--foo is an option", result.stderr)
        result = self.expect(self.torchrun("--nproc-per-node", "x", "t.py", before=["--timeout", "y"]), 2)
        self.expect_said(result, "torchrun: --nproc-per-node x: expected a number.*\n.*--timeout: 'y' is not a duration")
        result = self.torchrun("--nnodes", 2, "--numa-binding", "node", "t.py", "a b", before=["-H", "a,b"])
        self.expect_said(self.expect(result, 2), "write: hvdrun -H a,b torchrun --nnodes 2 t.py 'a b'\n")

    def test_ranks_before_the_line(self):
        """They would be lost: the line says the ranks of each host."""
        result = self.expect(self.torchrun("t.py", before=["--nproc_per_node", 2]), 2)
        self.expect_said(result, "--nproc_per_node beside the line of torchrun, which has the ranks of each host: "
                                 "leave it out, and write it behind torchrun")

    def test_help(self):
        result = self.expect(self.torchrun("--help"), 0)
        for line in ("  --nproc-per-node  +the same", "  --role  +as an option of hvdrun: -x ROLE_NAME=[$]1",
                     "  --numa-binding  +refused: write --bind-to"):
            self.assertRegex(result.stdout, line)
        self.assertNotIn("--num-gpus", result.stdout)
        result = self.expect(self.run_job("accelerate", "launch", "-h"), 0)
        self.assertRegex(result.stdout, "  --gradient-accumulation-steps  +accepted, has no effect")

    def test_plan_of_a_range(self):
        result = self.torchrun("--nnodes", "1:2", "--nproc-per-node", 2, "t.py", before=["-H", "a,b,c", "--dry-run"])
        self.assertTrue(self.expect(result, 0).stdout.startswith("4 ranks of 1 program on 2 hosts"), result.describe())

    def test_the_local_rank_of_deepspeed(self):
        script = self.write("show.py", SHOW)
        for line, argv in ((["a b"], ["--local_rank=1", "a b"]), (["--no_local_rank"], [])):
            line = [*line[1:], script, *line[:1]] if argv else [*line, script]
            result = self.run_job("deepspeed", "--num_gpus", 2, *line, env={"PYTHON_EXEC": self.python})
            self.assertEqual(self.shown(self.expect(result, 0))[1]["argv"][1:], argv)

    def test_the_configuration_of_accelerate(self):
        path = self.write("hub/accelerate/default_config.yaml", "mixed_precision: bf16\n")
        line = ["accelerate", "launch", "--no_python", "sh", "-c", "echo $ACCELERATE_MIXED_PRECISION $ACCELERATE_DYNAMO_BACKEND"]
        result = self.expect(self.run_job("-np", 1, *line, env={"HF_HOME": self.box.path("hub")}), 0)
        self.expect_said(result, f"accelerate: hvdrun does not read {path}; give its values as options")
        self.expect_lines(result, ["[0]<stdout>:no NO"])

    def test_a_launcher_as_a_rank(self):
        own = self.write("torchrun", "#!/bin/sh\n", 0o755)
        said = "most likely, each rank starts ranks of its own: write 'hvdrun torchrun' in the place of 'hvdrun {}'"
        self.expect_said(self.expect(self.run_job("-np", 1, own), 0), said.format(own))
        self.assertEqual(self.expect(self.run_job("-np", 1, "--", own), 0).stderr, "")
        self.write("torch/distributed/run.py", "")
        result = self.expect(self.run_job("-np", 1, "python3", "-m", "torch.distributed.run"), 0)
        self.expect_said(result, said.format("python3 -m torch.distributed.run"))

    def files(self, folder):
        return {os.path.relpath(os.path.join(path, name), folder).partition("/")[2]: os.path.join(path, name)
                for path, _, names in os.walk(folder) for name in names}

    def read(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def test_logs(self):
        script, folder = self.write("talk.py", TALK), self.box.path("logs")
        result = self.torchrun("--nproc-per-node", 3, "--log-dir", folder, "-r", "0:1,1:3", "--tee", "1:1", script)
        self.expect(result, 0)
        self.expect_lines(result, ["[1]<stdout>:out 1", "[2]<stdout>:out 2"])
        self.assertEqual(sorted(result.stderr.splitlines()), ["[0]<stderr>:err 0", "[2]<stderr>:err 2"])
        files = self.files(folder)
        self.assertEqual(sorted(files), sorted(f"{rank}/{name}.log" for rank in range(3) for name in ("stdout", "stderr")))
        self.assertEqual(self.read(files["0/stdout.log"]), "out 0\n")
        self.assertEqual(self.read(files["1/stderr.log"]), "err 1\n")
        self.assertEqual(len(os.listdir(folder)), 1)
        self.assertTrue(os.listdir(folder)[0].startswith("none_"))
        self.expect(self.torchrun("--nproc-per-node", 1, "--log-dir", folder, "-t", 3, "--rdzv-id", "x", script), 0)
        self.assertEqual(len(os.listdir(folder)), 2, "a folder for each job")

    def test_filter(self):
        script = self.write("talk.py", TALK)
        result = self.torchrun("--nproc-per-node", 2, "--local-ranks-filter", "1", script,
                               before=["-H", "a:2,b:2", "--transport", "local", "--merge-stderr"])
        self.expect_lines(self.expect(result, 0), ["[1]<stdout>:out 1", "[1]<stdout>:err 1", "[3]<stdout>:out 3",
                                                   "[3]<stdout>:err 3"])


@unittest.skipIf(sanitized(), "PyTorch's own threads say nothing about hvdrun")
class Torch(Line):

    modules = ("torch",)

    def real(self, *args):
        """The same line with the real torchrun."""
        env = self.box.environment({"OMP_NUM_THREADS": 1})
        done = subprocess.run([self.python, "-m", "torch.distributed.run", *map(str, args)], env=env, text=True,
                              cwd=self.box.work, capture_output=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_beside_torchrun(self):
        line = ["--nnodes", 1, "--nproc_per_node", 2, "--rdzv_id", 7, "--role", "trainer", "--max_restarts", 1, "--rdzv_backend",
                "c10d", "--rdzv_endpoint", "localhost:0", "--log_dir", self.box.path("logs"), "--redirects", "9:3",
                "--tee", "9:3", self.write("show.py", SHOW), "a", "--b"]  # 1.13 cannot read its default with Python 3.11
        ours, theirs = self.shown(self.expect(self.torchrun(*line), 0)), self.shown(self.real(*line))
        self.assertEqual(sorted(ours), sorted(theirs))
        for rank, real in theirs.items():
            mine = ours[rank]
            self.assertEqual(set(real["env"]) - set(mine["env"]), {"TORCHELASTIC_USE_AGENT_STORE"})
            self.assertEqual(set(mine["env"]) - set(real["env"]), set())
            for name in set(mine["env"]) - {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_ERROR_FILE"}:
                self.assertEqual(mine["env"][name], real["env"][name], name)
            self.assertEqual((mine["argv"], mine["name"]), (real["argv"], real["name"]))

    def test_gloo(self):
        script = self.write("reduce.py", REDUCE)
        for count, total in ((2, 3), (4, 10)):
            result = self.expect(self.torchrun("--standalone", "--nproc-per-node", count, script, timeout=300), 0)
            self.assertEqual(len(re.findall(rf"sum {total} of {count} restart 0$", result.stdout, re.M)), count)

    def test_restart_after_a_kill(self):
        script = self.write("reduce.py", REDUCE)
        result = self.expect(self.torchrun("--standalone", "--nproc-per-node", 2, "--max-restarts", 1, script, "kill", timeout=300), 0)
        self.assertEqual(len(re.findall(r"sum 3 of 2 restart 1$", result.stdout, re.M)), 2, result.describe())

    def test_the_exception_of_record(self):
        script = self.write("reduce.py", REDUCE)
        result = self.expect(self.torchrun("--standalone", "--nproc-per-node", 2, script, "1", timeout=300), 1)
        self.expect_said(result, r"hvdrun: error file of rank 1 \(TORCHELASTIC_ERROR_FILE\)")
        self.expect_said(result, "ValueError: no more data")


if __name__ == "__main__":
    main()
