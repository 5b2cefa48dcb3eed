# SPDX-License-Identifier: Apache-2.0
"""hvdrun top: what the ranks and hosts of a job use (docs/jobs.md)."""
# ctest waits

import json

from job_commands import JobCommands
from rig import HVDRUN, Terminal, main, patient, wait_until

# The rank 2 sleeps, the others compute.
BUSY = 'echo ready; if [ $RANK = 2 ]; then exec sleep 600; fi; while :; do :; done'


class Top(JobCommands):

    def once(self, *words):
        return json.loads(self.ask("top", "--once", "--json", *words).stdout)

    def test_once(self):
        job, name = self.begin("-np", 4, "sh", "-c", BUSY, count=4)

        def different():
            usage = self.once(name)
            first = usage["ranks"][0]
            return usage if (first["rank"], first["marks"].get("cpus")) == (2, "less") else None

        # On a loaded machine, the others may get little of the CPU for a while.
        usage = wait_until(different, "the rank that differs", patient(60))
        self.assertEqual(sorted(one["rank"] for one in usage["ranks"]), [0, 1, 2, 3])
        for one in usage["ranks"]:
            self.assertGreater(one["resident_bytes"], 0)
            self.assertEqual((one["threads"], one["processes"]), (1, 1), one)
            self.assertGreaterEqual(one["last_output_s"], 0)
        host, = usage["hosts"]
        self.assertGreater(host["memory_bytes"], host["memory_available_bytes"])
        self.assertGreaterEqual(host["load"], 0)
        shown = self.ask("top", "--once").stdout
        self.assertRegex(shown, rf"\A{name}: running, 4 ranks on 1 host, up ")
        self.assertRegex(shown, r"(?m)^ +rank +host +cpu +last output +memory ")
        self.ask_only("stop", "--grace", 1)
        job.wait()

    def test_a_silent_rank(self):
        """It may hang in its imports: it has never written anything, and comes first for that."""
        script = '[ $RANK = 3 ] && exec sleep 1000; while :; do echo ready; sleep 0.5; done'
        events = self.box.path("events")
        job, name = self.begin("--straggler-time", 3, "--events", events, "-np", 5, "sh", "-c", script, count=4)
        first = wait_until(lambda: next((one for one in self.once(name)["ranks"] if one["marks"].get("last_output_s")), None),
                           "the silent rank", patient(60))
        self.assertEqual((first["rank"], first["marks"]["last_output_s"]), (3, "none"))
        self.assertRegex(self.ask("top", "--once").stdout, r"\n\* *3 +\S+ .* none yet < ")
        job.wait_output(r"hvdrun: .*rank 3 on \S+ is silent: it has not written anything yet, and 4 of 5 ranks have", name="stderr")
        self.assertRegex(self.ask("status").stdout, r"(?m)^rank 3 on \S+ is silent: most others have written something")
        with open(events, encoding="utf-8") as file:
            told = [event for event in map(json.loads, file) if event["event"] == "straggler"]
        self.assertEqual([event["rank"] for event in told if event.get("silent")], [3], told)
        self.ask_only("stop", "--grace", 1)
        job.wait()

    def test_children_count(self):
        """Also those that have ended and were waited for."""
        script = 'head -c 5000000 /dev/zero >/dev/null; sleep 600 & echo ready; wait'
        job, _ = self.begin("-np", 1, "sh", "-c", script)
        one, = self.once()["ranks"]
        self.assertEqual(one["processes"], 2, one)
        if "read_bytes" in one:
            self.assertGreaterEqual(one["read_bytes"], 5000000)
        self.ask_only("stop", "--grace", 1)
        job.wait()

    def test_progress(self):
        """A column of its own, and in the JSON."""
        script = 'echo ready; [ $RANK = 1 ] || echo "25.5 3600 epoch 2" >$HVDRUN_PROGRESS_FILE; exec sleep 1000'
        job, _ = self.begin("-np", 2, "sh", "-c", script, count=2)
        usage = wait_until(lambda: next((one for one in [self.once()] if any("progress" in rank for rank in one["ranks"])), None),
                           "the progress of rank 0", patient(60))
        found = {one["rank"]: one.get("progress") for one in usage["ranks"]}
        self.assertIsNone(found[1])
        self.assertEqual((found[0]["percent"], found[0]["text"]), (25.5, "epoch 2"))
        self.assertTrue(3000 < found[0]["eta_s"] <= 3600, found)
        shown = self.ask("top", "--once").stdout
        self.assertRegex(shown, r"(?m)^ +rank .* last output +progress +memory ")
        self.assertRegex(shown, r"(?m)^ +0 .* 25\.5 %  ")
        self.assertRegex(shown, r"(?m)^ +1 .* -  ")
        self.ask_only("stop", "--grace", 1)
        job.wait()

    def test_many_hosts(self):
        job, _, let_go = self.hang("-np", 3, "-H", "a:2,b:1", "--transport", "local", count=3)
        usage = self.once()
        self.assertEqual([one["host"] for one in usage["hosts"]], ["a", "b"])
        self.assertEqual([(one["rank"], one["host"]) for one in sorted(usage["ranks"], key=lambda one: one["rank"])],
                         [(0, "a"), (1, "a"), (2, "b")])
        let_go()
        self.expect(job.wait(), 0)

    def test_wrong_use(self):
        self.refused("no job runs|no running job|there is no", "top", "--once")
        job, _, let_go = self.hang("-np", 1)
        self.refused("top needs a terminal; use 'hvdrun top --once'", "top", status=2)
        self.refused("--json needs --once", "top", "--json", status=2)
        let_go()
        self.expect(job.wait(), 0)

    def test_live(self):
        job, name, let_go = self.hang("-np", 2, count=2)
        top = self.terminal("top")
        top.wait_output(rf"{name}: running, 2 ranks on 1 host")
        top.wait_output(r"last o")
        top.type("q")
        self.assertEqual(top.wait(), 0)
        self.assertIn("\x1b[?1049l", top.output())  # the terminal is as before
        let_go()
        self.expect(job.wait(), 0)

    def test_many_ranks(self):
        """The ranks come first, their titles stay, and the last line has the keys. The hosts are one key away."""
        job, name = self.begin("-np", 40, "-H", "a:20,b:20", "--transport", "local", "sh", "-c", "echo ready; exec sleep 300", count=40)
        top = Terminal(self.box, [HVDRUN, "top"], rows=24, columns=80)
        top.wait_output(rf"{name}: running, 40 ranks on 2 hosts")
        top.wait_output(r"q quit  arrows scroll  s sort \(unusual first\)  h hosts   1-21 of 40")
        top.type("s")
        top.wait_output(r"by rank")
        top.type("\x1bOF")  # End
        top.wait_output(r"20-40 of 40")
        top.type("h")
        top.wait_output(r"load")
        top.wait_output(r"r ranks   1-2 of 2")
        top.type("q")
        self.assertEqual(top.wait(), 0)
        self.ask("stop", name, "--grace", 1)
        job.wait()

    def test_small_and_simple_terminals(self):
        job, name = self.begin("-np", 3, "sh", "-c", "echo ready; exec sleep 300", count=3)
        top = Terminal(self.box, [HVDRUN, "top"], rows=5, columns=40)
        top.wait_output(r"last output")  # among the first columns
        top.wait_output(r"q quit")
        top.type("q")
        self.assertEqual(top.wait(), 0)
        dumb = Terminal(self.box, [HVDRUN, "top"], env={"TERM": "dumb"})
        dumb.wait_output("cannot use this terminal; is TERM right\\? 'hvdrun top --once' works")
        self.assertEqual(dumb.wait(), 1)
        self.ask("stop", name, "--grace", 1)
        job.wait()

    def test_the_job_ends(self):
        job, name, let_go = self.hang("-np", 1)
        top = self.terminal("top")
        top.wait_output(rf"{name}: running, 1 rank on 1 host")
        let_go()
        self.expect(job.wait(), 0)
        top.wait_output(rf"job {name} has ended; 'hvdrun status {name}' says how")
        self.assertEqual(top.wait(), 1)


if __name__ == "__main__":
    main()
