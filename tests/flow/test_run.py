# SPDX-License-Identifier: Apache-2.0
"""The plain way of a job: ranks, labels, commands, an empty and a large job."""

import os
import socket

from rig import HVDRUN, Flow, Job, main, plain, sanitized, worker


class Run(Flow):

    def test_one_rank(self):
        result = self.expect(self.run_job("-np", 1, worker("hello")), 0)
        self.assertEqual(result.stdout, "[0]<stdout>:hello from rank 0 of 1\n")
        self.assertEqual(result.stderr, "", "a job that goes well has nothing to say")

    def test_without_np_on_a_bare_machine_one_rank(self):
        result = self.expect(self.run_job(worker("hello")), 0)
        self.expect_lines(result, ["[0]<stdout>:hello from rank 0 of 1"])

    def test_four_ranks_each_once_with_its_label(self):
        result = self.expect(self.run_job("-np", 4, worker("hello")), 0)
        self.expect_lines(result, [f"[{r}]<stdout>:hello from rank {r} of 4" for r in range(4)])

    def test_without_np_all_slots_of_the_hosts(self):
        result = self.expect(self.run_job("-H", "localhost:3", worker("hello")), 0)
        self.expect_lines(result, [f"[{r}]<stdout>:hello from rank {r} of 3" for r in range(3)])

    def test_stdout_and_stderr_stay_apart(self):
        result = self.expect(self.run_job("-np", 2, worker("hello"), "--err"), 0)
        self.expect_lines(result, [f"[{r}]<stdout>:hello from rank {r} of 2" for r in range(2)])
        self.assertEqual(sorted(result.stderr.splitlines()),
                         [f"[{r}]<stderr>:complaint of rank {r}" for r in range(2)], result.describe())

    def test_this_machine_under_all_its_names(self):
        for host in ("localhost", "127.0.0.1", socket.gethostname()):
            with self.subTest(host=host):
                result = self.expect(self.run_job("-np", 2, "-H", f"{host}:2", worker("hello")), 0)
                self.assertEqual(len(result.lines), 2, result.describe())

    def test_command_from_path(self):
        result = self.expect(self.run_job("-np", 2, "true"), 0)
        self.assertEqual(result.stdout, "")

    def test_command_relative_to_the_working_folder(self):
        self.write("folder/script", "#!/bin/sh\necho I am $0\n", 0o755)
        result = self.expect(self.run_job("-np", 1, "./folder/script"), 0)
        self.assertIn("[0]<stdout>:I am ", result.stdout, result.describe())

    def test_script_without_interpreter_line_is_said_or_run(self):
        # execve alone answers ENOEXEC; a launcher either runs it with sh, as execvp does, or says so
        self.write("noline", "echo ran\n", 0o755)
        result = self.run_job("-np", 1, "./noline")
        if result.status == 0:
            self.assertEqual(result.stdout, "[0]<stdout>:ran\n", result.describe())
        else:
            self.expect(result, 126)
            self.expect_said(result, r"noline.*exec format error")

    def test_python_program(self):
        result = self.expect(self.run_job("-np", 2, "python3", "-c",
                                          "import os; print('rank', os.environ['RANK'])"), 0)
        self.expect_lines(result, ["[0]<stdout>:rank 0", "[1]<stdout>:rank 1"])

    def test_python_is_not_buffered(self):
        # PYTHONUNBUFFERED=1: the line comes while the program still runs
        gate, let_go = self.box.gate()
        code = f"import os,time\nprint('now')\nwhile not os.path.exists({gate!r}): time.sleep(0.02)"
        job = self.start("-np", 1, "python3", "-c", code)
        job.wait_output("now")
        let_go()
        self.expect(job.wait(), 0)

    @plain
    def test_many_ranks(self):
        size = 64 if sanitized() else 200
        result = self.expect(self.run_job("-np", size, worker("hello"), timeout=120), 0)
        self.expect_lines(result, [f"[{r}]<stdout>:hello from rank {r} of {size}" for r in range(size)])

    def test_many_silent_short_ranks(self):
        # the case that hangs mpirun 4.1: more short-lived plain programs than cores
        for _ in range(3):
            self.expect(self.run_job("-np", 100, "true", timeout=120), 0)

    def test_no_output_at_all(self):
        result = self.expect(self.run_job("-np", 3, "true"), 0)
        self.assertEqual((result.stdout, result.stderr), ("", ""), result.describe())

    def test_two_jobs_at_once(self):
        gate, let_go = self.box.gate()
        first = self.start("-np", 2, worker("hang"), "--until", gate)
        second = self.start("-np", 2, worker("hang"), "--until", gate)
        first.wait_output("ready", count=2)
        second.wait_output("ready", count=2)
        let_go()
        self.expect(first.wait(), 0)
        self.expect(second.wait(), 0)

    def test_job_inside_a_job(self):
        inner = [HVDRUN, "-np", "2", worker("hello")]
        result = self.expect(self.run_job("-np", 1, *inner), 0)
        self.expect_lines(result, [f"[0]<stdout>:[{r}]<stdout>:hello from rank {r} of 2" for r in range(2)])

    def test_closed_standard_streams(self):
        # the shell's `>&- 2>&- <&-`: nobody may take descriptors 0 to 2 for something else
        script = self.write("closed", '#!/bin/sh\nexec "$@" <&- >&- 2>&-\n', 0o755)
        gate = self.box.path("made")
        job = Job(self.box, [script, HVDRUN, "-np", 1, "sh", "-c", f"echo lost; : > {gate}"])
        job.wait()
        self.assertTrue(os.path.exists(gate), "the worker did not run")


if __name__ == "__main__":
    main()
