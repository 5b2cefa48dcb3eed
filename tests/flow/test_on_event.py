# SPDX-License-Identifier: Apache-2.0
"""--on-event COMMAND: a command of the user hears of events (docs/output.md), and never holds up the job."""
# ctest waits

import http.server
import json
import os
import signal
import sys
import threading

from elastic import Elastic
from rig import Flow, main, wait_until

EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "examples/events")


class OnEvent(Flow):

    def recorder(self, first=""):
        """A command that appends each event to a file."""
        return self.write("record", f"#!/bin/sh\n{first}\ncat >> {self.box.path('heard')}\n", 0o755)

    def heard(self):
        try:
            with open(self.box.path("heard"), encoding="utf-8") as file:
                return [json.loads(line) for line in file]
        except FileNotFoundError:
            return []

    def names(self):
        return [one["event"] for one in self.heard()]


class Events(OnEvent):

    def test_success(self):
        self.expect(self.start("--on-event", self.recorder(), "-np", 2, "true").wait(), 0)
        self.assertEqual(sorted(self.names()), ["ended", "started"])
        for one in self.heard():
            self.assertRegex(one["job"], r"\Ahvdrun-")
            self.assertEqual((one["command"], one["missed"]), ("true", 0))
        ended, = [one for one in self.heard() if one["event"] == "ended"]
        self.assertEqual((ended["status"], ended["cause"]), (0, "none"))

    def test_failure(self):
        """The ranks that hvdrun terminates because of it have not failed."""
        self.expect(self.start("--on-event", self.recorder(), "-np", 3, "sh", "-c",
                               "sleep 0.3; [ $RANK != 1 ] || exit 5; sleep 60").wait(), 5)
        self.assertEqual(sorted(self.names()), ["ended", "rank_failed", "started"])
        by_name = {one["event"]: one for one in self.heard()}
        self.assertEqual((by_name["rank_failed"]["rank"], by_name["rank_failed"]["exit_code"]), (1, 5))
        self.assertEqual((by_name["ended"]["status"], by_name["ended"]["rank"]), (5, 1))

    def test_killed(self):
        self.expect(self.start("--on-event", self.recorder(), "-np", 1, "sh", "-c", "kill -9 $$").wait(), 137)
        failed, = [one for one in self.heard() if one["event"] == "rank_failed"]
        self.assertEqual(failed["signal"], 9)

    def test_words_and_files(self):
        """The command is split as a shell does it, without a shell; --events is written besides."""
        script = self.write("with blank", '#!/bin/sh\necho "$#:$1:$2" > args\ncat > /dev/null\n', 0o755)
        self.expect(self.start("--events", "events", "--on-event", f"'{script}' 'one word' $HOME", "-np", 1, "true").wait(), 0)
        with open(self.box.path("args"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "2:one word:$HOME\n")
        with open(self.box.path("events"), encoding="utf-8") as file:
            self.assertIn("job_end", [json.loads(line)["event"] for line in file])
        self.expect(self.start("--on-event", "'no end", "-np", 1, "true").wait(), 2)

    def test_no_answer_from_the_end_of_a_detached_job(self):
        """`hvdrun wait` returns when the command has heard of the end."""
        name = self.expect(self.start("--detach", "--on-event", self.recorder(), "-np", 1, "sh", "-c", "sleep 0.5; exit 3").wait(),
                           0).stdout.strip()
        self.expect(self.start("wait", name).wait(), 3)
        self.assertIn("ended", self.names())


class Hosts(Elastic, OnEvent):

    def test_lost(self):
        gate, _ = self.box.gate()
        job = self.start("--transport", "local", "-H", "a:1,b:1", "--on-event", self.recorder(), "sh", "-c",
                         f"echo ready; while [ ! -e {gate} ]; do sleep 0.1; done")
        job.wait_output("ready", count=2)
        os.kill(self.agent_of(job, "b").pid, signal.SIGKILL)
        job.wait()
        lost, = [one for one in self.heard() if one["event"] == "host_lost"]
        self.assertEqual(lost["host"], "b")
        self.assertIn("ended", self.names())

    def test_hung(self):
        self.expect(self.start("--on-event", self.recorder(), "--hang-timeout", 2, "--grace", 1, "-np", 2, "sh", "-c", "echo ready; exec sleep 600").wait(), 119)
        hung, = [one for one in self.heard() if one["event"] == "hung"]
        self.assertRegex(hung["text"], "^the job hangs: no rank has shown progress for --hang-timeout 2.0 s")
        self.assertIn("ended", self.names())

    def test_restarted(self):
        self.expect(self.start_elastic("-H", "a:2", "--max-restarts", 1, "--on-event", self.recorder(), "sh", "-c",
                                       'sleep 0.3; [ "$HVDRUN_EPOCH$RANK" != 11 ] || kill -9 $$; sleep 0.5').wait(), 0)
        restarted, = [one for one in self.heard() if one["event"] == "restarted"]
        self.assertEqual(restarted["epoch"], 2)
        self.assertIn("SIGKILL", restarted["cause"])
        self.assertEqual(self.names().count("rank_failed"), 1)


class Bad(OnEvent):

    def one_warning(self, result, pattern):
        warnings = [line for line in result.stderr.splitlines() if "--on-event" in line]
        self.assertEqual(len(warnings), 1, result.describe())
        self.assertRegex(warnings[0], pattern)

    def test_one_that_fails(self):
        self.one_warning(self.expect(self.start("--on-event", "sh -c 'echo no paper >&2; exit 3'", "-np", 1, "true").wait(), 0),
                         "status 3.*no paper")

    def test_one_that_is_missing(self):
        self.one_warning(self.expect(self.start("--on-event", "/no/such/command", "-np", 1, "true").wait(), 0),
                         "/no/such/command")

    def test_one_that_floods(self):
        flood = self.write("flood", "#!/bin/sh\nhead -c 20000000 /dev/zero\nhead -c 3000000 /dev/zero | tr '\\0' 'x' >&2\n", 0o755)
        result = self.expect(self.start("--on-event", flood, "-np", 1, "echo", "out").wait(), 0)
        self.assertEqual(result.stdout, "[0]<stdout>:out\n")
        self.assertLess(len(result.stderr), 10000)

    def test_one_that_never_ends(self):
        """The ranks notice nothing, and hvdrun waits for a bounded time; the rig looks for what remains."""
        result = self.expect(self.start("--on-event", "sh -c 'trap \"\" TERM INT; sleep 1000 & sleep 1000'", "-np", 2, "sh", "-c",
                                        'sleep 0.2; echo done').wait(), 0)
        self.assertEqual(result.stdout.count("done"), 2)
        self.one_warning(result, "10 s|does not wait")

    def test_ctrl_c_while_the_end_waits(self):
        job = self.start("--on-event", "sleep 1000", "-np", 1, "sh", "-c", "echo out")
        job.wait_output("out")
        wait_until(lambda: not [one for one in job.tree() if one.exe().endswith("sh")], "the end of the rank")
        job.signal(signal.SIGINT)
        job.wait()

    def test_many_events(self):
        """More than may wait: the command is not run for all of them, and the next one says how many."""
        gate, let_go = self.box.gate()
        slow = self.recorder(f"while [ ! -e {gate} ]; do sleep 0.05; done")
        job = self.start("--transport", "local", "-H", "a:1", "--max-restarts", 40, "--blacklist-after", 1000, "--events",
                         "events", "--on-event", slow, "sh", "-c", "exit 1")
        def over():
            if not os.path.exists(self.box.path("events")):
                return False
            with open(self.box.path("events"), encoding="utf-8") as file:
                return "job_end" in file.read()
        wait_until(over, "the end of the job")
        let_go()
        self.expect(job.wait(), 1)
        missed = sum(one["missed"] for one in self.heard())
        self.assertGreater(missed, 0)
        self.assertLessEqual(len(self.heard()) + missed, 1 + 41 + 40 + 1, self.names())
        self.assertIn("ended", self.names())


class Examples(OnEvent):

    def test_mail(self):
        mailer = self.write("mailer", f"#!/bin/sh\ncat >> {self.box.path('mail')}\n", 0o755)
        self.expect(self.start("--on-event", f"{sys.executable} {EXAMPLES}/mail you@example.org", "-np", 1, "sh", "-c", "exit 4",
                               env={"MAILER": mailer}).wait(), 4)
        with open(self.box.path("mail"), encoding="utf-8") as file:
            mail = file.read()
        self.assertEqual(mail.count("To: you@example.org\n"), 1, "one mail, about the end")
        self.assertRegex(mail, r"Subject: hvdrun-\S+: ended with status 4\n")
        self.assertIn("rank 0 exited with code 4", mail)

    def test_webhook(self):
        bodies = []

        class Hook(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            hook = f"{sys.executable} {EXAMPLES}/webhook http://127.0.0.1:{server.server_address[1]}/hook"
            self.expect(self.start("--on-event", hook, "-np", 1, "sh", "-c", "exit 4", env={"no_proxy": "127.0.0.1"}).wait(), 4)
            server.shutdown()
        said = {body["event"]["event"]: body["text"] for body in bodies}
        self.assertEqual(set(said), {"started", "rank_failed", "ended"})
        self.assertRegex(said["rank_failed"], r"\Ahvdrun-\S+: rank failed, rank 0, host localhost, exit code 4\Z")
        self.assertRegex(said["ended"], r": ended, rank 0, status 4: rank 0 exited with code 4\Z")


if __name__ == "__main__":
    main()
