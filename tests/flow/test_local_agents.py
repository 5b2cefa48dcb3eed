# SPDX-License-Identifier: Apache-2.0
"""--transport local: simulated hosts, which are real agents on this machine under invented names."""

import os
import re
import signal
import unittest

from rig import Flow, main, plain, sanitized, state, wait_until, worker


class LocalAgents(Flow):

    def test_one_agent_for_each_host(self):
        gate, let_go = self.box.gate()
        job = self.start("-H", "a:2,b:2", "--transport", "local", worker("hang"), "--until", gate)
        job.wait_output("ready", count=4)
        agents, workers = job.agents(), job.workers()
        self.assertEqual(len(agents), 2, job.describe())
        parents = [workers[rank].ppid for rank in range(4)]
        self.assertEqual(parents[0], parents[1], "ranks of one host have one agent")
        self.assertEqual(parents[2], parents[3])
        self.assertNotEqual(parents[0], parents[2])
        self.assertEqual({agent.pid for agent in agents}, set(parents))
        self.assertEqual({agent.read("cmdline").rstrip(b" \0") for agent in agents},
                         {b"hvdrun: agent of a", b"hvdrun: agent of b"}, "ps shows what they are")
        let_go()
        self.expect(job.wait(), 0)

    def test_one_agent_always_also_for_a_plain_job(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 1, worker("hang"), "--until", gate)
        job.wait_output("ready")
        self.assertEqual(len(job.agents()), 1, job.describe())
        let_go()
        self.expect(job.wait(), 0)

    def test_agents_and_workers_have_sessions_of_their_own(self):
        gate, let_go = self.box.gate()
        job = self.start("-H", "a:1,b:1", "--transport", "local", worker("hang"), "--until", gate)
        job.wait_output("ready", count=2)
        sessions = [one.session for one in job.agents()] + [one.session for one in job.workers().values()]
        self.assertNotIn(os.getsid(job.pid), sessions, "Ctrl-C of a terminal must reach only the launcher")
        self.assertEqual(len(set(sessions)), 4, job.describe())
        let_go()
        self.expect(job.wait(), 0)

    def test_environment_by_host(self):
        names = ["HOROVOD_HOSTNAME", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE", "HOROVOD_CROSS_RANK",
                 "HOROVOD_CROSS_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"]
        result = self.expect(self.run_job("-H", "a:2,b:1", "--transport", "local", worker("hello"), *names), 0)
        want = {0: ["a", 0, 2, 0, 2, 0, 2], 1: ["a", 1, 2, 0, 1, 0, 2], 2: ["b", 0, 1, 1, 2, 1, 2]}
        for rank, values in want.items():
            for name, value in zip(names, values):
                self.assertIn(f"[{rank}]<stdout>:{name}={value}", result.lines, result.describe())

    def test_hosts_without_a_rank_have_no_agent(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 2, "-H", "a:2,b:2", "--transport", "local", worker("hang"), "--until", gate)
        job.wait_output("ready", count=2)
        self.assertEqual(len(job.agents()), 1, job.describe())
        let_go()
        self.expect(job.wait(), 0)

    @plain
    def test_many_hosts(self):
        hosts = 16 if sanitized() else 64
        result = self.run_job("-H", f"n[1-{hosts}]:2", "--transport", "local", worker("hello"), timeout=120)
        self.expect(result, 0)
        self.expect_lines(result, [f"[{r}]<stdout>:hello from rank {r} of {2 * hosts}" for r in range(2 * hosts)])

    def anonymous_kib(self, hosts, ranks):
        """Of the largest agent, once all ranks run."""
        gate, let_go = self.box.gate(f"gate-{hosts}")
        job = self.start("-H", f"n[1-{hosts}]:{ranks // hosts}", "--transport", "local", "--mpi=pmix", "--start-timeout", "120",
                         worker("hang"), "--until", gate)
        job.wait_output("ready", count=ranks, timeout=120)
        found = [re.search(rb"RssAnon:\s+(\d+) kB", agent.read("status")) for agent in job.agents()]
        let_go()
        self.expect(job.wait(120), 0)
        self.assertEqual(len(found), hosts)
        return max(int(match.group(1)) for match in found)

    @plain
    @unittest.skipIf(sanitized(), "the allocator is the sanitizer's")
    def test_agents_give_back_what_pmix_needed_to_start(self):
        hosts, ranks = 100, 200
        each = (self.anonymous_kib(hosts, ranks) - self.anonymous_kib(1, 2)) / (ranks - 2)
        self.assertLess(each, 6, "KiB in each agent for each rank of the job: PMIx keeps 3, and starts with 9 to 10")

    def test_failure_on_one_host_ends_all(self):
        result = self.run_job("-H", "a:2,b:2,c:2", "--transport", "local", worker("exit_with"), "--say", "no", "3:3")
        self.expect(result, 3)
        self.expect_blame(result, 3, code=3, host="b")

    def test_signals_reach_all_hosts(self):
        job = self.start("-H", "a:1,b:1,c:1", "--transport", "local", worker("signals"), "--exit-on", "TERM")
        job.wait_output("ready", count=3)
        job.signal(signal.SIGTERM)
        self.assertEqual(self.expect(job.wait(), 0).stdout.count("got SIGTERM"), 3)

    def test_suspend_reaches_all_hosts(self):
        gate, let_go = self.box.gate()
        job = self.start("-H", "a:1,b:1", "--transport", "local", worker("hang"), "--until", gate)
        job.wait_output("ready", count=2)
        workers = job.wait_workers(2)
        job.signal(signal.SIGTSTP)
        wait_until(lambda: all(state(one.pid) == "T" for one in workers.values()), "stopped ranks")
        wait_until(lambda: state(job.pid) == "T", "a stopped launcher")
        os.kill(job.pid, signal.SIGCONT)
        let_go()
        self.expect(job.wait(), 0)


if __name__ == "__main__":
    main()
