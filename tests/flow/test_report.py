# SPDX-License-Identifier: Apache-2.0
"""Records: --report, --events, --launch-trace."""

import json
import os
import signal
import time

from rig import Flow, main, worker


class Report(Flow):

    def report(self, *args, status, **options):
        path = self.box.path("report.json")
        if os.path.exists(path):
            os.unlink(path)
        began = time.time()
        self.result = self.expect(self.run_job("--report", path, *args, **options), status)
        self.span = (began - 1, time.time() + 1)
        return self.read_json(path)

    def check_common(self, report, size, status):
        self.assertEqual(report["version"], 1)
        job = report["job"]
        self.assertEqual((job["np"], job["status"]), (size, status))
        self.assertTrue(job["id"])
        self.assertEqual([rank["rank"] for rank in report["ranks"]], list(range(size)))
        for times in (job, *report["ranks"]):
            if times["ended"] is not None:
                self.assertTrue(self.span[0] <= times["started"] <= times["ended"] <= self.span[1], times)
        self.assertGreaterEqual(job["seconds"], 0)

    def test_success(self):
        report = self.report("-H", "a:2,b:1", "--transport", "local", worker("hello"), status=0)
        self.check_common(report, 3, 0)
        self.assertEqual(report["job"]["cause"]["kind"], "none")
        for rank, host, local in zip(report["ranks"], "aab", (0, 1, 0)):
            self.assertEqual((rank["host"], rank["local_rank"], rank["exit_code"], rank["signal"], rank["role"]),
                             (host, local, 0, None, "ok"))
            self.assertGreater(rank["pid"], 0)
        self.assertEqual(len({rank["pid"] for rank in report["ranks"]}), 3)

    def test_cause_and_consequence(self):
        report = self.report("-np", 3, worker("exit_with"), "--say", "x", "1:3", status=3)
        self.check_common(report, 3, 3)
        cause = report["job"]["cause"]
        self.assertEqual((cause["kind"], cause["rank"], cause["host"]), ("exit", 1, report["ranks"][1]["host"]))
        self.assertIn("rank 1", cause["text"])
        self.assertEqual([rank["role"] for rank in report["ranks"]], ["consequence", "cause", "consequence"])
        self.assertEqual([rank["exit_code"] for rank in report["ranks"]], [None, 3, None])
        self.assertEqual([rank["signal"] for rank in report["ranks"]], [15, None, 15])

    def test_pids_are_those_of_the_workers(self):
        gate, let_go = self.box.gate()
        path = self.box.path("report.json")
        job = self.start("--report", path, "-np", 2, worker("hang"), "--until", gate)
        pids = {rank: int(job.wait_output(rf"\[{rank}\]<stdout>:ready (\d+)").group(1)) for rank in range(2)}
        let_go()
        self.expect(job.wait(), 0)
        self.assertEqual({rank["rank"]: rank["pid"] for rank in self.read_json(path)["ranks"]}, pids)

    def test_signal(self):
        report = self.report("-np", 2, worker("crash"), "--rank", 0, "--how", 9, status=137)
        self.assertEqual(report["job"]["cause"]["kind"], "signal")
        self.assertEqual((report["ranks"][0]["signal"], report["ranks"][0]["exit_code"]), (9, None))
        self.assertEqual(report["ranks"][0]["role"], "cause")

    def test_exec_failure(self):
        report = self.report("-np", 2, "./no/such/file", status=127)
        self.assertIn("./no/such/file", report["ranks"][0]["text"])
        self.assertEqual(report["job"]["cause"]["kind"], "exec")
        self.assertIn("no/such/file", report["job"]["cause"]["text"])

    def test_timeout(self):
        report = self.report("-np", 2, "--timeout", 1, "--grace", 1, worker("hang"), status=124)
        self.assertEqual(report["job"]["cause"]["kind"], "timeout")
        self.assertEqual({rank["role"] for rank in report["ranks"]}, {"consequence"})

    def test_interrupted(self):
        path = self.box.path("report.json")
        job = self.start("--report", path, "-np", 2, worker("hang"))
        job.wait_output("ready", count=2)
        job.signal(signal.SIGINT)
        self.expect(job.wait(), 130)
        self.assertEqual(self.read_json(path)["job"]["cause"]["kind"], "interrupted")

    def test_agent_lost(self):
        path = self.box.path("report.json")
        job = self.start("--report", path, "-H", "a:1,b:1", "--transport", "local", "--grace", 1, worker("hang"))
        job.wait_output("ready", count=2)
        os.kill(job.workers()[1].ppid, signal.SIGKILL)
        self.expect(job.wait(), 121)
        report = self.read_json(path)
        self.assertEqual((report["job"]["cause"]["kind"], report["job"]["cause"]["host"]), ("node-lost", "b"))
        self.assertEqual([rank["role"] for rank in report["ranks"]], ["consequence", "lost"])

    def test_odd_bytes_do_not_break_the_json(self):
        report = self.report("-np", 1, worker("hello"), b"--\xff\xfe", '"quoted"\n', status=0)
        self.assertEqual(report["job"]["np"], 1)

    def test_report_that_cannot_be_written(self):
        self.write("file", "")
        result = self.run_job("--report", "file/report.json", "--events", "no/events", "-np", 1, worker("hello"))
        self.expect(result, 2)
        self.expect_said(result, "--report: cannot write file/report.json: not a directory; "
                                 "--events: cannot write no/events: its folder does not exist")
        self.assertEqual(result.stdout, "")
        result = self.run_job("--report", "/dev/full", "-np", 1, worker("hello"))
        self.expect_said(result, "/dev/full.*no space")
        self.assertIn("hello from rank 0", result.stdout)


class Events(Flow):

    def events(self, *args, status):
        path = self.box.path("events")
        self.expect(self.run_job("--events", path, *args), status)
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        return [json.loads(line) for line in lines]

    def test_the_story_of_a_job(self):
        events = self.events("-np", 2, worker("hello"), status=0)
        times = [event["time"] for event in events]
        self.assertTrue(all(abs(when - time.time()) < 600 for when in times))
        names = [event["event"] for event in events]
        self.assertEqual(names[0], "job_start", names)
        self.assertEqual(names[-1], "job_end", names)
        self.assertEqual(events[-1]["status"], 0)
        self.assertEqual(names.count("agent_up"), 1, names)
        for name in ("worker_start", "worker_exit", "worker_finished"):
            own = [event for event in events if event["event"] == name]
            self.assertEqual(sorted(event["rank"] for event in own), [0, 1], names)
        for rank in range(2):
            own = [event["event"] for event in events if event.get("rank") == rank]
            self.assertEqual(own, ["worker_start", "worker_exit", "worker_finished"])

    def test_a_failure(self):
        events = self.events("-np", 2, worker("exit_with"), "1:3", status=3)
        exits = {event["rank"]: event for event in events if event["event"] == "worker_exit"}
        self.assertEqual(exits[1]["exit_code"], 3)
        self.assertEqual(exits[0]["signal"], 15)
        self.assertEqual(events[-1]["status"], 3)

    def test_live(self):
        # a reader of the file sees each event when it happens
        path = self.box.path("events")
        gate, let_go = self.box.gate()
        job = self.start("--events", path, "-np", 1, worker("hang"), "--until", gate)
        job.wait_output("ready")
        with open(path, encoding="utf-8") as file:
            self.assertIn('"worker_start"', file.read())
        let_go()
        self.expect(job.wait(), 0)


class Trace(Flow):

    def test_it_is_a_trace(self):
        path = self.box.path("trace.json")
        self.expect(self.run_job("--launch-trace", path, "-H", "a:2,b:1", "--transport", "local", worker("hello")), 0)
        trace = self.read_json(path)
        spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        self.assertGreaterEqual(len(spans), 3)
        for span in spans:
            self.assertGreaterEqual(span["dur"], 0, span)
            self.assertGreaterEqual(span["ts"], 0, span)
        text = json.dumps(trace)
        for rank in range(3):
            self.assertIn(f"rank {rank}", text)


if __name__ == "__main__":
    main()
