# SPDX-License-Identifier: Apache-2.0
"""MPI_Comm_spawn: ranks that start others while they run, on one host and on several simulated ones (Open MPI, PMI-1)."""
# ctest busy

import json
import os
import re
import shutil
import signal
import sys
import unittest

import rig
from job_commands import JobCommands
from rig import HVDRUN, main, mpi_worker, wait_until

QUIET = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
PLACES = (("-H", "localhost:6"), ("-H", "a:3,b:3", "--transport", "local", "--map-by", "node"))
WORLDS = mpi_worker("mpi_worlds", "openmpi")


class Spawn(JobCommands):

    left_timeout = 10

    def mpi(self, *args, **options):
        return self.run_job(*args, env=QUIET, timeout=120, **options)

    def lines(self, result, pattern):
        """The labels of the lines that match, in order."""
        return sorted(found[1] for found in re.finditer(rf"(?m)^\[([\d.]+)\]<stdout>:{pattern}$", result.stdout))


class Talk(Spawn):

    def test_children_talk_with_their_parents(self):
        for place in PLACES:
            with self.subTest(place=place):
                result = self.expect(self.mpi(*place, "-np", 2, WORLDS, "talk", 3), 0)
                self.assertEqual(self.lines(result, "universe of 6"), ["0"])
                self.assertEqual(self.lines(result, "parent heard 6 from 3 children"), ["0"])
                for child in range(3):
                    said = self.lines(result, f"child {child} of 3 with 2 parents got {100 + child}")
                    self.assertEqual(said, [f"1.{child}"], result.describe())
                self.assertEqual(self.lines(result, r"rank \d of \d done"), ["0", "1", "1.0", "1.1", "1.2"])
                self.assertEqual(result.stderr, "")

    def test_several_times_on_the_same_slots(self):
        """The slots of a world that has disconnected are free again, a moment later."""
        # On a busy machine, a world may end only after the next one is asked for.
        result = self.expect(self.mpi("-H", "localhost:5", "-np", 1, WORLDS, "again", 2, 4), 0)
        self.assertEqual(self.lines(result, "parent heard 3 from 2 children"), ["0"] * 4)
        self.assertEqual(self.lines(result, "rank 1 of 2 done"), ["1.1", "2.1", "3.1", "4.1"])

    def test_only_ranks_that_hvdrun_starts_wait_for_a_debugger(self):
        job = self.start("-H", "localhost:5", "-np", 2, "--stop-at-start", WORLDS, "talk", 3, env=QUIET)
        job.wait_output("waits at its start", "stderr", count=2)
        wait_until(lambda: self.start("debug", "--continue").wait().status == 0, "the control socket")
        result = self.expect(job.wait(60), 0)
        self.assertEqual(self.lines(result, r"rank \d of \d done"), ["0", "1", "1.0", "1.1", "1.2"])
        self.assertEqual(result.stderr.count("waits at its start"), 2)

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_a_parallel_debugger_hears_only_of_the_ranks_that_hvdrun_starts(self):
        commands = ["break main", "run", "set var MPIR_being_debugged=1", "break MPIR_Breakpoint", "continue", "continue"]
        words = ["gdb", "-q", "-batch", "-nx", *[word for command in commands for word in ("-ex", command)]]
        job = rig.Job(self.box, [*words, "--args", HVDRUN, "-H", "localhost:5", "-np", "2", WORLDS, "talk", "3"],
                      env={"ASAN_OPTIONS": "detect_leaks=0", **QUIET})
        self.assertEqual(job.wait(60).stdout.count("done"), 5)

    def test_agents_forget_worlds_that_have_finished(self):
        """Each one would keep four descriptors."""
        job = self.start("-H", "localhost:4", "-np", 1, WORLDS, "again", 1, 1000, env=QUIET)
        counts = []
        for world in (2, 12):
            job.wait_output(rf"^\[{world}\.0\]<stdout>:child rank 0", timeout=120)
            agent, = job.agents()
            counts.append(len(os.listdir(f"/proc/{agent.pid}/fd")))
        job.signal(signal.SIGINT)
        self.expect(job.wait(60), 130)
        self.assertLess(counts[1], counts[0] + 20, counts)

    def test_children_have_children(self):
        for place in PLACES:
            with self.subTest(place=place):
                result = self.expect(self.mpi(*place, "-np", 2, WORLDS, "nest", 2, 2), 0)
                self.assertEqual(self.lines(result, "parent heard 3 from 2 children"), ["0", "1.0"])

    def test_two_programs_in_one_world(self):
        for place in PLACES:
            with self.subTest(place=place):
                result = self.expect(self.mpi(*place, "-np", 2, WORLDS, "many", 2, 1), 0)
                self.assertEqual(self.lines(result, r"child \d of 3 with 2 parents got \d+"), ["1.0", "1.1", "1.2"])

    def test_worlds_that_meet_by_a_name(self):
        for place in PLACES:
            with self.subTest(place=place):
                result = self.expect(self.mpi(*place, "-np", 2, WORLDS, "names", 2), 0)
                self.assertEqual(self.lines(result, "server got 77"), ["1.0"])
                self.assertEqual(self.lines(result, "rank 1 of 2 done"), ["1", "1.1", "2.1"])

    def test_where_they_run(self):
        place = ("-H", "a:2,b:3", "--transport", "local", "--map-by", "node")
        result = self.expect(self.mpi(*place, "-np", 2, "--label", "%r@%h ", WORLDS, "talk", 2, "host=b", "wdir=/"), 0)
        self.assertEqual(len(re.findall(r"(?m)^1\.\d@b child rank \d of 2 in /$", result.stdout)), 2, result.describe())

    def test_hosts_without_ranks(self):
        """They are called, too. The children there share memory in a folder of their own host."""
        place = ("-H", "a:1,b:2,c:2", "--transport", "local", "--idle-hosts", "-np", 1)
        result = self.expect(self.mpi(*place, "--label", "%r@%h ", WORLDS, "talk", 4), 0)
        self.assertIn("0@a parent heard 10 from 4 children", result.lines, result.describe())
        self.assertEqual(len(re.findall(r"(?m)^1\.\d@[bc] child \d of 4", result.stdout)), 4, result.describe())
        self.assertEqual(len(set(re.findall(r"(?m)^\S+ memory in (/.*)$", result.stdout))), 2, result.describe())
        result = self.expect(self.mpi(*place, WORLDS, "names", 2), 0)
        self.assertEqual(self.lines(result, "server got 77"), ["1.0"])

    def test_hosts_without_ranks_that_lack_everything(self):
        """What a rank would need there is not missed: GPUs, the folder, the program. A dry run lists them."""
        place = ("-H", "a:1,b:1", "--transport", "local", "--idle-hosts", "-np", 1)
        result = self.expect(self.run_job(*place, "--report-bindings", "echo", "done"), 0)
        self.assertIn("[0]<stdout>:done", result.lines)
        self.expect_said(result, "a: rank 0")
        hosts = self.write("hosts", "a slots=1\nb slots=1 wdir=/no/such/folder\n")
        self.expect(self.run_job("--hostfile", hosts, *place[2:], "echo", "done"), 0)
        plan = json.loads(self.expect(self.run_job(*place, "--dry-run=json", "true"), 0).stdout)
        self.assertEqual([node.get("first_rank") for node in plan["nodes"]], [0, None])

    def test_hosts_without_ranks_and_without_spawn(self):
        place = ("-H", "a:2,b:2,c:2", "--transport", "local", "--idle-hosts", "-np", 3)
        for kind in ("openmpi", "mpich"):
            result = self.expect(self.mpi(*place, mpi_worker("mpi_hello", kind), 3), 0)
            self.assertEqual(self.lines(result, r"rank \d of 3 sum 3"), ["0", "1", "2"])
        result = self.mpi(*place, "sh", "-c", "echo $GROUP_WORLD_SIZE nodes; exit $HVDRUN_RANK")
        self.assertEqual(set(re.findall(r"(?m)\d nodes$", result.stdout)), {"2 nodes"}, result.describe())
        self.expect_said(result, r"rank \d exited with code")

    def test_cpus_of_a_host_that_was_not_named(self):
        """As many ranks fit there as it has processors, whatever -np is."""
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("one processor")
        result = self.expect(self.mpi("-np", 1, WORLDS, "talk", 1), 0)
        self.assertEqual(self.lines(result, f"universe of {len(os.sched_getaffinity(0))}"), ["0"])


class Refused(Spawn):

    def test_more_than_is_free(self):
        """It is an error of MPI, and the program goes on."""
        for place in (("-H", "localhost:3"), ("-H", "a:2,b:1", "--transport", "local", "--map-by", "node")):
            with self.subTest(place=place):
                result = self.expect(self.mpi(*place, "-np", 2, WORLDS, "try", 2), 0)
                self.assertEqual(self.lines(result, "spawn of 2: error"), ["0"])
                self.assertEqual(self.lines(result, "spawn of 1: success"), ["0"])
                self.expect_said(result, r"rank 0 on \S+ cannot spawn: 2 ranks are wanted, and 1 slot is free")

    def test_oversubscribed(self):
        result = self.expect(self.mpi("-H", "localhost:1", "--oversubscribe", "-np", 1, WORLDS, "talk", 2), 0)
        self.assertEqual(self.lines(result, "parent heard 3 from 2 children"), ["0"])

    def test_what_cannot_run(self):
        result = self.expect(self.mpi("-H", "localhost:4", "-np", 1, WORLDS, "try", 2, "/no/such/program"), 0)
        self.assertEqual(self.lines(result, "spawn of 2: error"), ["0"])
        self.assertEqual(self.lines(result, "spawn of 1: success"), ["0"])
        self.expect_said(result, r"cannot spawn: localhost: cannot execute /no/such/program")

    def test_a_rank_that_exits_before_its_answer(self):
        result = self.expect(self.mpi("-H", "localhost:3", "-np", 2, WORLDS, "leave"), 0)
        self.assertEqual(self.lines(result, "child rank 0 of 1 in .*"), ["1.0", "2.0"], result.describe())
        self.assertEqual(self.lines(result, "parent heard 1 from 1 children"), ["0", "0"])

    def test_a_program_of_another_mpi(self):
        other = mpi_worker("mpi_hello", "mpich")
        result = self.expect(self.mpi("-H", "localhost:4", "-np", 1, WORLDS, "try", 1, other), 0)
        self.assertEqual(self.lines(result, "spawn of 1: error"), ["0"])
        self.assertEqual(self.lines(result, "spawn of 1: success"), ["0"])
        self.expect_said(result, r"cannot spawn: localhost: \S+ needs libmpich\S* .*, and the rank that spawns it has another MPI")

    def test_an_elastic_job(self):
        for options in (("--min-np", 1), ("--min-np", 1, "--idle-hosts")):
            result = self.mpi("-H", "localhost:2", "-np", 1, *options, WORLDS, "talk", 1)
            self.expect(result, 125 if len(options) == 2 else 2)
            self.expect_said(result, "MPI_Comm_spawn, which hvdrun does not support in elastic jobs" if len(options) == 2 else
                             "--idle-hosts: ranks of an elastic job cannot spawn others")

    def test_a_host_of_others(self):
        result = self.mpi("-H", "localhost:4", "-np", 1, WORLDS, "talk", 2, "host=elsewhere")
        self.assertNotEqual(result.status, 0, "MPI_ERRORS_ARE_FATAL")
        self.expect_said(result, r"rank 0 on localhost cannot spawn: elsewhere is not one of the hosts")


class Job(Spawn):
    """The children are ranks of the job."""

    def test_failures(self):
        for place in PLACES:
            for what, status in (("7", 7), ("kill", 137), ("abort", 9)):
                with self.subTest(place=place, what=what):
                    result = self.expect(self.mpi(*place, "-np", 2, WORLDS, "fail", 2, what), status)
                    self.expect_said(result, r"rank 2 \[1\.0\]: host \S+, pid \d+")
                    self.expect_said(result, "terminated the other 3 ranks")

    def test_exit_policy(self):
        result = self.expect(self.mpi("-H", "localhost:4", "-np", 1, "--exit-policy", "rank0", WORLDS, "fail", 1, "7"), 7)
        self.expect_said(result, r"rank 1 exited with code 7")

    def test_what_others_see(self):
        for place in PLACES:
            with self.subTest(place=place):
                report = os.path.join(self.box.work, "report.json")
                job = self.start(*place, "-np", 2, "--report", report, WORLDS, "hold", 2, env=QUIET)
                job.wait_output(r"\[1\.[01]\]<stdout>:holding", count=2, timeout=60)
                name, = self.ask("ps", "-q").lines
                status = json.loads(self.ask("status", "--json", name).stdout)
                self.assertEqual(status["size"], 4)
                rows = [(rank["rank"], rank.get("world"), rank.get("world_rank"), rank["state"]) for rank in status["ranks"]]
                self.assertEqual(rows, [(0, None, None, "running"), (1, None, None, "running"),
                                        (2, 1, 0, "running"), (3, 1, 1, "running")])
                self.ask("signal", name, "KILL", "--ranks", 3)
                self.expect(job.wait(60), 137)
                with open(report, encoding="utf-8") as file:
                    told = json.load(file)
                self.assertEqual([rank.get("world") for rank in told["ranks"]], [None, None, 1, 1])
                self.assertEqual(told["ranks"][3]["role"], "cause")

    def test_their_output_is_a_terminal_too(self):
        for pty, kind in (("auto", "/dev/pts/"), ("none", "pipe:")):
            with self.subTest(pty=pty):
                job = self.start(*PLACES[1], "-np", 1, "--pty", pty, WORLDS, "hold", 2, env=QUIET)
                job.wait_output(r"\[1\.[01]\]<stdout>:holding", count=2, timeout=60)
                name, = self.ask("ps", "-q").lines
                ranks = json.loads(self.ask("status", "--json", name).stdout)["ranks"]
                found = [os.readlink(f"/proc/{rank['pid']}/fd/1") for rank in ranks]
                self.assertEqual([path.startswith(kind) for path in found], [True] * 3, found)
                self.ask("stop", name)
                job.wait(60)

    def test_the_user_ends_it(self):
        for place in PLACES:
            with self.subTest(place=place):
                job = self.start(*place, "-np", 2, WORLDS, "hold", 2, env=QUIET)
                job.wait_output(r"\[1\.[01]\]<stdout>:holding", count=2, timeout=60)
                job.signal(signal.SIGINT)
                result = self.expect(job.wait(60), 130)
                self.expect_said(result, "terminated 4 ranks")
                self.box.check_nothing_left(self.left_timeout)

    def test_a_driver_that_is_killed(self):
        job = self.start(*PLACES[1], "-np", 2, WORLDS, "hold", 2, env=QUIET)
        job.wait_output(r"\[1\.[01]\]<stdout>:holding", count=2, timeout=60)
        job.signal(signal.SIGKILL)
        job.wait(60)
        self.box.check_nothing_left(self.left_timeout)


class Pmi1(Spawn):
    """The same for MPICH, by its protocol; flow.nightly_mpi4py has MPICH itself."""

    RANK = ("--mpi=pmi1", sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "pmi1_rank.py"))

    def pmi1(self, *args, place=PLACES[0], np=2, **options):
        return self.mpi(*place, "-np", np, *self.RANK, *args, **options)

    def test_children_and_what_they_find(self):
        for place in PLACES:
            with self.subTest(place=place):
                result = self.expect(self.pmi1("talk", 3, place=place), 0)
                self.assertEqual(self.lines(result, r"child \d of 3 \(0, 6\) got 303"), ["1.0", "1.1", "1.2"], result.describe())
                self.assertEqual(self.lines(result, r"it knows port of \S+ #0\$ and is in .+"), ["1.0", "1.1", "1.2"])
                self.assertEqual(self.lines(result, r"rank \d of \d done"), ["0", "1", "1.0", "1.1", "1.2"])
                self.assertEqual(result.stderr, "")

    def test_two_programs_in_one_world(self):
        for place in PLACES:
            with self.subTest(place=place):
                result = self.expect(self.pmi1("many", 2, 1, place=place), 0)
                self.assertEqual(self.lines(result, r"child \d of 3 \(0, 6\) got 303"), ["1.0", "1.1"], result.describe())
                self.assertEqual(self.lines(result, r"child \d of 3 \(1, 6\) got 303"), ["1.2"])

    def test_several_times_with_names(self):
        """Worlds find each other by name, on one host, too. All have slots, whenever the last ones end."""
        for place in (("-H", "localhost:11"), ("-H", "a:6,b:6", "--transport", "local", "--map-by", "node")):
            with self.subTest(place=place):
                result = self.expect(self.pmi1("again", 3, 3, place=place), 0)
                self.assertEqual(self.lines(result, "spawned: True"), ["0"] * 3, result.describe())
                self.assertEqual(re.findall(r"found port (\d)\$", result.stdout), ["0", "1", "2"], result.describe())
                self.assertEqual(self.lines(result, "rank 2 of 3 done"), ["1.2", "2.2", "3.2"])

    def test_what_many_worlds_leave(self):
        """Neither the agent nor the driver keeps descriptors of those that have finished."""
        job = self.start("-H", "localhost:4", "-np", 1, *self.RANK, "again", 1, 1000)
        counts = []
        for world in (2, 22):
            job.wait_output(rf"^\[{world}\.0\]<stdout>:child 0", timeout=120)
            agent, = job.agents()
            counts.append([len(os.listdir(f"/proc/{pid}/fd")) for pid in (agent.pid, job.pid)])
        job.signal(signal.SIGINT)
        self.expect(job.wait(60), 130)
        for first, last in zip(*counts):
            self.assertLess(last, first + 20, counts)

    def test_two_that_ask_at_the_same_time(self):
        for place in PLACES:
            with self.subTest(place=place):
                result = self.expect(self.pmi1("both", place=place), 0)
                self.assertEqual(self.lines(result, "spawned: True"), ["0", "1"], result.describe())
                self.assertEqual(self.lines(result, r"child 0 of 1 \(0, 6\) got 100"), ["1.0", "2.0"])
                self.assertEqual(sorted(re.findall(r"port of \S+ #(\d)", result.stdout)), ["0", "1"])

    def test_a_rank_that_exits_before_its_answer(self):
        """What it asked for does not start. Its slot is free for others, though."""
        for place in (("-H", "localhost:3"), ("-H", "a:2,b:1", "--transport", "local", "--map-by", "node")):
            with self.subTest(place=place):
                result = self.pmi1("leave", place=place)
                self.assertEqual(self.lines(result, r"child 0 of 1 .*"), ["1.0", "2.0"], result.describe())
                self.assertEqual(re.findall(r"port of \S+ #(\d)", result.stdout), ["0", "0"], result.describe())
                self.assertEqual(self.lines(result, "rank 0 of . done"), ["0", "1.0", "2.0"])

    def test_a_rank_that_exits_inside_a_block(self):
        result = self.expect(self.pmi1("cut", "mcmd=spawn;nprocs=1;execname=tr"), 3)
        self.expect_said(result, "rank 0 exited with code 3")

    def test_children_have_children(self):
        for place in PLACES:
            with self.subTest(place=place):
                result = self.expect(self.pmi1("nest", 2, 1, place=place), 0)
                self.assertEqual(self.lines(result, "rank 1 of 2 done"), ["1", "1.1", "2.1"], result.describe())

    def test_where_they_run(self):
        place = ("-H", "a:2,b:2,c:3", "--transport", "local", "--idle-hosts", "--label", "%r@%h ")
        result = self.expect(self.pmi1("talk", 2, "host=c", "wdir=/", place=place), 0)
        self.assertEqual(len(re.findall(r"(?m)^1\.\d@c it knows .* and is in /$", result.stdout)), 2, result.describe())

    def test_more_than_is_free_and_what_cannot_run(self):
        for place in PLACES:
            with self.subTest(place=place):
                result = self.expect(self.pmi1("try", "true", 5, place=place), 0)
                self.assertEqual((self.lines(result, "spawn of 5: False"), self.lines(result, "spawn of 1: True")), (["0"], ["0"]))
                self.expect_said(result, r"(?m)rank 0 on \S+ cannot spawn: 5 ranks are wanted, and 4 slots are free; with MPICH, ranks that asked")
                result = self.expect(self.pmi1("try", "/no/such/program", 1, place=place), 0)
                self.assertEqual(self.lines(result, "spawn of 1: False"), ["0"])
                self.expect_said(result, "cannot execute /no/such/program")
                result = self.expect(self.pmi1("try", "true", 0, place=place), 0)
                self.assertEqual(self.lines(result, "spawn of 0: False"), ["0"])
                self.expect_said(result, "cannot spawn: no ranks are wanted of a program")

    def test_more_arguments_than_linux_passes_on(self):
        for place in PLACES:
            with self.subTest(place=place):
                result = self.expect(self.pmi1("long", place=place), 0)
                self.assertEqual(re.findall(r"spawned: (\w+)", result.stdout), ["False", "True"], result.describe())
                self.expect_said(result, r"cannot execute \S*/true: it has \d+ KiB of arguments, which Linux refuses")

    def test_their_failures_and_the_end(self):
        for place in PLACES:
            with self.subTest(place=place):
                result = self.expect(self.pmi1("fail", 2, 7, place=place), 7)
                self.expect_said(result, r"rank 2 \[1\.0\]: host \S+, pid \d+")
                job = self.start(*place, "-np", 2, *self.RANK, "hold", 2)
                job.wait_output(r"\[1\.[01]\]<stdout>:holding", count=2, timeout=60)
                job.signal(signal.SIGINT)
                self.expect_said(self.expect(job.wait(60), 130), "terminated 4 ranks")
                self.box.check_nothing_left(self.left_timeout)

    def test_an_elastic_job(self):
        result = self.pmi1("talk", 1, place=("-H", "localhost:3", "--min-np", 1))
        self.expect_said(self.expect(result, 125), r"(?m)^hvdrun: rank 0 on \S+ asked for MPI_Comm_spawn, which hvdrun does not support in elastic jobs")

    ONE_OF_ONE = "mcmd=spawn;totspawns=1;spawnssofar=1"

    def test_rubbish(self):
        """It ends the job in words, and nobody waits."""
        block = "mcmd=spawn;nprocs=1;execname=sleep;argcnt=1;arg1=60;endcmd"
        for lines, why in (("mcmd=spawn;execname=a;arg1=two;endcmd", "a spawn that hvdrun cannot read, without totspawns"),
                           ("mcmd=spawn;execname=/bin/x;totspawns=2;totspawns=1;spawnssofar=1;endcmd", "a second totspawns; perhaps an argument has a line break"),
                           (f"{self.ONE_OF_ONE};execname=a;argcnt=0;endcmd ", "a spawn with more behind endcmd"),
                           (f"{self.ONE_OF_ONE};execname=a;argcnt=0;endcmd\r", "a spawn with more behind endcmd"),
                           ("mcmd=spawn;execname=a;cmd=get_appnum", "get_appnum came inside a spawn"),
                           (f"{self.ONE_OF_ONE};execname=a;hat=1;endcmd;{block}", "spawn came before the answer to the last request"),
                           (f"{block};{block}", "spawn came before the answer to the last request")):
            with self.subTest(lines=lines):
                result = self.expect(self.pmi1("say", lines), 125)
                self.expect_said(result, why)

    def test_rubbish_without_an_end(self):
        """The warning comes at once, and some time later the job ends in words."""
        rest = ("two;lines", "two;lines=2")
        jobs = [self.start("-H", "localhost:2", "-np", 2, *self.RANK, "say", f"{self.ONE_OF_ONE};execname=a;arg1={one}") for one in rest]
        for one, job in zip(rest, jobs):
            with self.subTest(rest=one):
                result = self.expect(job.wait(60), 125)
                self.expect_said(result, "rank 0 cannot spawn ranks: its MPI library sends (a|the) line .*; perhaps an argument has a line break")
                self.expect_said(result, "rank 0 does not speak PMI-1, the MPI start-up protocol: a spawn without an end")

    def test_requests_that_nobody_here_knows(self):
        """Of another library: the call gets an error, and the job goes on."""
        others = "; with MPICH, ranks that asked with it may wait for ever"
        for lines, why in (("endcmd", "no program"), ("execname=a;hat=red;endcmd", "the line hat, which is unknown to hvdrun; perhaps an argument has a line break"),
                           ("execname=a;argc=1;arg1=two;endcmd", "the line argc, which is unknown to hvdrun; perhaps an argument has a line break"),
                           ("nprocs=soft;execname=a;endcmd", "the line nprocs, which is not a number in its range; perhaps an argument has a line break"),
                           ("execname=a;argcnt=1;arg1=two;lines;endcmd", "a line that is not NAME=VALUE; perhaps an argument has a line break")):
            for np in (1, 2):
                with self.subTest(lines=lines, np=np):
                    result = self.expect(self.pmi1("say", f"{self.ONE_OF_ONE};{lines}", np=np), 0)
                    self.assertEqual(self.lines(result, "heard cmd=spawn_result rc=-1"), ["0"], result.describe())
                    self.assertEqual(self.lines(result, rf"rank \d of {np} done"), ["0", "1"][:np])
                    self.expect_said(result, f"(?m)rank 0 cannot spawn ranks: its MPI library sends {why}{others if np > 1 else ''}$")

    def test_each_reason_is_said_once(self):
        ask = [f"{self.ONE_OF_ONE};execname=a;{name}=1;endcmd" for name in ("hat", "scarf", "hat", "hat", "scarf", *(f"hat{i}" for i in range(20)))]
        result = self.expect(self.pmi1("say", *ask), 0)
        self.assertEqual(self.lines(result, "heard cmd=spawn_result rc=-1"), ["0"] * len(ask), result.describe())
        said = re.findall("rank 0 cannot spawn ranks: its MPI library sends the line (\\w+)", result.stderr)
        self.assertEqual(said, ["hat", "scarf", "hat0", "hat1", "hat2", "hat3", "hat4", "hat5"], result.describe())

    def test_an_abort_inside_a_block(self):
        result = self.expect(self.pmi1("say", "mcmd=spawn;nprocs=1;cmd=abort exitcode=7 message=enough"), 7)
        self.expect_said(result, "enough")


if __name__ == "__main__":
    main()
