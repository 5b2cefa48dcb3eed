# SPDX-License-Identifier: Apache-2.0
"""The metrics of a job: --metrics and --metrics-file (docs/monitoring.md), read by Prometheus itself."""
# ctest waits

import http.client
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import unittest
import urllib.parse

from elastic import Elastic
from job_commands import JobCommands
from rig import SOURCE, main, patient, wait_until

OPENMETRICS = "application/openmetrics-text"
SAMPLE = re.compile(r'^(\w+)\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\} (\S+)$')
LINES = 'echo ready; echo two; [ $RANK = 1 ] && echo three; exec sleep 600'


def samples(text):
    """{name: [(labels, value)]}"""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = SAMPLE.match(line)
        assert match, line
        labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2]))
        found.setdefault(match[1], []).append((labels, float(match[3])))
    return found


class LocalConnection(http.client.HTTPConnection):

    def __init__(self, path):
        super().__init__("localhost", timeout=patient(30))
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def fetch(url, path="/metrics", accept=None):
    """The answer and its text."""
    parts = urllib.parse.urlsplit(url)
    one = LocalConnection(parts.path) if parts.scheme == "unix" \
        else http.client.HTTPConnection(parts.hostname, parts.port, timeout=patient(30))
    one.request("GET", path, headers={"Accept": accept} if accept else {})
    answer = one.getresponse()
    text = answer.read().decode()
    one.close()
    return answer, text


class Metrics(JobCommands):

    def serve(self, *args, script=LINES, count=2):
        job, name = self.begin("--metrics", 0, *args, "sh", "-c", script, count=count)
        return job, name, json.loads(self.ask("status", name, "--json").stdout)["metrics"]

    def end(self, job):
        self.ask_only("stop", "--grace", 1)
        job.wait()

    def check(self, text):
        if shutil.which("promtool"):
            done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))


class Serve(Metrics):

    def test_targets(self):
        """A file for file_sd_configs of Prometheus, as long as the job runs."""
        folder = self.box.path("targets")
        os.mkdir(folder)
        jobs = [self.serve("--job-name", name, "--metrics-targets", folder, "-np", 2) for name in ("one", "two")]
        found = {}
        for file in os.listdir(folder):
            entry, = self.read_json(os.path.join(folder, file))
            target, = entry["targets"]
            found[entry["labels"]["hvdrun_name"]] = (file, entry["labels"]["hvdrun_job"], f"http://{target}/metrics")
        self.assertEqual(found, {name: (f"{job}.json", job, url) for name, (_, job, url) in zip(("one", "two"), jobs)})
        for job, name, _ in jobs:
            self.ask("stop", name, "--grace", 1)
            job.wait()
        self.assertEqual(os.listdir(folder), [])
        self.expect_said(self.run_job("--metrics", 0, "--metrics-targets", "/no/such", "-np", 1, "true"),
                         "--metrics-targets: cannot write /no/such/")

    def test_values(self):
        job, name, url = self.serve("-np", 3, "-H", "a:2,b:1", "--transport", "local", count=3)

        def all_lines():
            found = samples(fetch(url)[1])
            lines = {one["rank"]: value for one, value in found["hvdrun_rank_output_lines_total"]}
            return found if lines == {"0": 2, "1": 3, "2": 2} else None

        found = wait_until(all_lines, "the lines of all ranks")
        self.assertTrue(all(labels["job_id"] == name for values in found.values() for labels, _ in values))
        self.assertEqual({labels["state"] for labels, value in found["hvdrun_job_state"] if value}, {"running"})
        self.assertEqual({labels["state"]: value for labels, value in found["hvdrun_hosts"]}["up"], 2)
        self.assertEqual({labels["state"]: value for labels, value in found["hvdrun_ranks"]}["running"], 3)
        self.assertEqual(found["hvdrun_job_size"][0][1], 3)
        self.assertEqual({labels["host"] for labels, _ in found["hvdrun_host_memory_bytes"]}, {"a", "b"})
        for family in ("hvdrun_rank_cpu_seconds_total", "hvdrun_rank_resident_bytes", "hvdrun_rank_threads",
                       "hvdrun_rank_last_output_timestamp_seconds"):
            self.assertEqual([(labels["rank"], labels["host"]) for labels, _ in found[family]],
                             [("0", "a"), ("1", "a"), ("2", "b")], family)
        self.assertTrue(all(value > 0 for _, value in found["hvdrun_rank_resident_bytes"]))
        started = found["hvdrun_job_start_time_seconds"][0][1]
        self.assertTrue(all(value >= started - 1 for _, value in found["hvdrun_rank_last_output_timestamp_seconds"]))
        self.end(job)

    def test_progress(self):
        script = '[ $RANK = 1 ] || echo "25.5 3600" >$HVDRUN_PROGRESS_FILE; echo ready; exec sleep 1000'
        job, _, url = self.serve("-np", 2, script=script, count=2)
        found = wait_until(lambda: next((all_ for all_ in [samples(fetch(url)[1])]
                                         if all_.get("hvdrun_rank_progress_ratio")), None), "the progress of rank 0")
        self.assertEqual([(labels["rank"], value) for labels, value in found["hvdrun_rank_progress_ratio"]], [("0", 0.255)])
        [(labels, left)] = found["hvdrun_rank_remaining_seconds"]
        self.assertEqual(labels["rank"], "0")
        self.assertTrue(3000 < left <= 3600, left)
        self.check(fetch(url)[1])
        self.end(job)

    def test_formats(self):
        job, _, url = self.serve("-np", 2)
        answer, text = fetch(url)
        self.assertEqual((answer.status, answer.getheader("Content-Type")),
                         (200, "text/plain; version=0.0.4; charset=utf-8"))
        self.check(text)
        self.assertIn("# TYPE hvdrun_rank_cpu_seconds_total counter\n", text)
        answer, text = fetch(url, accept=f"{OPENMETRICS};version=1.0.0")
        self.assertEqual(answer.getheader("Content-Type"), f"{OPENMETRICS}; version=1.0.0; charset=utf-8")
        self.assertTrue(text.endswith("\n# EOF\n"))
        self.assertIn("# TYPE hvdrun_rank_cpu_seconds counter\n# UNIT hvdrun_rank_cpu_seconds seconds\n", text)
        self.assertEqual(fetch(url, "/nosuch")[0].status, 404)
        self.end(job)

    def test_unix_socket(self):
        path = self.box.path("socket")
        job, name, url = self.serve("-np", 2, "--metrics", path)
        self.assertEqual(url, f"unix:{path}/metrics")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertIn(f'job_id="{name}"', fetch(f"unix:{path}")[1])
        self.end(job)
        self.assertFalse(os.path.exists(path))

    def test_many_clients_at_once(self):
        """Clients that say nothing take all places for a while, and the job goes on."""
        job, _, url = self.serve("-np", 2)
        parts = urllib.parse.urlsplit(url)
        idle = [socket.create_connection((parts.hostname, parts.port)) for _ in range(100)]
        self.assertRegex(self.ask("status").stdout, "running, 2 ranks")
        for one in idle:
            one.close()
        self.assertEqual(fetch(url)[0].status, 200)
        self.end(job)

    def test_wrong_addresses(self):
        for address in ("nosuch:9400", "65536", "1.2.3.4", ""):
            result = self.expect(self.start("--metrics", address, "-np", 1, "true").wait(), 2)
            self.assertRegex(result.stderr, r"--metrics: .*(not an address|is empty|expected)", result.describe())

    def test_the_address_is_in_use(self):
        """The job runs, without its metrics."""
        job, _, url = self.serve("-np", 2)
        port = urllib.parse.urlsplit(url).port
        result = self.expect(self.start("--metrics", port, "-np", 1, "echo", "runs").wait(), 0)
        self.assertIn("runs", result.stdout)
        self.assertRegex(result.stderr, f"no metrics: cannot listen on http://127.0.0.1:{port}: Address already in use")
        self.end(job)

    def test_the_agent_is_stopped(self):
        """A scrape does not wait for it for long."""
        job, _, url = self.serve("-np", 2, "-H", "a:1,b:1", "--transport", "local")
        agent, = [one.pid for one in job.tree() if b"agent of b" in one.read("cmdline")]
        os.kill(agent, signal.SIGSTOP)
        answer, text = fetch(url)
        os.kill(agent, signal.SIGCONT)
        self.assertEqual(answer.status, 200)
        ranks = [labels["rank"] for labels, _ in samples(text)["hvdrun_rank_resident_bytes"]]
        self.assertIn("0", ranks)  # rank 1 is there too if its agent has answered the status page's first question
        self.end(job)


class File(Metrics):

    def test_file(self):
        path = self.box.path("job.prom")
        job, name = self.begin("--metrics-file", path, "-np", 2, "sh", "-c", LINES, count=2)
        wait_until(lambda: os.path.exists(path), "the file", patient(30))
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.check(text)
        self.assertIn(f'hvdrun_ranks{{job_id="{name}",state="running"}} 2\n', text)
        self.assertNotIn("# EOF", text)
        self.assertEqual([one for one in os.listdir(self.box.work) if one.startswith(".")], [])
        self.end(job)
        self.assertFalse(os.path.exists(path))

    def test_a_folder_that_goes(self):
        """One warning, and the job goes on."""
        folder = self.box.path("folder")
        os.mkdir(folder)
        job, _ = self.begin("--metrics-file", f"{folder}/job.prom", "-np", 1, "sh", "-c", LINES)
        shutil.rmtree(folder)
        wait_until(lambda: "cannot write the metrics" in job.so_far().stderr, "the warning", patient(60))
        self.end(job)


class Restarts(Metrics, Elastic):

    def test_reasons(self):
        job = self.train("-H", "a:2,b:2", "--min-np", 2, "--metrics", 0)
        before = job.members(4)
        url = json.loads(self.ask("status", "--json").stdout)["metrics"]
        job.kill(before[3])
        job.members(4, but=before)

        def restarted():
            found = samples(fetch(url)[1])
            reasons = {labels["reason"]: value for labels, value in found["hvdrun_restarts_total"]}
            return found if reasons.get("crash") == 1 else None

        found = wait_until(restarted, "the restart")
        self.assertGreater(found["hvdrun_recovery_seconds_total"][0][1], 0)
        self.assertGreater(found["hvdrun_job_epoch"][0][1], 1)
        ranks = [labels["rank"] for labels, _ in found["hvdrun_rank_output_lines_total"]]
        self.assertEqual(len(ranks), len(set(ranks)))
        job.finish()


@unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed")
class Prometheus(Metrics):

    def free_port(self):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            return one.getsockname()[1]

    def query(self, server, text):
        """The answer of Prometheus; None while it is not up."""
        try:
            answer, body = fetch(server, "/api/v1/query?query=" + urllib.parse.quote(text))
        except OSError:
            return None
        return json.loads(body)["data"]["result"] if answer.status == 200 else None

    def test_scrape(self):
        job, name, url = self.serve("-np", 2)
        parts, port = urllib.parse.urlsplit(url), self.free_port()
        config = {"global": {"scrape_interval": "1s"},
                  "scrape_configs": [{"job_name": "hvdrun", "static_configs": [{"targets": [parts.netloc]}]}]}
        path = self.write("prometheus.yml", json.dumps(config))  # JSON is YAML
        with open(self.box.path("prometheus.log"), "wb") as log:
            server = self.helper("prometheus", f"--config.file={path}", f"--storage.tsdb.path={self.box.path('tsdb')}",
                                 f"--web.listen-address=127.0.0.1:{port}", stdout=log, stderr=log)
        there = f"http://127.0.0.1:{port}"
        wait_until(lambda: self.query(there, "up") == [] or self.query(there, "up"), "prometheus", patient(60))
        wait_until(lambda: (self.query(there, "up") or [{"value": [0, "0"]}])[0]["value"][1] == "1",
                   "a scrape that Prometheus accepts", patient(60))
        for family in ("hvdrun_rank_cpu_seconds_total", "hvdrun_rank_resident_bytes", "hvdrun_rank_output_lines_total"):
            found = wait_until(lambda: self.query(there, family), family, patient(30))
            self.assertEqual(sorted(one["metric"]["rank"] for one in found), ["0", "1"])
            self.assertEqual({one["metric"]["job_id"] for one in found}, {name})
        dropped = self.query(there, "prometheus_target_scrapes_sample_duplicate_timestamp_total")
        self.assertEqual(dropped or [], [])
        with open(os.path.join(SOURCE, "examples/metrics/grafana.json"), encoding="utf-8") as file:
            board = json.load(file)
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                text = target["expr"].replace("$job_id", name).replace("$__rate_interval", "1m")
                self.assertIsNotNone(self.query(there, text), f"Prometheus reads {text}")
        server.popen.send_signal(signal.SIGTERM)
        server.popen.wait(patient(30))
        self.end(job)


if __name__ == "__main__":
    main()
