# SPDX-License-Identifier: Apache-2.0
"""What new users type wrong: each message has the cause and the remedy."""
# ctest waits

import re
import socket

from rig import Flow, main, wait_until


class Mistakes(Flow):

    # name, arguments, the cause, the remedy
    TABLE = [
        ("a blank between hosts", ["-H", "a:4 b:4", "true"], "a blank", "put commas between hosts, as in a:4,b:4"),
        ("two words of hosts", ["-H", "localhost:1", "b:4", "true"], "'b:4' was not found in PATH", "write -H a:4,b:4"),
        ("an equals sign in a host", ["-H", "a=4", "true"], "'=' in a host", "a colon before the slots, as in a:4"),
        ("slots that are no number", ["-H", "b:x", "true"], "'x' is not a slot count", "expected a whole number"),
        ("more ranks than slots", ["-np", 3, "-H", "localhost:2", "true"], "3 ranks wanted, 2 slots found", "give more hosts or slots"),
        ("-np 0", ["-np", 0, "true"], "0 is out of range", "expected 1 to"),
        ("-np x", ["-np", "x", "true"], "'x' is not", "whole number"),
        ("no program", ["-np", 2], "no program given", "usage: hvdrun"),
        ("not executable", ["./plain.sh"], "Permission denied", r"chmod \+x makes it executable"),
        ("a script without python3", ["train.py"], "was not found in PATH", "write python3 train.py"),
        ("as torchrun takes it", ["--nproc_per_node", 2, "train.py"], "was not found in PATH", "write python3 train.py"),
        ("no interpreter", ["./lost"], "names the interpreter", "/opt/nosuch/python"),
        ("a carriage return", ["./crlf.sh"], "ends with a carriage return", r"remove the carriage returns with sed -i 's/\\r\$//' '\S+/crlf.sh'\n"),
        ("a carriage return behind env", ["./crlf.py"], "ends with a carriage return", r"remove the carriage returns with sed -i 's/\\r\$//' '\S+/crlf.py'\n"),
        ("a mistyped program", ["pythagors"], "'pythagors' was not found in PATH", "did you mean 'pythagoras'"),
        ("no hostfile", ["--hostfile", "nosuch", "true"], "cannot open nosuch", "No such file"),
        ("an empty hostfile", ["--hostfile", "empty", "true"], "names no host", "expected one per line, as in"),
        ("slot=4 in a hostfile", ["--hostfile", "slot", "true"], "'slot' is unknown here", "expected slots=N"),
        ("--min-np above -np", ["--min-np", 4, "-np", 2, "true"], "--min-np 4 is more than", "-np 2"),
        ("a wrong key", ["--config-file", "wrong.ini", "true"], "wrong.ini:2: unknown key 'npp'", "did you mean 'np'"),
        ("a broken section", ["--config-file", "broken.ini", "true"], r"broken.ini:1: '\[launch'", "expected"),
        ("torchrun on two hosts", ["--nnodes", 2, "--node_rank", 0, "true"], "--nnodes is an option of torchrun", "write: hvdrun torchrun --nnodes 2"),
        ("a rendezvous", ["--rdzv_backend", "c10d", "--rdzv_endpoint", "a:1", "true"], "are options of torchrun", "write: hvdrun torchrun --rdzv_backend c10d --rdzv_endpoint a:1 true"),
        ("nodes of srun", ["-N", 2, "true"], "-N is an option of", "write: hvdrun --map-by ppr:2:node true"),
        ("GPUs of srun", ["--gres", "gpu:4", "true"], "--gres is an option of srun", "give it to sbatch"),
        ("a partition", ["--partition", "gpu", "true"], "--partition is an option of srun", "give it to sbatch"),
        ("GPUs of DeepSpeed", ["--include", "a:0,1", "true"], "--include is an option of deepspeed", "write: hvdrun deepspeed --include a:0,1 true"),
        ("FSDP of Accelerate", ["--use_fsdp", "true"], "--use_fsdp is an option of accelerate", "in the script"),
        ("a mistyped option", ["--tranport", "local", "true"], "unknown option '--tranport'", "did you mean '--transport'"),
        ("a mistyped command", ["statsu"], "neither a command of hvdrun nor a program", "did you mean 'hvdrun status'"),
        ("a mistyped option of a command", ["logs", "--rank", 1], "unknown option '--rank'", "did you mean '--ranks'"),
        ("kill", ["kill", "job"], "not a command of hvdrun", "'hvdrun stop' ends a job"),
        ("jobs", ["jobs"], "neither a command of hvdrun nor a program", "'hvdrun ps' lists your jobs"),
        ("no discovery script", ["--host-discovery-script", "./nosuch", "--min-np", 1, "true"], "cannot execute ./nosuch", "No such file"),
    ]

    # These run, and say what has no effect.
    NOTICES = [
        ("--spares without an elastic job", ["--spares", 1, "-np", 1, "true"], "--spares has no effect", "with --min-np N"),
        ("what is for mpirun", ["-np", 1, "--display-map", "-mca", "plm_rsh_agent", "ssh", "true"], "left out, because",
         r"--display-map \(--dry-run prints the plan and starts nothing\), -mca plm_rsh_agent"),
    ]

    # These run without a word.
    HARMLESS = [["--standalone", "--nnodes=1", "--node_rank=0", "-np", 1, "true"], ["-mca", "pml", "ob1", "-np", 1, "true"],
                ["--num_processes", 1, "--num_machines", 1, "--mixed_precision", "bf16", "true"],
                ["--num_gpus", 1, "--num_nodes", 1, "--no_local_rank", "true"]]

    def setUp(self):
        super().setUp()
        self.write("plain.sh", "echo hi\n")
        self.write("train.py", "print(1)\n")
        self.write("lost", "#!/opt/nosuch/python\n", 0o755)
        self.write("crlf.sh", "#!/bin/sh\r\necho\r\n", 0o755)
        self.write("crlf.py", "#!/usr/bin/env python3\r\nprint(1)\r\n", 0o755)
        self.write("bin/pythagoras", "#!/bin/sh\n", 0o755)
        self.write("empty", "")
        self.write("slot", "a slot=4\n")
        self.write("wrong.ini", "[launch]\nnpp=2\n")
        self.write("broken.ini", "[launch\nnp=2\n")

    def tried(self, args):
        return self.run_job(*args, env={"PATH": f"{self.box.path('bin')}:/usr/bin:/bin"})

    def test_cause_and_remedy(self):
        for name, args, cause, remedy in self.TABLE:
            with self.subTest(name):
                result = self.tried(args)
                self.assertIn(result.status, (1, 2, 123, 125, 126, 127), result.describe())
                self.assertEqual(result.stdout, "", result.describe())
                self.assertRegex(result.stderr, cause, result.describe())
                self.assertRegex(result.stderr, remedy, result.describe())
                for line in result.stderr.splitlines():
                    self.assertTrue(re.match("hvdrun: ", line), result.describe())

    def test_notices(self):
        for name, args, cause, remedy in self.NOTICES:
            with self.subTest(name):
                result = self.expect(self.tried(args), 0)
                self.assertRegex(result.stderr, cause)
                self.assertRegex(result.stderr, remedy)

    def test_a_folder_is_no_program(self):
        self.write("bin/thinq/x", "")
        self.assertNotIn("did you mean", self.expect(self.tried(["thinqs"]), 127).stderr)

    def test_harmless(self):
        for args in self.HARMLESS:
            with self.subTest(args=args):
                self.assertEqual(self.expect(self.tried(args), 0).stderr, "")

    def test_a_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            job = self.start("--metrics", port, "-np", 1, "sleep", 300)
            name = wait_until(lambda: self.start("ps", "-q").wait().stdout.strip(), "the job")
            status = self.start("status", name).wait().stdout
            self.start("stop", name).wait()
            result = self.expect(job.wait(), 130)
        self.assertRegex(status, f"(?m)^metrics: none: cannot listen on http://127.0.0.1:{port}: Address already in use$")
        self.assertRegex(result.stderr, "no metrics: .*Address already in use; --metrics 0 takes a free port")


if __name__ == "__main__":
    main()
