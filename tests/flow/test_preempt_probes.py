# SPDX-License-Identifier: Apache-2.0
"""The probes of examples/preempt/ against a simulated metadata service on 127.0.0.1.

The service is as strict as the real ones: EC2 wants a session token, Google and Azure want their
header. Whatever it does, a probe keeps the contract: status 0 and "SECONDS reason", status 1, or
status 2 and one line on stderr.
"""
# ctest waits
# ctest long
# ctest plain

import datetime
import email.utils
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading

from rig import SOURCE, Flow, main, patient

PROBES = os.path.join(SOURCE, "examples/preempt")
TOKEN = "AQAEAMadeUpToken=="

ACTION = "/latest/meta-data/spot/instance-action"
REBALANCE = "/latest/meta-data/events/recommendations/rebalance"
PREEMPTED = "/computeMetadata/v1/instance/preempted"
MAINTENANCE = "/computeMetadata/v1/instance/maintenance-event"
EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
NAME = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, text="", headers=()):
        body = text.encode() if isinstance(text, str) else text
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.server.drip:
            for at in range(len(body)):
                if self.server.over.wait(0.5):
                    return
                self.wfile.write(body[at:at + 1])
                self.wfile.flush()
        else:
            self.wfile.write(body)

    def refusal(self):
        """The status with which the real service refuses such a request; None: it is right."""
        if self.path.startswith("/latest/") and self.headers.get("X-aws-ec2-metadata-token") != TOKEN:
            return 401
        if self.path.startswith("/computeMetadata/") and self.headers.get("Metadata-Flavor") != "Google":
            return 403
        if self.path.startswith("/metadata/") and self.headers.get("Metadata") != "true":
            return 400
        return None

    def handle_one(self):
        self.server.asked.append(f"{self.command} {self.path}")
        if self.server.silent:
            self.server.over.wait(60)
            return
        if self.server.status is not None:
            self.answer(self.server.status, "no", [("Location", "/elsewhere")])
        elif self.command == "PUT":
            life = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds", "")
            right = self.path == "/latest/api/token" and life.isdigit() and 1 <= int(life) <= 21600
            self.answer(200 if right else 400, TOKEN if right else "")
        elif self.refusal() is not None:
            self.answer(self.refusal())
        elif self.path in self.server.pages:
            google = self.path.startswith("/computeMetadata/")
            self.answer(200, self.server.pages[self.path], [("Metadata-Flavor", "Google")] if google else [])
        else:
            self.answer(404, "<html>Not Found</html>")

    do_GET = do_PUT = handle_one


class Service(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, pages):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages, self.asked, self.over = pages, [], threading.Event()
        self.status, self.silent, self.drip = None, False, False
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def handle_error(self, *_):
        pass  # a probe that gave up

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def close(self):
        self.over.set()
        self.shutdown()
        self.server_close()
        self.thread.join()


def from_now(seconds):
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)


def azure_events(*events):
    return json.dumps({"DocumentIncarnation": 1, "Events": [
        {"EventId": "C7061BAC-AFDC-4513-B24B-AA5F13A16123", "EventStatus": "Scheduled", "EventType": kind,
         "ResourceType": "VirtualMachine", "Resources": resources, "NotBefore": when, "Description": "",
         "EventSource": "Platform", "DurationInSeconds": -1} for kind, resources, when in events]})


def azure_time(seconds):
    return email.utils.format_datetime(from_now(seconds), usegmt=True)


# What each service says when nothing is going to happen, and when something is.
QUIET = {
    "aws": {},
    "gcp": {PREEMPTED: "FALSE", MAINTENANCE: "NONE"},
    "azure": {EVENTS: azure_events(), NAME: "Node_3"},
}
FIRST = {"aws": ACTION, "gcp": PREEMPTED, "azure": EVENTS}


class Probes(Flow):

    def serve(self, probe, **pages):
        service = Service({**QUIET[probe], **pages.get("pages", {})})
        self.addCleanup(service.close)
        return service

    def ask(self, probe, url, *args, env=None, folder=PROBES):
        # the `python3` of the probe is ours, and not a script that looks for one
        path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
        environment = self.box.environment({"HVDRUN_METADATA_URL": url, "PATH": path, **(env or {})})
        result = subprocess.run([os.path.join(folder, probe), *args], env=environment, cwd=self.box.work,
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patient(60))
        self.assertNotIn("Traceback", result.stderr)
        self.assertLessEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertEqual(result.returncode == 0, result.stdout != "", result)
        return result

    def expect_none(self, probe, service, *args):
        result = self.ask(probe, service.url, *args)
        self.assertEqual((result.returncode, result.stderr), (1, ""), result)

    def expect_notice(self, probe, service, seconds, reason, *args):
        """`seconds` is a (least, most), or None: no number in front."""
        result = self.ask(probe, service.url, *args)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        match = re.fullmatch(r"(?:(\d+) )?(\D.*)\n", result.stdout)
        self.assertIsNotNone(match, result.stdout)
        self.assertIn(reason, match[2])
        if seconds is None:
            self.assertIsNone(match[1], result.stdout)
        else:
            self.assertTrue(seconds[0] <= int(match[1]) <= seconds[1], result.stdout)

    def expect_unclear(self, probe, url, text, *args, **options):
        result = self.ask(probe, url, *args, **options)
        self.assertEqual(result.returncode, 2, result)
        self.assertRegex(result.stderr, text)
        return result

    def test_no_notice(self):
        for probe in QUIET:
            with self.subTest(probe=probe):
                self.expect_none(probe, self.serve(probe))

    def test_aws_notice(self):
        for action in ("terminate", "stop"):
            when = from_now(1000).strftime("%Y-%m-%dT%H:%M:%SZ")
            service = self.serve("aws", pages={ACTION: json.dumps({"action": action, "time": when})})
            self.expect_notice("aws", service, (700, 1000), f"to {action} this")
        service = self.serve("aws", pages={ACTION: '{"action": "terminate", "time": "2017-09-18T08:22:00Z"}'})
        self.expect_notice("aws", service, (0, 0), "terminate")
        service = self.serve("aws", pages={ACTION: '{"action": "hibernate"}'})
        self.expect_notice("aws", service, None, "hibernate")

    def test_a_reason_that_cannot_be_printed(self):
        service = self.serve("aws", pages={ACTION: '{"action": "stop\\ud800\\u00e9"}'})
        self.expect_notice("aws", service, None, r"stop\ud800")

    def test_aws_rebalance(self):
        service = self.serve("aws", pages={REBALANCE: '{"noticeTime": "2020-10-27T08:22:00Z"}'})
        self.expect_none("aws", service)
        self.assertNotIn(f"GET {REBALANCE}", service.asked)
        self.expect_notice("aws", service, None, "rebalance", "--rebalance")
        self.expect_none("aws", self.serve("aws"), "--rebalance")
        both = self.serve("aws", pages={REBALANCE: "{}", ACTION: '{"action": "stop", "time": "2017-09-18T08:22:00Z"}'})
        self.expect_notice("aws", both, (0, 0), "stop", "--rebalance")

    def test_gcp_notice(self):
        self.expect_notice("gcp", self.serve("gcp", pages={PREEMPTED: "TRUE"}), (25, 25), "preempts")
        service = self.serve("gcp", pages={MAINTENANCE: "TERMINATE_ON_HOST_MAINTENANCE\n"})
        self.expect_notice("gcp", service, None, "maintenance")
        self.expect_none("gcp", self.serve("gcp", pages={MAINTENANCE: "MIGRATE_ON_HOST_MAINTENANCE"}))

    def test_azure_notice(self):
        for kind in ("Preempt", "Terminate", "Reboot", "Redeploy"):
            events = azure_events((kind, ["node_3"], azure_time(1000)))
            self.expect_notice("azure", self.serve("azure", pages={EVENTS: events}), (700, 1000), kind.lower())
        events = azure_events(("Preempt", ["Node_3"], ""))
        self.expect_notice("azure", self.serve("azure", pages={EVENTS: events}), (0, 0), "preempt")
        events = azure_events(("Reboot", ["Node_3"], azure_time(5000)), ("Preempt", ["Node_3"], azure_time(1000)),
                              ("Preempt", ["Node_4"], azure_time(1)))
        self.expect_notice("azure", self.serve("azure", pages={EVENTS: events}), (700, 1000), "preempt")

    def test_azure_events_that_are_for_others(self):
        events = azure_events(("Preempt", ["Node_4", "Node_30"], azure_time(10)), ("Freeze", ["Node_3"], azure_time(10)))
        service = self.serve("azure", pages={EVENTS: events})
        self.expect_none("azure", service)
        service.pages[EVENTS] = azure_events(("Freeze", ["Node_3"], azure_time(10)))
        del service.pages[NAME], service.asked[:]
        self.expect_none("azure", service)
        self.assertEqual(service.asked, [f"GET {EVENTS}"])

    def test_server_down(self):
        with socket.socket() as holder:  # bound, so that nobody else listens there
            holder.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{holder.getsockname()[1]}"
            for probe in QUIET:
                with self.subTest(probe=probe):
                    self.expect_unclear(probe, url, "cannot reach .*[Rr]efused.*is this a machine of that provider")

    def test_statuses(self):
        """404 for everything is no cloud; 302 is never followed."""
        for probe in QUIET:
            service = self.serve(probe)
            for status in (302, 400, 401, 403, 404, 429, 500, 503):
                with self.subTest(probe=probe, status=status):
                    service.status = status
                    wanted = f"with status {status}" if status != 404 else "does not know|does not give a session token"
                    self.expect_unclear(probe, service.url, wanted)
            self.assertFalse([line for line in service.asked if "elsewhere" in line])

    def test_slow(self):
        for probe in QUIET:
            with self.subTest(probe=probe, way="silent"):
                service = self.serve(probe)
                service.silent = True
                self.expect_unclear(probe, service.url, "cannot reach .*timed out|no answer from the metadata service")
            with self.subTest(probe=probe, way="byte by byte"):
                service = self.serve(probe)
                service.drip = True
                service.status = None
                service.pages[FIRST[probe]] = "x" * 60
                self.expect_unclear(probe, service.url, "no answer from the metadata service within")

    def test_garbage(self):
        garbage = ["", "x", "{", "[]", "null", '{"action": 1}x', '{"Events": 1}', '{"Events": [1]}', "TRUE?", "<html>", b"\xff\xfe",
                   '{"action": "stop", "time": "soon"}', '{"action": "stop", "time": 7}', '{"time": "2017-09-18T08:22:00Z"}',
                   azure_events(("Preempt", ["Node_3"], "soon")), azure_events(("Preempt", None, "")),
                   '{"Events": [{"EventType": "Preempt", "Resources": ["Node_3"], "NotBefore": 7}]}']
        for probe in QUIET:
            service = self.serve(probe)
            for text in garbage:
                with self.subTest(probe=probe, text=text):
                    service.pages[FIRST[probe]] = text
                    self.expect_unclear(probe, service.url, "does not understand")

    def test_no_http_server(self):
        """Something listens there that speaks no HTTP."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def serve():
                while True:
                    try:
                        peer = listener.accept()[0]
                    except OSError:
                        return
                    with peer:
                        peer.recv(4096)
                        peer.sendall(b"\0SSH-2.0 \xff\r\n\r\n")
            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            for probe in QUIET:
                with self.subTest(probe=probe):
                    self.expect_unclear(probe, f"http://127.0.0.1:{listener.getsockname()[1]}", "invalid answer|cannot reach")
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(patient(10))

    def test_proxies_are_not_used(self):
        for probe in QUIET:
            service = self.serve(probe)
            names = ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
            result = self.ask(probe, service.url, env={name: "http://127.0.0.1:1" for name in names})
            self.assertEqual(result.returncode, 1, result)

    def test_wrong_words(self):
        for probe in QUIET:
            self.expect_unclear(probe, "http://127.0.0.1:1", f"usage: {probe}", "--no-such-option")
            self.expect_unclear(probe, "no url", "invalid answer|cannot reach|error in this probe")

    def test_copied_alone(self):
        """Status 1 would say that there is no notice."""
        for probe in QUIET:
            shutil.copy(os.path.join(PROBES, probe), self.box.path())
            self.expect_unclear(probe, "http://127.0.0.1:1", "metadata.py must be", folder=self.box.path())

    def test_nothing_is_written(self):
        self.expect_none("gcp", self.serve("gcp"))
        self.assertNotIn("__pycache__", os.listdir(PROBES))


if __name__ == "__main__":
    main()
