# SPDX-License-Identifier: Apache-2.0
"""--tree-from: results of fences go through some agents to others, and directly when one fails."""
# ctest waits

import os
import shutil
import signal
import sys
import time

from ground import mpi_worker
from rig import BUILD, HVDRUN, Job, main, plain, worker
from job_commands import JobCommands

# more ranks than cores, and no complaint about it
QUIET = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_mpi_yield_when_idle": "1"}


class Tree(JobCommands):
    program = HVDRUN

    def start(self, *args, **options):
        return Job(self.box, [self.program, *args], **options)

    def words(self, hosts, *more):
        return ("-H", f"n[1-{hosts}]", "--transport", "local", "--tree-from", 4, "--start-timeout", 120,
                "--report", self.box.path("report.json"), *more)

    def tree(self):
        return self.read_json(self.box.path("report.json")).get("tree")

    def expect_tree(self, hosts, below):
        """Frames of fences went through others."""
        tree = self.tree()
        self.assertEqual((tree["hosts"], tree["through_others"]), (hosts, below))
        self.assertGreater(tree["frames"], 0)

    def agent(self, job, host):
        return next(agent for agent in job.agents() if agent.read("cmdline").rstrip(b" \0") == b"hvdrun: agent of " + host)

    def start_below(self, words, *program):
        """The program begins when all agents have said where they are in the tree, and the caller lets it."""
        gate, let_go = self.box.gate()
        if os.path.exists(gate):
            os.unlink(gate)
        job = self.start(*words, "-v", "sh", "-c", f'until [ -e {gate} ]; do sleep 0.2; done; exec "$@"', "sh", *program, env=QUIET)
        job.wait_output(r"hvdrun: \d+ of \d+ agents are below others", name="stderr", timeout=120)
        return job, let_go

    def run_below(self, words, *program):
        job, let_go = self.start_below(words, *program)
        let_go()
        return self.expect(job.wait(180), 0)

    def test_fences_go_through_others(self):
        """Three levels of agents; each rank finds what the last one has put."""
        for hosts, below in ((4, 2), (20, 17)):
            with self.subTest(hosts=hosts):
                result = self.run_below(self.words(hosts, "--mpi=pmix"), worker("mpi_fence"), 3, 4096, "random")
                self.assertRegex(result.stdout, r"fence \d")
                self.expect_tree(hosts, below)

    def test_a_key_that_ranks_put_again(self):
        """Each rank finds what was put last, and in all the same as without a tree, though agents stand still for a while."""
        program = worker("mpi_order"), 12, 9000, 100
        plain_result = self.run_job(*self.words(20, "--tree-from", 0, "--mpi=pmix"), *program, timeout=180)
        self.expect(plain_result, 0)
        job, let_go = self.start_below(self.words(20, "--mpi=pmix"), *program)
        let_go()
        for number, host in enumerate((b"n1", b"n4", b"n2")):
            job.wait_output(f"round {3 * number}$", name="stderr", timeout=120)
            agent = self.agent(job, host).pid
            os.kill(agent, signal.SIGSTOP)
            time.sleep(0.7)
            os.kill(agent, signal.SIGCONT)
        result = self.expect(job.wait(180), 0)
        self.assertEqual(sorted(result.lines), sorted(plain_result.lines))
        self.expect_tree(20, 17)

    def test_agents_that_cannot_use_tls(self):
        """All results come on the own link of each agent, and -v says why."""
        self.program = shutil.copy(HVDRUN, self.box.path("hvdrun"))
        modules = os.path.join(BUILD, "lib/hvdrun")
        os.makedirs(self.box.path("lib/hvdrun"))
        for name in os.listdir(modules):
            os.symlink(os.path.join(modules, name), self.box.path("lib/hvdrun", name))
        for broken in (False, True):
            with self.subTest(broken=broken):
                if not broken:
                    os.unlink(self.box.path("lib/hvdrun/hvdrun-tls.so"))
                else:
                    self.write("lib/hvdrun/hvdrun-tls.so", "no module")
                result = self.run_below(self.words(20, "--mpi=pmix"), worker("mpi_fence"), 3, 4096, "random")
                self.assertRegex(result.stdout, r"fence \d")
                self.expect_said(result, r"n\d+: no other agent is below it: .*hvdrun-tls\.so")
                self.expect_said(result, "0 of 20 agents are below others")
                tree = self.tree()
                self.assertEqual((tree["hosts"], tree["through_others"], tree["frames"], tree["again"]), (20, 0, 0, 0))

    def test_programs_without_mpi_have_no_tree(self):
        self.expect(self.run_job(*self.words(4), "true"), 0)
        self.assertIsNone(self.tree())

    def test_programs_of_which_nobody_knew_that_they_use_mpi(self):
        """Agents connect at the first fence, which the driver still sends to all."""
        gate, let_go = self.box.gate()
        fence = f"{worker('mpi_fence')} stay 4096 random"
        job = self.start(*self.words(6), "-v", "sh", "-c", f"{fence} & until [ -e {gate} ]; do sleep 0.2; done; kill $!; wait $!; exit 0", env=QUIET)
        job.wait_output(r"hvdrun: 4 of 6 agents are below others", name="stderr", timeout=120)
        let_go()
        self.expect(job.wait(120), 0)
        self.assertEqual(self.tree()["through_others"], 4)

    def test_fewer_hosts_and_elastic_jobs_keep_the_star(self):
        for words in (("--tree-from", 4), ()):
            self.expect(self.run_job("-H", "a,b,c", "--transport", "local", *words, "--mpi=pmix", "--report",
                                     self.box.path("report.json"), worker("mpi_fence"), 1), 0)
            self.assertIsNone(self.tree())
        self.expect(self.run_job(*self.words(4), "--min-np", 2, "true"), 0)
        self.assertIsNone(self.tree())
        self.expect(self.run_job(*self.words(4), "--tree-from", 0, "true"), 0)
        self.assertIsNone(self.tree())

    @plain
    def test_mpi(self):
        for kind in ("openmpi", "mpich"):
            with self.subTest(kind=kind):
                result = self.run_below(self.words(6, "--mpi-compress", 0, {"openmpi": "--mpi=pmix", "mpich": "--mpi=pmi1"}[kind]), mpi_worker("mpi_hello", kind), 5)
                self.expect_lines(result, [f"[{rank}]<stdout>:rank {rank} of 6 sum 15" for rank in range(6)])
                self.expect_tree(6, 4)

    @plain
    def test_ranks_that_spawn_others(self):
        words = self.words(4)[2:]
        self.run_below(("-H", "n[1-4]:4", *words, "--map-by", "node", "-np", 8, "--mpi-compress", 0, "--mpi=pmix"), mpi_worker("mpi_worlds", "openmpi"))
        self.expect_tree(4, 2)

    def test_several_programs_and_hosts_without_ranks(self):
        """Hosts without ranks have no agent, and do not count."""
        fence = worker("mpi_fence"), 3, 4096, "random"
        for limit, hosts in ((5, 5), (6, None)):
            with self.subTest(limit=limit):
                result = self.run_job(*self.words(8, "--mpi=pmix", "--tree-from", limit), "-np", 2, *fence, ":", "-np", 3, *fence, timeout=120)
                self.expect(result, 0)
                self.assertEqual((self.tree() or {}).get("hosts"), hosts)

    def test_warm_ranks(self):
        self.write("sleeps.py", "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.1)\n")
        gate, let_go = self.box.gate()
        if os.path.exists(gate):
            os.unlink(gate)
        job = self.start(*self.words(6, "--mpi=pmix"), "-v", "--warm", sys.executable, self.box.path("sleeps.py"), gate, env=QUIET)
        job.wait_output(r"hvdrun: 4 of 6 agents are below others", name="stderr", timeout=120)
        let_go()
        self.expect_said(self.expect(job.wait(120), 0), "forked")

    def test_an_agent_that_others_are_below_is_killed(self):
        """Its host is named, as without a tree."""
        job, _ = self.start_below(self.words(20, "--mpi=pmix"), worker("mpi_fence"), 3)
        os.kill(self.agent(job, b"n1").pid, signal.SIGKILL)
        result = job.wait(120)
        self.expect(result, 121)
        self.expect_said(result, r"n1\b")
        self.expect_not_said(result, r"lost.*\bn(4|13)\b")

    def test_an_agent_that_others_are_below_stands_still(self):
        """Those below it are direct until it answers again. What it had is sent again: round 1 fences half of them without its rank."""
        program = worker("mpi_order"), 5, 9000, 1500
        plain_result = self.run_job(*self.words(20, "--tree-from", 0, "--mpi=pmix"), *program, timeout=180)
        self.expect(plain_result, 0)
        job, let_go = self.start_below(self.words(20, "--mpi=pmix"), *program)
        agent = self.agent(job, b"n1").pid
        let_go()
        job.wait_output("round 0$", name="stderr", timeout=120)
        os.kill(agent, signal.SIGSTOP)
        job.wait_output("hvdrun: n1: no heartbeat for", name="stderr", timeout=60)
        os.kill(agent, signal.SIGCONT)
        result = self.expect(job.wait(180), 0)
        self.assertEqual(sorted(result.lines), sorted(plain_result.lines))
        self.expect_tree(20, 17)
        self.assertGreater(self.tree()["returned"], 0)
        self.assertGreater(self.tree()["again"], 0)

    def test_the_end_of_a_job(self):
        """Status, output of all ranks to the last line, and MPI_Abort."""
        result = self.run_job(*self.words(12), worker("exit_with"), "7:5", timeout=120)
        self.expect(result, 5)
        self.expect_blame(result, 7, code=5)
        result = self.run_job(*self.words(12), worker("spew"), "--lines", 500, timeout=120)
        self.expect(result, 0)
        self.assertEqual(len(result.lines), 12 * 500)

    def test_stdin_and_signals(self):
        job = self.start(*self.words(8), "--mpi=none", "--stdin", "all", "sh", "-c", "read -r line; echo got $line; exec sleep 600",
                         stdin=b"word\n")
        job.wait_output("got word", count=8, timeout=120)
        job.signal(signal.SIGTERM)
        self.expect(job.wait(120), 143)


if __name__ == "__main__":
    main()
