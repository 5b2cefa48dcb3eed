# SPDX-License-Identifier: Apache-2.0
"""What docs/internals/claims.md claims and no other test shows: where a secret must not be, hostile clients
of the rendezvous, names that a shell would take for commands, folders that somebody else has made."""
# ctest long
# ctest plain

import glob
import os
import re
import resource
import shutil
import stat
import sys
import tempfile
import time
import unittest

from ground import sanitized, wait_until, worker
from hostile import Hostile
from procfs import processes
from rig import Flow, main
from test_keeper import RELAY, Host

SECRET = "correct-horse-battery"
NOBODY = 65534

CLIENT = r'''
import os, socket, sys, time
address = ("127.0.0.1", int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"]))

def dial():
    one = socket.create_connection(address)
    one.settimeout(60)
    return one

def ask(data):
    """What is answered; what cannot be sent, or is not answered, is no error."""
    heard = b""
    with dial() as one:
        try:
            one.sendall(data)
        except OSError:
            pass
        try:
            while more := one.recv(65536):
                heard += more
        except OSError:
            pass
    return heard

def put(key, body):
    return b"PUT /security/%s HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (key.encode(), len(body), body)

def get(key):
    return b"GET /security/%s HTTP/1.1\r\nContent-Length: 0\r\n\r\n" % key.encode()
'''


class Secrets(Flow):

    def test_nowhere_but_in_the_workers(self):
        """On no command line, in no name, no message, no record and no file, however much is told; here on
        hosts that are reached by a command."""
        host = Host(self.box)
        self.addCleanup(host.close)
        relay, records = self.write("relay.py", RELAY), self.box.path("records")
        os.mkdir(records)
        gate, let_go = self.box.gate()
        self.write("has.sh", f'test "$MY_SECRET" || exit 9\necho has it\nexec {worker("hang")} --until {gate}\n')
        job = self.start(
            "-vvvvvvvvv", "--launch-agent", f"{sys.executable} {relay} {host.path} %h", "-H", "a:1,b:1",
            "--launch-trace", f"{records}/trace", "--events", f"{records}/events", "--report", f"{records}/report",
            "--output-filename", f"{records}/out", "sh", self.box.path("has.sh"), env={"MY_SECRET": SECRET})
        seen = set()

        def look():
            for one in processes().values():
                for place in ("cmdline", "comm"):
                    self.assertNotIn(SECRET.encode(), one.read(place), f"{place} of {one}")
                seen.add(one.comm)
        while job.popen.poll() is None and not {"hang"} <= seen:
            look()
            time.sleep(0.05)  # or the test takes a processor from the job
        look()
        job.wait_output("has it", count=2)
        self.assertEqual(self.holding(self.box.tmp, host.tmp), [])
        let_go()
        result = self.expect(job.wait(), 0)
        self.assertNotIn(SECRET, result.stdout + result.stderr)
        self.assertEqual(self.holding(records), [])
        self.assertEqual(len(os.listdir(records)), 4, os.listdir(records))
        self.assertTrue({"hvdrun", "hang"} <= seen, seen)

    def test_a_dry_run_shows_none(self):
        for form in ("table", "json"):
            result = self.expect(self.run_job(f"--dry-run={form}", "-np", 2, "true", env={"MY_SECRET": SECRET}), 0)
            self.assertNotIn(SECRET, result.stdout + result.stderr)

    def test_folders_and_files_are_closed_to_others(self):
        """Whatever the user's mask is."""
        gate, let_go = self.box.gate()
        before = os.umask(0)
        try:
            job = self.start("--host-discovery-script", self.write("one.sh", "#!/bin/sh\necho localhost:1\n", 0o755),
                             "--min-np", 1, worker("hang"), "--until", gate)
        finally:
            os.umask(before)
        job.wait_output("ready")
        tops = [os.path.join(self.box.tmp, name) for name in os.listdir(self.box.tmp)]
        self.assertTrue(tops)
        sockets = 0
        for top in tops:
            for folder, _, files in os.walk(top):
                self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode) & 0o077, 0, folder)
                for name in files:
                    info = os.stat(os.path.join(folder, name))
                    self.assertEqual(info.st_uid, os.geteuid(), name)
                    if stat.S_ISSOCK(info.st_mode):
                        sockets += 1
                        self.assertEqual(stat.S_IMODE(info.st_mode), 0o600, name)
        self.assertEqual(sockets, 1)
        let_go()
        self.expect(job.wait(), 0)

    @staticmethod
    def holding(*places):
        """The files there that have the secret in them, or in their name."""
        found = []
        for place in places:
            for folder, _, files in os.walk(place):
                for name in files:
                    path = os.path.join(folder, name)
                    if not stat.S_ISREG(os.stat(path).st_mode):
                        continue
                    with open(path, "rb") as file:
                        if SECRET in name or SECRET.encode() in file.read():
                            found.append(path)
        return found


class Http(Flow):
    """Clients of the rendezvous that mean harm, as a rank of the job and as another user."""

    def client(self, text, *, limits=None):
        gate, let_go = self.box.gate()
        path = self.write("client.py", CLIENT + text +
                          f"\nprint('held', flush=True)\nwhile not os.path.exists({gate!r}):\n    time.sleep(0.02)\n")
        return self.start("-np", 1, sys.executable, "-S", "-B", path, limits=limits), let_go

    def finish(self, job, let_go):
        let_go()
        return self.expect(job.wait(), 0)

    def test_slow_clients(self):
        """More of them than there is room for, all in the middle of a request: the others are served."""
        limit = (400, 400)  # the agent takes half of it
        job, let_go = self.client(r'''
slow = []
for i in range(350):
    slow.append(dial())
    slow[-1].sendall(b"GET /security/" if i % 2 else b"PUT /security/a HTTP/1.1\r\nContent-Length: 9\r\n\r\nx")
    if i % 50 == 0:
        answer = ask(put("key", b"value"))
        assert answer.startswith(b"HTTP/1.1 200 "), answer
        assert ask(get("key")).endswith(b"\r\n\r\nvalue")
''', limits={resource.RLIMIT_NOFILE: limit})
        job.wait_output("held")
        self.finish(job, let_go)

    def test_nothing_grows(self):
        """Bodies and headers without end, and blobs without number."""
        job, let_go = self.client(r'''
body = b"x" * 1000000
slow = []
for i in range(300):
    slow.append(dial())
    try:
        slow[-1].sendall(b"PUT /security/slow%d HTTP/1.1\r\nContent-Length: 1040000\r\n\r\n" % i + body)
    except OSError:
        pass
full = 0
for i in range(150):
    answer = ask(put("blob%d" % i, body))
    full += answer.startswith(b"HTTP/1.1 507 ")
assert 100 < full < 150, full
with dial() as one:
    one.sendall(b"GET /security/0 HTTP/1.1\r\n")
    line = b"X-Header: " + b"y" * 1000 + b"\r\n"
    for i in range(200):
        one.sendall(line * 100)
    assert one.recv(1000).startswith(b"HTTP/1.1 431 ")
''')
        agent = wait_until(job.agents, "the agent")[0]
        job.wait_output("held")
        room = 200 * 1024 * (3 if sanitized() else 1)
        for one in (agent, next(one for one in processes().values() if one.pid == job.pid)):
            self.assertLess(one.rss_kb(), room, one)
        result = self.finish(job, let_go)
        self.assertEqual(len(re.findall("the rendezvous store is full", result.stderr)), 1, result.describe())

    def test_what_is_refused(self):
        job, let_go = self.client(r'''
refused = {
    b"PUT /security/0 HTTP/1.1\r\nContent-Length: 1000000000000\r\n\r\n": b"413",
    b"PUT /security/0 HTTP/1.1\r\nContent-Length: 99999999999999999999999999\r\n\r\n": b"413",
    b"PUT /security/0 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n": b"501",
    b"PUT /security/0 HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx": b"400",
    b"GET /" + b"a" * 100000: b"414",
    b"POST /security/0 HTTP/1.1\r\n\r\n": b"405",
    b"GET /../../etc/passwd HTTP/1.1\r\n\r\n": b"400",
    b"GET http://elsewhere/security/0 HTTP/1.1\r\n\r\n": b"400",
}
for request, wanted in refused.items():
    assert ask(request).split(b" ")[1:2] == [wanted], (request[:80], ask(request))
twice = ask(put("a", b"1") + put("b", b"2"))
assert twice.count(b"HTTP/1.1 200 ") <= 1, twice
assert ask(get("b")).startswith(b"HTTP/1.1 404 ")
''')
        job.wait_output("held")
        self.finish(job, let_go)

    @unittest.skipUnless(os.getuid() == 0, "only root can be somebody else")
    def test_another_user(self):
        job, let_go = self.client(rf'''
assert ask(put("key", b"value")).startswith(b"HTTP/1.1 200 ")
if os.fork() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
    for request in (get("key"), put("key", b"other"), b"", b"x" * 100000):
        assert ask(request) == b"", request
    os._exit(0)
assert os.wait()[1] == 0
assert ask(get("key")).endswith(b"value")
''')
        job.wait_output("held")
        self.finish(job, let_go)


class Names(Flow):
    """No name from outside reaches a shell, and a message shows it without its control characters."""

    bad = ("$(touch made)", "`touch made`", "-oProxyCommand=touch", "a'b", 'a"b', "a;touch made", "a|touch made", "a&touch", "../made",
           "a\x1b]0;t\x07b", "\u00e4\u202e", "a\rb", "a\\b", "a>made", "~", "*", "#{x}")

    def refuses(self, name, *args, env=None):
        result = self.run_job(*args, "true", env=env)
        with self.subTest(name=name, args=args[:1]):
            self.assertNotIn(result.status, (0, -6, -11), result.describe())
            self.assertRegex(result.stderr, r"\Ahvdrun: [ -~\n]+\Z", "what is not ASCII is not shown")
            self.assertFalse(os.path.exists(self.box.path("made")), result.describe())

    def test_hosts(self):
        for name in self.bad:
            self.refuses(name, "-H", f"{name}:1")
            self.refuses(name, "-H", f"{name}@a:1")
            self.refuses(name, "--hostfile", self.write("hosts", f"{name} slots=1\n"))
            self.refuses(name, "-np", 1, env={"SLURM_JOB_ID": 7, "SLURM_JOB_NODELIST": name, "SLURM_NNODES": 1,
                                              "SLURM_TASKS_PER_NODE": 1})

    def test_discovery(self):
        found = self.write("found.sh", '#!/bin/sh\ncat "$FOUND"\n', 0o755)
        for name in self.bad:
            self.refuses(name, "--host-discovery-script", found, "--min-np", 1, "--elastic-timeout", 1,
                         env={"FOUND": self.write("found", f"{name}:1\n")})

    def test_added(self):
        job = self.start("--transport", "local", "-H", "a:1", "--min-np", 1, "--elastic-timeout", 60, worker("hang"), "--until",
                         self.box.path("gate"))
        job.wait_output("ready")
        for name in self.bad:
            result = self.start("add", f"{name}:1").wait()
            self.assertNotEqual(result.status, 0, result.describe())
            self.assertRegex(result.stderr, r"\Ahvdrun: [ -~\n]+\Z", name)
        self.assertFalse(os.path.exists(self.box.path("made")))
        self.write("gate", "")
        self.expect(job.wait(), 0)

    @unittest.skipUnless(shutil.which("ssh"), "no ssh")
    def test_ssh_configuration(self):
        """The user's own commands get names as data only."""
        for lines in ('HostName "$(touch made)"\nProxyCommand nc %h', 'HostName a`touch${IFS}made`\nProxyCommand nc %h',
                      "HostName 127.0.0.1\nUser $(touch${IFS}made)\nProxyCommand nc %r", "HostName 127.0.0.1\nProxyJump -oProxyCommand=touch",
                      "HostName -oProxyCommand=touch\nProxyCommand nc %h"):
            self.refuses(lines, "--ssh-config", self.write("config", f"Host good\n{lines}\n", 0o600), "-H", "good:1")


class Folders(Flow):
    """A temporary folder that all share, where somebody was faster."""

    def setUp(self):
        super().setUp()
        self.shared = tempfile.mkdtemp(prefix="hvdt-")
        self.addCleanup(shutil.rmtree, self.shared, ignore_errors=True)
        os.chmod(self.shared, 0o1777)
        self.name = os.path.join(self.shared, f"hvdrun-{os.geteuid()}")
        self.trap = os.path.join(self.shared, "trap")

    def look(self, where):
        gate, let_go = self.box.gate(os.path.basename(where))
        job = self.start("-v", "--host-discovery-script", self.write("one.sh", "#!/bin/sh\necho localhost:1\n", 0o755), "--min-np", 1,
                         worker("hang"), "--until", gate, env={"TMPDIR": self.shared})
        job.wait_output("ready")
        self.assertEqual(os.listdir(where), [], "nothing of ours is made there")
        let_go()
        result = self.expect(job.wait(), 0)
        self.assertIn(f"{self.name} is not a folder of this user alone", result.stderr)
        self.assertEqual(os.listdir(where), [])

    def test_link(self):
        os.mkdir(self.trap, 0o700)
        os.symlink(self.trap, self.name)
        self.look(self.trap)

    def test_open_to_others(self):
        os.mkdir(self.name)
        os.chmod(self.name, 0o777)
        self.look(self.name)

    @unittest.skipUnless(os.getuid() == 0, "only root can be somebody else")
    def test_of_another_user(self):
        os.mkdir(self.name, 0o700)
        os.chown(self.name, NOBODY, NOBODY)
        self.look(self.name)


class NoProc(Hostile, Flow):

    def test_control_socket(self):
        """It is there where /proc is not."""
        if sanitized():
            self.skipTest("a sanitizer does not start without /proc")
        gate, let_go = self.box.gate()
        job = self.start_in_place("mount -t tmpfs none /proc", "--host-discovery-script",
                                  self.write("one.sh", "#!/bin/sh\necho localhost:1\n", 0o755), "--min-np", 1,
                                  worker("hang"), "--until", gate)
        job.wait_output("ready")
        self.assertEqual(len(glob.glob(os.path.join(self.box.tmp, "hvdrun-*", ".jobs-*", "*.control"))), 1)
        let_go()
        self.expect(job.wait(), 0)


if __name__ == "__main__":
    main()
