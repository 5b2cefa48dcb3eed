# SPDX-License-Identifier: Apache-2.0
"""What a worker is born with: limits, descriptors, signals, folder, arguments, CPUs."""

import os
import resource
import signal

from procfs import cpu_set
from rig import Flow, main, parse_self, worker


class Spawn(Flow):

    def self_of(self, *args, size=1, after=(), **options):
        result = self.expect(self.run_job("-np", size, *args, worker("self"), *after, **options), 0)
        self.result = result
        return [parse_self(result.stdout, rank) for rank in range(size)]

    def test_soft_limits_are_those_of_the_launcher(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        for soft in (777, 256):
            found, = self.self_of(limits={resource.RLIMIT_NOFILE: (soft, hard)})
            self.assertEqual(found["limit.nofile"], str(soft), "the launcher raises its own limit, not the workers'")
        found, = self.self_of(limits={resource.RLIMIT_CORE: (0, resource.RLIM_INFINITY)})
        self.assertEqual(found["limit.core"], "0")
        stack_hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
        found, = self.self_of(limits={resource.RLIMIT_STACK: (4 << 20, stack_hard)})
        self.assertEqual(found["limit.stack"], str(4 << 20))

    def test_many_ranks_under_a_low_soft_limit(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard < 4096:
            self.skipTest("the hard limit of open files is too low")
        result = self.run_job("-np", 100, "true", limits={resource.RLIMIT_NOFILE: (64, hard)}, timeout=120)
        self.expect(result, 0)

    def test_descriptors(self):
        leak = os.open("/dev/zero", os.O_RDONLY)
        self.addCleanup(os.close, leak)
        for kind in ([], ["--mpi=none"]):
            result = self.expect(self.run_job("-np", 4, *kind, worker("fds"), pass_fds=[leak]), 0)
            for rank in range(4):
                own = sorted(line.split(":", 1)[1].split(" -> ")[0] for line in result.lines
                             if line.startswith(f"[{rank}]"))
                self.assertEqual(own, ["fd 0", "fd 1", "fd 2"], result.describe())

    def test_descriptors_with_pmi1(self):
        result = self.expect(self.run_job("-np", 2, "--mpi=pmi1", worker("fds")), 0)
        for rank in range(2):
            own = [line for line in result.lines if line.startswith(f"[{rank}]")]
            self.assertEqual(len(own), 4, "0 to 2 and PMI_FD" + result.describe())

    def test_signals(self):
        found, = self.self_of()
        self.assertEqual(int(found["SigBlk"], 16), 0, "blocked signals are inherited: a worker would never see them")
        self.assertEqual(int(found["SigIgn"], 16), 0)

    def test_an_ignored_hangup_stays_ignored(self):
        # nohup hvdrun ...: what the shell chose is passed on
        found, = self.self_of(ignore=[signal.SIGHUP])
        self.assertEqual(int(found["SigIgn"], 16), 1 << (signal.SIGHUP - 1))
        gate, let_go = self.box.gate()
        job = self.start("-np", 1, worker("hang"), "--until", gate, ignore=[signal.SIGHUP])
        job.wait_output("ready")
        job.signal(signal.SIGHUP)
        let_go()
        self.expect(job.wait(), 0)

    def test_own_session_and_group(self):
        for found in self.self_of(size=2):
            self.assertEqual((found["session"], found["group"]), ("1", "1"))

    def test_umask(self):
        old = os.umask(0o027)
        try:
            found, = self.self_of()
        finally:
            os.umask(old)
        self.assertEqual(found["umask"], "27")

    def test_working_folder(self):
        found, = self.self_of()
        self.assertEqual(found["cwd"], os.path.realpath(self.box.work))
        os.mkdir(self.box.path("other place"))
        for option in (["--wdir", "other place"], ["--wdir=" + self.box.path("other place")], ["-wdir", "other place"]):
            found, = self.self_of(*option)
            self.assertEqual(found["cwd"], os.path.realpath(self.box.path("other place")))

    def test_missing_working_folder(self):
        result = self.run_job("-np", 2, "--wdir", "no/such/folder", "true")
        self.assertNotEqual(result.status, 0, result.describe())
        self.expect_said(result, "no/such/folder.*no such file")

    def test_command_relative_to_wdir(self):
        os.mkdir(self.box.path("d"))
        self.write("d/prog", "#!/bin/sh\necho found\n", 0o755)
        result = self.expect(self.run_job("-np", 1, "--wdir", "d", "./prog"), 0)
        self.assertEqual(result.stdout, "[0]<stdout>:found\n")

    def test_arguments_of_any_bytes(self):
        odd = [b"", b" ", b"two words", b"new\nline", b"\xff\xfe\x80", "größe €".encode(), b"$HOME `id` 'q' \"q\" \\", b"*",
               b"-x", b"--", b"%r", b"a=b", b"x" * 100_000]
        found, = self.self_of(after=odd)
        self.assertEqual(int(found["argc"]), len(odd) + 1)
        self.assertEqual([bytes.fromhex(found[f"argv.{i}"]) for i in range(1, len(odd) + 1)], odd)

    def test_many_arguments(self):
        found, = self.self_of(after=[str(i) for i in range(5000)])
        self.assertEqual(found["argc"], "5001")
        self.assertEqual(bytes.fromhex(found["argv.5000"]), b"4999")

    def test_more_arguments_than_one_variable_may_hold(self):
        # OMPI_ARGV would carry all of them in one variable, which the kernel bounds to 128 KiB
        words = ["a" * 60000] * 4
        result = self.expect(self.run_job("-np", 1, "sh", "-c", "echo $#", "x", *words), 0)
        self.expect_lines(result, ["[0]<stdout>:4"])

    def test_argv0_is_as_typed(self):
        os.symlink(worker("self"), self.box.path("alias"))
        result = self.expect(self.run_job("-np", 1, "./alias"), 0)
        self.assertEqual(bytes.fromhex(parse_self(result.stdout, 0)["argv.0"]), b"./alias")


class Binding(Flow):

    def cpus(self, *args, size):
        self.result = self.expect(self.run_job("-np", size, *args, worker("self")), 0)
        return [cpu_set(parse_self(self.result.stdout, rank)["Cpus_allowed_list"]) for rank in range(size)]

    def test_none_is_the_default(self):
        allowed = os.sched_getaffinity(0)
        for args in ([], ["--bind-to", "none"]):
            self.assertEqual(self.cpus(*args, size=2), [allowed, allowed])

    def test_core(self):
        allowed = os.sched_getaffinity(0)
        one, = self.cpus("--bind-to", "core", size=1)
        self.assertTrue(one and one <= allowed)
        if len(allowed) < 2:
            self.skipTest("one CPU only")
        first, second = self.cpus("--bind-to", "core", size=2)
        self.assertTrue(first and second and first | second <= allowed)
        if self.cores(allowed) >= 2:
            self.assertFalse(first & second, "two ranks on one core while another is free")

    def cores(self, allowed):
        found = set()
        for cpu in allowed:
            base = f"/sys/devices/system/cpu/cpu{cpu}/topology"
            try:
                with open(f"{base}/core_id", encoding="ascii") as core, \
                        open(f"{base}/physical_package_id", encoding="ascii") as package:
                    found.add((package.read(), core.read()))
            except OSError:
                found.add(cpu)
        return len(found)

    def test_more_ranks_than_cores(self):
        allowed = os.sched_getaffinity(0)
        for found in self.cpus("--bind-to", "core", size=2 * len(allowed) + 1):
            self.assertTrue(found and found <= allowed)

    def test_numa(self):
        for found in self.cpus("--bind-to", "numa", size=2):
            self.assertTrue(found and found <= os.sched_getaffinity(0))

    def test_report_bindings(self):
        found = self.cpus("--bind-to", "core", "--report-bindings", size=2)
        for rank in range(2):
            self.expect_said(self.result, rf"rank {rank}\b[^\n]*\b{min(found[rank])}\b")
        self.cpus("--report-bindings", size=2)
        self.expect_said(self.result, r"rank 1\b")

    def test_unknown_unit(self):
        self.expect_said(self.expect(self.run_job("-np", 1, "--bind-to", "socket", "true"), 2), "bind-to.*socket")


if __name__ == "__main__":
    main()
