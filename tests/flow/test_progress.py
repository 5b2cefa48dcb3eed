# SPDX-License-Identifier: Apache-2.0
"""How far a job is, as its ranks say: by a file, or at the status endpoint of Kubeflow (docs/monitoring.md)."""
# ctest waits

import glob
import json
import os
import sys

from elastic import Elastic
from rig import Flow, main, wait_until

# As the callback of Hugging Face Transformers does it: the address and the token from the environment,
# one request of urllib, which obeys proxies, and nothing but the exception is looked at.
POST = r'''
import json, os, socket, sys, urllib.error, urllib.request
url = os.environ.get("KUBEFLOW_TRAINER_SERVER_URL", "")
def token():
    with open(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]) as file:
        return file.read().strip()
def post(body, url=url, token=None, method="POST", timeout=5):
    token = globals()["token"]() if token is None else token
    request = urllib.request.Request(url, method=method, data=body, headers={
        "Authorization": "Bearer " + token, "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
def status(percent=None, eta=None, **metrics):
    fields = {"lastUpdatedTime": "2026-11-22T02:06:40.342769+00:00",
              "metrics": [{"name": name, "value": str(value)} for name, value in metrics.items()]}
    if percent is not None:
        fields["progressPercentage"] = percent
    if eta is not None:
        fields["estimatedRemainingSeconds"] = eta
    return json.dumps({"trainerStatus": fields}).encode()
rank = int(os.environ["RANK"])
'''


class Progress(Flow):

    def ask(self, *words, status=0, env=None):
        return self.expect(self.start(*words, env=env).wait(), status)

    def status(self):
        return json.loads(self.ask("status", "--json").stdout)

    def begin(self, *args, env=None):
        """A job whose ranks run a script until its gate opens."""
        gate, let_go = self.box.gate()
        job = self.start(*args, env={**(env or {}), "GATE": gate})
        wait_until(lambda: glob.glob(os.path.join(self.box.jobs_folder(), "*.control")), "the control socket")
        return job, let_go

    def test_a_rank_that_is_far_behind(self):
        events = self.box.path("events")
        job, let_go = self.begin("-np", 5, "--straggler-time", 2, "--events", events, "sh", "-c", r'''
            done=50; [ $RANK = 2 ] && done=10
            while [ ! -e "$GATE" ]; do echo $done > $HVDRUN_PROGRESS_FILE; sleep 0.2; [ -e "$1" ] && done=50; done''',
                                 "sh", self.box.path("fast"))
        found = job.wait_output(r"rank 2 on (\S+) is far behind: it has done 10.0 %, and the others 50.0 %", name="stderr", timeout=60)
        host = found.group(1)
        self.assertIn(f"rank 2 on {host} is far behind the others\n", self.ask("status").stdout)
        self.assertEqual([rank.get("straggler") for rank in self.status()["ranks"]], [None, None, True, None, None])
        self.assertRegex(self.ask("top", "--once").stdout, r"\n\* *2 far behind ")
        open(self.box.path("fast"), "w").close()
        job.wait_output(rf"rank 2 on {host} is not far behind any more", name="stderr", timeout=60)
        let_go()
        self.expect(job.wait(), 0)
        with open(events) as file:
            told = [event for event in map(json.loads, file) if event["event"].startswith("straggler")]
        self.assertEqual([(event["event"], event["rank"], event["host"]) for event in told],
                         [("straggler", 2, host), ("straggler_over", 2, host)])

    def shell(self, size, script, **options):
        return self.begin("-np", size, "sh", "-c", script + '\necho told; while [ ! -e "$GATE" ]; do sleep 0.05; done',
                          **options)

    def python(self, size, script, *args, env=None):
        path = self.write("client.py", POST + script + r'''
import time
print("told", flush=True)
while not os.path.exists(os.environ["GATE"]):
    time.sleep(0.05)
''')
        return self.begin(*args, "-np", size, sys.executable, "-I", path, env=env)

    def wait_progress(self, **wanted):
        def there():
            progress = self.status().get("progress", {})
            return progress if all(progress.get(key) == value for key, value in wanted.items()) else None
        return wait_until(there, f"the progress {wanted}")


class File(Progress):

    def test_status_and_ps(self):
        job, let_go = self.shell(3, '[ $RANK = 2 ] || echo "$((RANK * 10 + 5)).5 3600 epoch $RANK" > $HVDRUN_PROGRESS_FILE')
        progress = self.wait_progress(percent=5.5)
        self.assertEqual((progress["rank"], progress["text"]), (0, "epoch 0"))
        self.assertTrue(3500 < progress["eta_s"] <= 3600)
        def of_ranks():
            return {one["rank"]: one["progress"]["percent"] for one in self.status()["ranks"] if "progress" in one}
        wait_until(lambda: of_ranks() == {0: 5.5, 1: 15.5}, "the progress of the ranks")
        shown = self.ask("status").stdout
        self.assertRegex(shown, r"\nprogress: 5.5 %, (1 h 00 min|59 min \d\d s) left, epoch 0 \(rank 0, \d+ s ago\)\n")
        title, line = self.ask("ps").stdout.splitlines()
        self.assertIn("progress", title)
        self.assertIn("5.5 %", line)
        let_go()
        self.expect(job.wait(), 0)

    def test_a_job_that_says_nothing(self):
        job, let_go = self.shell(1, "")
        job.wait_output("told")
        self.assertNotIn("progress", self.status())
        self.assertNotIn("progress", self.ask("ps").stdout + self.ask("status").stdout)
        let_go()
        self.expect(job.wait(), 0)

    def test_the_least_of_the_ranks(self):
        """Rank 0 says nothing."""
        job, let_go = self.shell(4, 'case $RANK in 1) echo 40;; 2) echo 30;; 3) echo 35;; esac > $HVDRUN_PROGRESS_FILE')
        self.assertEqual(self.wait_progress(percent=30)["rank"], 2)
        let_go()
        self.expect(job.wait(), 0)

    def test_it_moves(self):
        job, let_go = self.shell(1, '''echo 1 > $HVDRUN_PROGRESS_FILE; echo one
            while [ ! -e two ]; do sleep 0.05; done; echo 2 >> $HVDRUN_PROGRESS_FILE
            while [ ! -e three ]; do sleep 0.05; done; echo 3 > draft; mv draft $HVDRUN_PROGRESS_FILE''')
        self.wait_progress(percent=1)
        self.write("two", "")
        self.wait_progress(percent=2)
        self.write("three", "")
        self.wait_progress(percent=3)
        let_go()
        self.expect(job.wait(), 0)

    def test_rubbish(self):
        """What cannot be read changes nothing, and nobody is told."""
        job, let_go = self.shell(1, '''echo 7 > $HVDRUN_PROGRESS_FILE; echo seven
            while [ ! -e go ]; do sleep 0.05; done
            head -c 3000000 /dev/urandom > $HVDRUN_PROGRESS_FILE; echo 101 > $HVDRUN_PROGRESS_FILE
            rm $HVDRUN_PROGRESS_FILE; mkfifo $HVDRUN_PROGRESS_FILE; rm $HVDRUN_PROGRESS_FILE
            mkdir $HVDRUN_PROGRESS_FILE; rmdir $HVDRUN_PROGRESS_FILE; ln -s /dev/zero $HVDRUN_PROGRESS_FILE''')
        self.wait_progress(percent=7)
        self.write("go", "")
        job.wait_output("told")
        self.assertEqual(self.status()["progress"]["percent"], 7)
        let_go()
        self.assertEqual(self.expect(job.wait(), 0).said, "")

    def test_how_far_an_ended_job_came(self):
        """The worker ends at once after its last word."""
        report = os.path.join(self.box.work, "report.json")
        self.expect(self.start("-np", 2, "--report", report, "sh", "-c",
                               'sleep 0.3; printf "99.5 1 the end" > $HVDRUN_PROGRESS_FILE').wait(), 0)
        entry, = json.loads(self.ask("ps", "-a", "--json").stdout)
        self.assertEqual(entry["progress"], {"rank": 0, "percent": 99.5, "text": "the end"})
        self.assertIn("\nprogress: 99.5 %, the end (rank 0)\n", self.ask("status", entry["job"]).stdout)
        with open(report, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["progress"]["percent"], 99.5)

    def test_on_several_hosts(self):
        job, let_go = self.begin("--transport", "local", "-H", "a:2,b:2", "-np", 4, "sh", "-c",
                                 'echo $((90 - RANK)) > $HVDRUN_PROGRESS_FILE; while [ ! -e "$GATE" ]; do sleep 0.05; done')
        wait_until(lambda: [one.get("progress", {}).get("percent") for one in self.status()["ranks"]] == [90, 89, 88, 87],
                   "the progress of all ranks")
        let_go()
        self.expect(job.wait(), 0)


class Endpoint(Progress):

    def test_as_transformers_posts(self):
        job, let_go = self.python(2, r'''
if rank == 0:
    body = status(19, 20, loss=0.9189108848571778, grad_norm=float("nan"), current_step=49, total_steps=250)
    assert post(body) == (200, body), post(body)
''', env={"http_proxy": "http://127.0.0.1:1"})
        progress = self.wait_progress(percent=19)
        self.assertEqual(progress["metrics"], {"loss": 0.9189108848571778, "grad_norm": "nan", "current_step": 49,
                                               "total_steps": 250})
        self.assertIn("\nmetrics: loss 0.9189, grad_norm nan, current_step 49, total_steps 250\n", self.ask("status").stdout)
        let_go()
        self.expect(job.wait(), 0)

    def test_requests_library(self):
        try:
            import requests  # noqa: F401
        except ImportError:
            self.skipTest("python3-requests is not installed")
        path = self.write("client.py", POST + "import requests\n"
                          "answer = requests.post(url, data=status(7), headers={'Authorization': 'Bearer ' + token()}, "
                          "timeout=20)\nassert answer.status_code == 200, answer\n"
                          "assert answer.json()['trainerStatus']['progressPercentage'] == 7\n")
        self.expect(self.start("-np", 1, sys.executable, path).wait(), 0)
        entry, = json.loads(self.ask("ps", "-a", "--json").stdout)
        self.assertEqual(entry["progress"]["percent"], 7)

    def test_what_is_refused(self):
        job, let_go = self.python(1, r'''
good = status(1)
assert post(good, token="0" * 32)[0] == 403
assert post(good, token="")[0] == 403
assert post(b"{")[0] == 422
assert post(b"[1]")[0] == 422
assert post(good, url=url + "7")[0] == 404
assert post(good, url=url.replace("/progress/", "/progres/"))[0] == 405
assert post(b" " * 70000)[0] == 413
code, body = post(good, token="x")
answer = json.loads(body)
assert (answer["status"], answer["code"], answer["kind"]) == ("Failure", 403, "Status"), answer
''')
        job.wait_output("told", timeout=60)
        self.assertNotIn("progress", self.status())
        let_go()
        self.expect(job.wait(), 0)

    def test_hostile_clients(self):
        """Connections that say nothing or rubbish: a client that reports has its answer all the same."""
        job, let_go = self.python(1, r'''
import re
host, port, path = re.fullmatch(r"http://([0-9.]+):(\d+)(/.*)", url).groups()
held = []
for i in range(300):
    one = socket.create_connection((host, int(port)))
    one.sendall([b"", b"POST " + path.encode() + b" HTTP/1.1\r\n", b"\x16\x03\x01", b"POST " + path.encode() +
                 b" HTTP/1.1\r\nContent-Length: 60000\r\n\r\n{", b"\0" * 1000][i % 5])
    held.append(one)
for depth in (1000, 60000 // 2):
    assert post(b"[" * depth + b"]" * depth)[0] == 422
assert post(b'{"trainerStatus": {"metrics": [' + b",".join([b'{"name": "m%d", "value": "1"}' % i for i in range(1500)])
            + b"]}}")[0] == 200
assert post(status(55))[0] == 200
''')
        progress = self.wait_progress(percent=55)
        self.assertNotIn("metrics", progress)
        let_go()
        self.expect(job.wait(), 0)

    def test_only_on_loopback(self):
        job, let_go = self.python(1, r'''
assert url.startswith("http://127.0.0.1:"), url
port = int(url.split(":")[2].split("/")[0])
listening = [line.split()[1:4] for line in open("/proc/net/tcp").read().splitlines()[1:]]
mine = [address for address, _, state in listening if state == "0A" and int(address.split(":")[1], 16) == port]
assert mine == ["0100007F:%04X" % port], mine
assert oct(os.stat(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).st_mode & 0o777) == "0o600"
''')
        job.wait_output("told")
        let_go()
        self.expect(job.wait(), 0)

    def test_one_that_is_there_already(self):
        """A real TrainJob: nothing of it is replaced, and nothing is added."""
        script = 'env | grep ^KUBEFLOW_ | sort'
        for name in ("URL", "TOKEN", "CA_CERT"):
            result = self.expect(self.start("-np", 1, "--no-label", "sh", "-c", script,
                                            env={f"KUBEFLOW_TRAINER_SERVER_{name}": "theirs"}).wait(), 0)
            self.assertEqual(result.stdout, f"KUBEFLOW_TRAINER_SERVER_{name}=theirs\n")
        result = self.expect(self.start("-np", 1, "--no-label", "-x", "KUBEFLOW_TRAINER_SERVER_URL=mine", "sh", "-c",
                                        script).wait(), 0)
        self.assertEqual(result.stdout, "KUBEFLOW_TRAINER_SERVER_URL=mine\n")

    def test_with_the_mpi_controller(self):
        result = self.expect(self.start("-np", 1, "--no-label", "--controller", "mpi", "sh", "-c",
                                        'env | grep -c "^KUBEFLOW_TRAINER_SERVER_\\(URL\\|TOKEN\\)="').wait(), 0)
        self.assertEqual(result.stdout.strip(), "2")


class Recovery(Elastic, Progress):

    def test_the_first_report_after_a_change(self):
        """What a rank said before the change is not meant, and of several reports the first one."""
        report = self.box.path("report.json")
        job = self.start_elastic("-H", "a:2", "--max-restarts", 1, "--report", report, "--events", "events", "sh", "-c", '''
            echo "$HVDRUN_EPOCH$RANK" > $HVDRUN_PROGRESS_FILE
            [ "$HVDRUN_EPOCH$RANK" != 11 ] || { sleep 1; kill -9 $$; }
            while [ ! -e may-end ]; do sleep 0.1; done''')
        job.wait_output(r"hvdrun: epoch 2: rank [01] reports progress, \d+\.\d\d s after the failure", "stderr")
        wait_until(lambda: self.status().get("progress", {}).get("percent") == 20, "the progress of the second epoch")
        self.write("may-end", "")
        result = self.expect(job.wait(), 0)
        self.assertEqual(result.stderr.count("reports progress"), 1, result.describe())
        with open(self.box.path("events"), encoding="utf-8") as file:
            event, = [one for one in map(json.loads, file) if one["event"] == "epoch_progress"]
        self.assertEqual(event["epoch"], 2)
        with open(report, encoding="utf-8") as file:
            first, second = json.load(file)["elastic"]["list"]
        self.assertNotIn("progress_s", first)
        self.assertEqual(second["progress_s"], event["progress_s"])
        self.assertGreaterEqual(event["progress_s"], second["phases"]["detect_s"])


if __name__ == "__main__":
    main()
