# SPDX-License-Identifier: Apache-2.0
"""The status page of a job, which the address of --metrics serves (docs/monitoring.md)."""
# ctest long
# ctest waits

import concurrent.futures
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
import urllib.parse

from browser import CHROMIUM, Browser
from elastic import Elastic
from rig import main, nightly, patient, wait_until
from test_metrics import Metrics, fetch

OUTSIDE = r"""(?:src|href|url|action|import)\s*[=(]\s*["']?(\w+:)?//"""

# Each rank says who it is, then waits. Rank 1 writes what a page must not believe.
EVIL = [b'<script>window.evil = 1</script><img src=x onerror="window.evil = 2">', b"\x1b[31mred\x1b[0m \x1b]0;title\x07after",
        b"bad \xff\xfe bytes \x00 and \xe2\x80\xae turned", b"</script><!-- ' \" & -->"]
LINES = """trap 'exit 3' USR1
echo ready; echo I am rank $RANK >&2
[ $RANK != 1 ] || cat "$EVIL"
[ $RANK != 0 ] || echo '42.5 360 epoch 3 of 7' > $HVDRUN_PROGRESS_FILE
while :; do sleep 0.1; done"""

# What the picture shows.
TRAIN = """#!/bin/sh
echo ready; step=900
[ $RANK != 9 ] || for loader in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 600 & done
while [ $step -lt 2000 ]; do
  step=$((step + 1)); done=$((step / 20)); spin=0
  echo "$done.$((step % 20 * 5)) $((2000 - step)) epoch 3 of 7" > $HVDRUN_PROGRESS_FILE
  [ $((step % 5 + RANK)) != 5 ] || echo "step $step: loss 0.$((2900 - step))"
  while [ $spin -lt 3000 ]; do spin=$((spin + 1)); done
  [ $RANK.$HVDRUN_EPOCH.$step != 13.1.908 ] || { echo 'CUDA error: uncorrectable ECC error encountered' >&2; exit 1; }
  sleep 0.5
done"""


def ask_status(page, path="/", name="127.0.0.1"):
    """The status, headers and text of an answer to a request that names the server `name`."""
    parts = urllib.parse.urlsplit(page)
    one = http.client.HTTPConnection(parts.hostname, parts.port, timeout=patient(30))
    one.request("GET", path, headers={"Host": name})
    answer = one.getresponse()
    text = answer.read().decode()
    one.close()
    return answer.status, answer, text


def ask_end(page):
    """How the job has ended, as a page asks for it again and again."""
    text = "{}"
    while "status" not in json.loads(text):
        text = ask_status(page, "/end.json")[2]
    return text


class Page(Metrics):

    def serve_page(self, *args, script=LINES, count=2):
        evil = self.box.path("evil")
        with open(evil, "wb") as file:
            file.write(b"\n".join(EVIL) + b"\n")
        job, name, _ = self.serve(*args, "-x", f"EVIL={evil}", script=script, count=count)
        return job, name, json.loads(self.ask("status", name, "--json").stdout)["page"]


class Served(Page):

    def test_answers(self):
        job, name, page = self.serve_page("-np", 2)
        self.assertRegex(page, r"\Ahttp://127\.0\.0\.1:\d+/\Z")
        self.assertIn(f"page: {page}\n", self.ask("status").stdout)
        status, answer, text = ask_status(page)
        self.assertEqual((status, answer.getheader("Content-Type")), (200, "text/html; charset=utf-8"))
        policy = answer.getheader("Content-Security-Policy")
        self.assertRegex(policy, r"\Adefault-src 'none'; style-src 'nonce-\w{32}'; script-src 'nonce-\w{32}'; connect-src 'self';")
        nonce = re.search(r"script-src 'nonce-(\w+)'", policy)[1]
        self.assertEqual(text.count(f'nonce="{nonce}"'), 2)
        self.assertNotIn(nonce, ask_status(page)[1].getheader("Content-Security-Policy"))
        self.assertEqual(re.findall(OUTSIDE, text), [], "the page loads nothing from elsewhere")
        for header, value in (("Cache-Control", "no-store"), ("Referrer-Policy", "no-referrer"),
                              ("X-Content-Type-Options", "nosniff")):
            self.assertEqual(answer.getheader(header), value)
        found = json.loads(ask_status(page, "/job.json")[2])
        self.assertEqual((found["job"], found["size"], len(found["ranks"])), (name, 2, 2))
        self.assertGreater(found["ranks"][0]["resident_bytes"], 0)
        self.assertGreater(found["hosts"][0]["memory_bytes"], 0)
        self.end(job)

    def test_output(self):
        job, _, page = self.serve_page("-np", 3, count=3)

        def lines(rank):
            return [line["text"] for line in json.loads(ask_status(page, f"/output.json?rank={rank}")[2])["lines"]]

        wait_until(lambda: len(lines(1)) == 2 + len(EVIL), "the lines of rank 1")
        self.assertEqual(sorted(lines(0)), ["I am rank 0", "ready"])
        self.assertIn(EVIL[0].decode(), lines(1))
        whole = json.loads(ask_status(page, "/output.json")[2])
        self.assertGreaterEqual({line["rank"] for line in whole["lines"]}, {0, 1, 2})
        self.assertIn({"rank": 2, "stderr": True, "text": "I am rank 2"},
                      [{key: value for key, value in line.items() if key != "time"} for line in whole["lines"]])
        self.assertEqual(ask_status(page, "/output.json?rank=3")[::2], (404, "the job has no rank 3\n"))
        self.assertEqual(ask_status(page, "/output.json?rank=7000000")[0], 404)
        for rank in ("x", "-1", "", "99999999999"):
            self.assertEqual(ask_status(page, f"/output.json?rank={rank}")[0], 400, rank)
        self.end(job)

    def test_a_flood_is_bounded(self):
        job, _, page = self.serve_page("-np", 1, script="echo ready; seq 1 200000; echo done; exec sleep 600", count=1)
        job.wait_output("done")
        text = ask_status(page, "/output.json?rank=0")[2]
        found = json.loads(text)["lines"]
        self.assertEqual((len(found), found[-1]["text"]), (200, "done"))
        self.assertLess(len(text), 100000)
        self.end(job)

    @nightly("4,000 processes")
    def test_thousands_of_ranks(self):
        """The answers stay small, many clients get one at a time, and the end says which rank failed."""
        ranks = 4000
        job, _, page = self.serve_page("-np", ranks, "-H", ",".join(f"n{number}:100" for number in range(40)), "--transport", "local",
                                       script="echo ready; exec sleep 600", count=ranks)
        text = ask_status(page, "/job.json")[2]
        found = json.loads(text)
        self.assertEqual((found["size"], len(found["ranks"]), len(found["hosts"])), (ranks, ranks, 40))
        self.assertEqual({rank["rank"] for rank in found["ranks"] if rank["resident_bytes"] > 0}, set(range(ranks)))
        self.assertLess(len(text), 512 * ranks)
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            answers = list(pool.map(lambda _: ask_status(page, "/job.json"), range(40)))
        self.assertEqual({status for status, _, _ in answers}, {200})
        self.assertEqual({len(json.loads(text)["ranks"]) for _, _, text in answers}, {ranks})
        self.assertEqual(len(json.loads(ask_status(page, "/output.json")[2])["lines"]), 200)
        self.assertEqual([line["text"] for line in json.loads(ask_status(page, "/output.json?rank=3999")[2])["lines"]], ["ready"])
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            end = pool.submit(ask_end, page)
            self.ask_only("signal", "USR1", "--ranks", "3210")
            text = end.result()
        self.assertEqual([(rank["rank"], rank["signal"]) for rank in json.loads(text)["ranks"]], [(3210, signal.SIGUSR1)])
        self.assertLess(len(text), 1 << 16)
        self.expect(job.wait(), 128 + signal.SIGUSR1)

    def test_read_only(self):
        job, _, page = self.serve_page("-np", 1, count=1)
        parts = urllib.parse.urlsplit(page)
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            one = http.client.HTTPConnection(parts.hostname, parts.port, timeout=patient(30))
            one.request(method, "/job.json", body=b"x" if method in ("POST", "PUT") else None)
            answer = one.getresponse()
            self.assertEqual((answer.status, answer.getheader("Allow")), (405, "GET, HEAD"), method)
            one.close()
        self.assertIn(": running, 1 rank", self.ask("status").stdout)
        self.end(job)

    def test_the_end(self):
        """Who waits for it hears of it."""
        job, _, page = self.serve_page("-np", 2)
        parts = urllib.parse.urlsplit(page)
        waiting = http.client.HTTPConnection(parts.hostname, parts.port, timeout=patient(60))
        waiting.request("GET", "/end.json")
        self.ask_only("signal", "USR1", "--ranks", "1")
        self.expect_blame(job.wait(), 1, code=3)
        end = json.loads(waiting.getresponse().read())
        waiting.close()
        self.assertEqual((end["status"], end["ranks"][0]["rank"], end["ranks"][0]["exit_code"]), (3, 1, 3))
        self.assertIn("hvdrun: rank 1 exited with code 3", end["failure"])
        self.assertGreater(end["up_s"], 0)

    def test_a_job_that_is_stopped(self):
        job, _, page = self.serve_page("-np", 2)
        parts = urllib.parse.urlsplit(page)
        waiting = http.client.HTTPConnection(parts.hostname, parts.port, timeout=patient(60))
        waiting.request("GET", "/end.json")
        self.ask("stop", json.loads(self.ask("ps", "--json").stdout)[0]["job"], "--grace", 1)
        self.expect(job.wait(), 130)
        end = json.loads(waiting.getresponse().read())
        waiting.close()
        self.assertEqual((end["status"], end["cause"]), (130, "stopped"))
        self.assertRegex(end["text"], r"^stopped by 'hvdrun stop' \(user \S+, \d\d:\d\d:\d\d\)$")


class Kept(Page):
    """--page-file, without a browser."""

    def test_a_file(self):
        """It takes the place of an older one at the end, with the mode of umask."""
        path = self.box.path("page.html")
        self.write("page.html", "an older one")
        before = os.umask(0o027)
        try:
            self.expect(self.run_job("-np", 2, "--page-file", path, "--report", "report.json", "sh", "-c", "echo I am rank $RANK"), 0)
        finally:
            os.umask(before)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o640)
        self.assertEqual([name for name in os.listdir(os.path.dirname(path)) if "page" in name], ["page.html"])
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertLess(len(text), 150000)
        self.assertEqual(re.findall(OUTSIDE, text), [], "it loads nothing from elsewhere")
        self.assertRegex(text, r'<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'nonce-\w{32}\';')
        kept = json.loads(re.search(r'<script id="kept" type="application/json">(.*)</script>', text)[1])
        self.assertEqual((kept["end"]["status"], kept["job"]["size"], [rank["state"] for rank in kept["job"]["ranks"]]),
                         (0, 2, ["ended", "ended"]))
        self.assertEqual([line["text"] for line in kept["outputs"]["1"]["lines"]], ["I am rank 1"])
        self.assertEqual(kept["end"]["up_s"], self.read_json(self.box.path("report.json"))["job"]["seconds"])

    def test_it_cannot_be_written(self):
        self.write("file", "")
        result = self.expect(self.run_job("-np", 1, "--page-file", "file/page.html", "true"), 2)
        self.expect_said(result, "--page-file: cannot write file/page.html: not a directory")
        result = self.expect(self.run_job("-np", 1, "--page-file", "/dev/full", "sh", "-c", "echo hello from rank 0"), 0)
        self.expect_said(result, "cannot write '/dev/full': no space left on device; the job goes on")
        self.assertIn("hello from rank 0", result.stdout)

    def test_a_full_disk(self):
        """What was there before stays."""
        place = self.box.path("small")
        os.mkdir(place)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", place], capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("cannot mount a small file system: " + mounted.stderr.decode().strip())
        try:
            self.write("small/page.html", "an older one")
            result = self.run_job("-np", 1, "--page-file", "small/page.html", "true")
            with open(self.box.path("small/page.html"), encoding="utf-8") as file:
                self.assertEqual((os.listdir(place), file.read()), (["page.html"], "an older one"))
        finally:
            subprocess.run(["umount", "-l", place], check=True)
        self.expect(result, 0)
        self.expect_said(result, "cannot write 'small/page.html': no space left on device")

    def test_history(self):
        job, _, page = self.serve_page("-np", 2)
        found = {}

        def two_points():
            found.update(json.loads(ask_status(page, "/history.json")[2]))
            return len(found["points"]) >= 2
        wait_until(two_points, "two points", patient(60))
        last = found["points"][-1]
        self.assertEqual((last["ranks"], last["progress"], "gap" in last, "gpu_use_percent" in last), (2, 0.425, False, False))
        self.assertGreater(last["resident_bytes"], 0)
        self.assertGreaterEqual(last["cpus"], 0)
        since = json.loads(ask_status(page, f"/history.json?since={found['next'] - 1}")[2])
        self.assertEqual(since["points"][0], last)
        self.assertEqual(json.loads(ask_status(page, "/history.json?since=1000000")[2])["points"], [])
        for since in ("x", "-1", "", "99999999999"):
            self.assertEqual(ask_status(page, f"/history.json?since={since}")[0], 400, since)
        self.end(job)


class Gate(Page):

    def test_the_token(self):
        """An address that is not loopback."""
        job, _, page = self.serve_page("-np", 1, "--metrics", "0.0.0.0:0", count=1)
        found = re.fullmatch(r"http://[^/:]+:(\d+)/\?token=([0-9a-f]{32})", page)
        self.assertTrue(found, page)
        here, token = f"http://127.0.0.1:{found[1]}", found[2]
        wrong = token[:-1] + ("0" if token[-1] != "0" else "1")
        for path in ("/", "/job.json", "/output.json?rank=0", "/history.json", "/end.json"):
            for query in ("", "token=", f"token={wrong}", f"token={token}0", f"token={token[:-1]}", f"tokens={token}",
                          f"token={token.upper()}" if token.upper() != token else "token=x", f"token=%{ord(token[0]):x}{token[1:]}"):
                status, _, text = ask_status(here, f"{path}{'&' if '?' in path else '?'}{query}")
                self.assertEqual((status, text), (403, "the token is wrong or missing; 'hvdrun status' shows the address of "
                                                       "the page with its token\n"), (path, query))
        self.assertEqual(ask_status(here, f"/?token={token}", name="some.host")[0], 200)
        self.assertEqual(ask_status(here, f"/job.json?x=1&token={token}")[0], 200)
        self.assertEqual(fetch(here)[0].status, 200, "the metrics are for all")
        self.end(job)

    @unittest.skipUnless(os.getuid() == 0, "only root can be another user")
    def test_another_user(self):
        """On loopback, the kernel says whose connection it is."""
        job, _, page = self.serve_page("-np", 1, count=1)
        script = ("import sys, urllib.request, urllib.error\n"
                  "try:\n    print(urllib.request.urlopen(sys.argv[1]).status)\n"
                  "except urllib.error.HTTPError as problem:\n    print(problem.code, problem.read().decode(), end='')\n")
        for path, expected in (("", "403 this page is only for the user of the job and root\n"),
                               ("job.json", "403 this page is only for the user of the job and root\n"), ("metrics", "200\n")):
            done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", script,
                                   page + path], capture_output=True, text=True, check=False, cwd="/", timeout=patient(60))
            self.assertEqual(done.stdout, expected, done.stderr)
        self.end(job)

    def test_another_name(self):
        """A page of another site that leads its own name to this address gets nothing."""
        job, _, page = self.serve_page("-np", 1, count=1)
        for name in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", ""):
            status, _, text = ask_status(page, "/job.json", name=name)
            self.assertEqual((status, text.count("\n")), (403, 1), name)
        for name in ("localhost", "127.0.0.1:9400", "[::1]:80"):
            self.assertEqual(ask_status(page, "/job.json", name=name)[0], 200, name)
        self.end(job)


@unittest.skipUnless(CHROMIUM, "chromium is not installed")
class InABrowser(Page, Elastic):

    browser = profile = None  # one for all tests: its start costs more than most of them

    @classmethod
    def tearDownClass(cls):
        if cls.browser is not None:
            cls.browser.close()
            shutil.rmtree(cls.profile, ignore_errors=True)
            InABrowser.browser = None

    def setUp(self):
        super().setUp()
        if self.browser is None or self.browser.has_ended():
            self.tearDownClass()
            InABrowser.profile = tempfile.mkdtemp(prefix="hvdrun-browser-")
            InABrowser.browser = Browser(self.profile)
        self.box.spares = self.browser.owns
        self.browser.begin()
        self.addCleanup(self.browser.end)
        self.browser.look(1200, 1600)

    def text(self, selector):
        return self.browser.run(f"(document.querySelector({json.dumps(selector)}) || {{}}).textContent || ''")

    def until(self, selector, pattern):
        return wait_until(lambda: re.search(pattern, self.text(selector)), f"{pattern} in {selector}", patient(60))

    def no_problem(self):
        self.browser.run("1")  # what it has said until now has come
        self.assertEqual(self.browser.problems, [])

    def test_what_it_shows(self):
        """And what happens when a rank dies."""
        job, name, page = self.serve_page("-np", 4, "-H", "a:2,b:2", "--transport", "local", count=4)
        self.browser.open(page)
        self.until("#live", "^live$")
        self.assertEqual((self.text("#job"), self.text("#state")), (name, "running"))
        self.until("#progress-eta", r"^43? ?.*left, until|^42")
        self.assertEqual(self.browser.run("document.title"), f"running · {name}")
        self.until("#progress-text", "epoch 3 of 7")
        self.assertRegex(self.text("#hosts tbody"), r"(?s)a.*up.*0-1.*b.*up.*2-3")
        self.assertEqual(self.browser.run("document.querySelectorAll('#ranks tbody tr').length"), 4)
        self.assertRegex(self.text("#tiles"), "4 of 4ranks run.*2 of 2hosts are up.*CPUs in use.*0restarts")
        self.assertEqual(self.text("#notices"), "")
        self.until("#ranks tbody", "MiB|KiB")
        self.until("#output", "I am rank 3")
        self.no_problem()
        self.ask_only("signal", "USR1", "--ranks", "2")
        self.until("#notices", "rank 2 exited with code 3")
        self.until("#state", "ended with status 3")
        self.until("#ranks tbody tr", "exit code 3")  # it is the first one now
        self.assertRegex(self.text("#events"), "rank 2 on b: exit code 3")
        self.assertRegex(self.text("#progress-eta"), r"^4[23] ?%$")  # nothing is left of a job that has ended
        self.assertEqual((self.text("#live"), self.browser.run("byId('live').className.trim()")), ("final", "live bad"))
        self.assertEqual(self.browser.run("page.job.up_s === page.ended.up_s"), True)
        self.assertIn("'hvdrun explain " + name, self.text("#footer"))
        self.expect_blame(job.wait(), 2, code=3)
        self.no_problem()

    def test_updates(self):
        """A job that goes on without the rank."""
        job = self.train("-H", "a:2,b:2", "--min-np", 2, "--metrics", 0)
        before = job.members(4)
        self.browser.open(json.loads(self.ask("status", "--json").stdout)["page"])
        self.until("#tiles", "4 of 4ranks run.*0restarts")
        job.kill(before[3])
        job.members(4, but=before)
        self.until("#tiles", r"4 of 4ranks run.*[1-9]restart")
        self.until("#restarts", r"\(1 crash.*\), which took \d")
        self.assertGreaterEqual(self.browser.run("document.querySelectorAll('#time-line .gap').length"), 1)
        self.assertRegex(self.text("#events"), r"rank 3 on b was killed by SIGKILL")
        self.no_problem()
        job.finish()
        self.until("#state", "ended with status 0")
        self.until("#live", "^final$")
        self.assertEqual(self.browser.run("byId('live').className.trim()"), "live good")
        self.no_problem()

    def test_a_job_that_is_stopped(self):
        """It is neither a success nor a failure."""
        job, _, page = self.serve_page("-np", 1, count=1)
        self.browser.open(page)
        self.until("#live", "^live$")
        self.end(job)
        self.until("#state", "^stopped with status 130$")
        self.assertEqual(self.browser.run("[byId('live'), byId('state'), document.querySelector('#notices div')]"
                                          ".map(one => one.className.trim())"), ["live warn", "pill warn", "notice warn"])
        self.no_problem()

    def test_output_is_text(self):
        """Nothing that a rank prints becomes a part of the page."""
        job, _, page = self.serve_page("-np", 2)
        self.browser.open(page)
        self.until("#output-rank", "rank 1")
        self.browser.run("byId('output-rank').value = '1'; byId('output-rank').onchange()")
        self.until("#output", "I am rank 1")
        shown = self.text("#output")
        self.assertIn(EVIL[0].decode(), shown)
        self.assertIn("red after", shown)
        self.assertIn("</script><!-- ' \" & -->", shown)
        self.assertNotRegex(shown, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
        self.assertEqual(self.browser.run("document.querySelectorAll('#output img, #output script').length"), 0)
        self.assertEqual(self.browser.run("typeof window.evil"), "undefined")
        self.browser.run("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.evil = 3'}))")
        self.assertEqual(self.browser.run("typeof window.evil"), "undefined", "the policy refuses what is not of the page")
        self.end(job)

    def test_a_phone_and_the_dark(self):
        job, _, page = self.serve_page("-np", 12, "-H", "a-host-with-a-rather-long-name.example.org:12", "--transport", "local", count=12)
        self.browser.open(page)
        self.until("#live", "^live$")
        for width in (320, 390, 768):
            self.browser.look(width, 800, mobile=True)
            self.assertEqual(self.browser.run("[innerWidth, document.documentElement.scrollWidth]"), [width, width])
        light = self.browser.run("getComputedStyle(document.body).backgroundColor")
        self.browser.look(1200, 800, dark=True)
        dark = self.browser.run("getComputedStyle(document.body).backgroundColor")
        self.assertNotEqual(light, dark)
        for one, bright in ((light, True), (dark, False)):
            self.assertEqual(sum(map(int, re.findall(r"\d+", one)[:3])) > 384, bright, one)
        self.no_problem()
        self.end(job)

    def test_a_token(self):
        job, _, page = self.serve_page("-np", 1, "--metrics", "0.0.0.0:0", count=1)
        self.browser.open(re.sub("//[^/:]+:", "//127.0.0.1:", page))
        self.until("#live", "^live$")
        self.until("#output", "I am rank 0")
        self.no_problem()
        self.end(job)

    def test_many_ranks(self):
        """4,096 of them: the worst come first, and one can filter."""
        job, _, page = self.serve_page("-np", 2)
        real = json.loads(ask_status(page, "/job.json")[2])
        model = real["ranks"][0]
        real["ranks"] = [{**model, "rank": rank, "host": f"node{rank // 8}"} for rank in range(4096)]
        real["ranks"][700] = {**real["ranks"][700], "state": "exited", "exit_code": 3, "marks": {}}
        real["ranks"][900]["marks"] = {"cpus": "less"}
        real["ranks"][5]["gpus"] = [{"index": 0, "utilization_percent": 97, "power_watts": 300},
                                    {"index": 1, "utilization_percent": 99, "power_watts": 310}]
        real["hosts"] = [{**real["hosts"][0], "host": f"node{number}"} for number in range(512)]
        real["size"] = 4096
        self.browser.open(page)
        self.until("#live", "^live$")
        self.browser.run("update = async () => {}; taken = () => {}")  # no answer of the real job takes the place of this one
        self.browser.run(f"page.job = {json.dumps(real)}; show()")
        self.assertEqual(self.browser.run("[...document.querySelectorAll('#ranks tbody tr')].slice(0, 2)"
                                          ".map(row => row.cells[0].textContent)"), ["700", "900"])
        self.assertEqual(self.browser.run("document.querySelectorAll('#map i').length"), 4096)
        self.assertLessEqual(self.browser.run("document.querySelectorAll('#hosts tbody tr').length"), 16)
        self.assertLessEqual(self.browser.run("document.querySelectorAll('#ranks tbody tr').length"), 50)
        shown = self.browser.run("byId('filter').value = 'node3'; byId('filter').oninput();"
                                 "document.querySelectorAll('#ranks tbody tr').length")
        self.assertEqual(shown, 50)
        for words, expected in (("5", ["5"]), ("8-9", ["8", "9"]), ("exit", ["700"]), ("nosuch", [])):
            self.assertEqual(self.browser.run(f"byId('filter').value = '{words}'; byId('filter').oninput();"
                                              "[...document.querySelectorAll('#ranks tbody tr')].map(row => row.cells[0].textContent)"),
                             expected, words)
        self.browser.run("byId('filter').value = '5'; byId('filter').oninput()")
        self.assertRegex(self.text("#ranks thead"), "gpu utilization.*gpu power")
        self.assertRegex(self.text("#ranks tbody"), "98 %.*610 W")
        self.no_problem()
        self.end(job)

    def curves(self):
        """The titles of the curves that are there."""
        return self.browser.run("[...document.querySelectorAll('.curve:not([hidden]) b')].map(title => title.textContent)")

    def until_curves(self, expected):
        wait_until(lambda: self.curves() == expected, f"curves of {expected}", patient(60))

    def test_curves(self):
        job, _, page = self.serve_page("-np", 2)
        self.browser.open(page)
        self.until_curves(["Progress", "CPUs in use", "Memory in use"])  # and no GPU
        self.until("#curves-list", r"(?s)Progress4[23] %.*CPUs in use[\d.]+ CPUs?.*Memory in use[\d.]+ [KM]iB")
        self.assertGreaterEqual(self.browser.run("document.querySelectorAll('.curve .stroke').length"), 3)
        self.assertEqual(self.browser.run("document.querySelectorAll('.curve .restart').length"), 0)
        slider = self.browser.run("const one = document.querySelector('.curve svg'); one.focus();"
                                  "one.onkeydown({key: 'Home', preventDefault: () => {}});"
                                  "[one.getAttribute('aria-label'), one.getAttribute('aria-valuenow'), one.getAttribute('aria-valuetext')]")
        self.assertEqual(slider[:2], ["Progress, over time", "0"])
        self.assertRegex(slider[2], r"^(4[23] %|not known) at \d\d:\d\d:\d\d$")
        self.no_problem()
        self.end(job)

    def test_curves_of_a_long_job(self):
        """More than an hour, with a gap, a restart and GPUs."""
        job, _, page = self.serve_page("-np", 2)
        self.browser.open(page)
        self.until("#live", "^live$")
        self.browser.run("update = async () => {}; taken = () => {}; curves.points = [];"
                         "const point = (time, more) => ({time, ranks: 2, cpus: time / 1000, resident_bytes: 3e9, ...more});"
                         "curves.add({next: 1, points: [...Array(1000).keys()].map(at => point(5 * at, at === 600 ? {gap: true} : {}))});"
                         "curves.points[500].gpu_use_percent = 97; curves.points[500].gpu_memory_bytes = 8e10;"
                         "page.job.epochs = [[1, 0], [2, 4000], [3, 20]].map(([epoch, time]) => "
                         "({epoch, time, lost_s: 2, size: 2, cause: '<img src=x>'})); show()")
        self.assertEqual(self.browser.run("[curves.points.length, curves.from, curves.to, byId('curves-span').textContent]"),
                         [721, 1395, 4995, "the last hour"])
        self.assertEqual(self.curves(), ["CPUs in use", "Memory in use", "GPU use"])
        self.assertEqual(self.browser.run("[...document.querySelectorAll('.curve:not([hidden])')]"
                                          ".map(one => one.querySelectorAll('.stroke').length)"), [2, 2, 1])
        self.assertEqual(self.browser.run("document.querySelectorAll('.curve:not([hidden]) .restart').length"), 3)
        self.assertEqual(self.browser.run("document.querySelector('.curve:not([hidden]) .restart title').textContent"),
                         "epoch 2: <img src=x>, 2.0 s")
        self.browser.run("curves.choose(curves.points.findIndex(one => one.gpu_use_percent))")
        self.assertRegex(self.text("#curves-list"),
                         r"CPUs in use\d\.\d CPUs at .*Memory in use2\.8 GiB at .*GPU use97 %, 75 GiB of memory at ")
        self.no_problem()
        self.end(job)

    def open_file(self):
        self.browser.open("file://" + self.box.path("page.html"))
        self.until("#live", "^final$")

    def test_a_page_that_is_kept(self):
        """As a page that was open at the end."""
        job, name, page = self.serve_page("-np", 4, "-H", "a:2,b:2", "--transport", "local", "--page-file", "page.html", count=4)
        self.browser.open(page)
        self.until("#ranks tbody", "MiB|KiB")
        self.until_curves(["Progress", "CPUs in use", "Memory in use"])
        self.assertFalse(os.path.exists(self.box.path("page.html")), "it is written at the end")
        self.ask_only("signal", "USR1", "--ranks", "2")
        self.until("#state", "ended with status 3")
        self.assertRegex(self.text("#footer"), "a reload of this page finds nothing, but page.html has it; 'hvdrun explain")
        self.expect_blame(job.wait(), 2, code=3)
        same = ("#job", "#state", "#command", "#notices", "#progress-eta", "#progress-text", "#hosts tbody", "#events", "#restarts")
        open_page = {place: self.text(place) for place in same}
        self.open_file()
        self.assertEqual({place: self.text(place) for place in same}, open_page)
        self.assertEqual(self.curves(), ["Progress", "CPUs in use", "Memory in use"])
        self.assertEqual(self.browser.run("byId('live').className.trim()"), "live bad")
        self.assertRegex(self.text("#tiles"), r"^4ranks2hosts0restarts[\d. min]+ srun time$")
        self.assertRegex(self.text("#ranks tbody tr"), "^2bexit code 3.*[KM]iB")
        self.assertEqual(self.browser.run("document.querySelectorAll('#ranks tbody tr').length"), 4)
        self.assertRegex(self.text("#output"), "I am rank 0")
        self.assertRegex(self.text("#footer"), f"as it was at the end of the job, on .*; 'hvdrun explain {name}' says more")
        for hidden in ("ranks-left-out", "hosts-left-out"):
            self.assertTrue(self.browser.run(f"byId('{hidden}').hidden"))
        self.browser.run("byId('output-rank').value = '1'; byId('output-rank').onchange()")
        self.until("#output", "I am rank 1")
        self.assertNotIn("I am rank 0", self.text("#output"))
        self.no_problem()

    def test_a_kept_page_without_metrics(self):
        """A job that succeeds at once; nothing that it prints runs."""
        self.write("evil", b"\n".join(EVIL) + b"\n" + "\u2028 \u2029 <!-- <script>\n".encode())
        command = "cat evil # </script><script>window.evil = 4</script>"
        self.expect(self.start("-np", 1, "--job-name", "night", "--page-file", "page.html", "sh", "-c", command).wait(), 0)
        self.open_file()
        self.assertEqual((self.text("#state"), self.browser.run("byId('live').className.trim()")), ("ended with status 0", "live good"))
        self.assertEqual(self.text("#command"), f"sh -c {command}")
        shown = self.text("#output")
        self.assertIn(EVIL[0].decode(), shown)
        self.assertIn("</script><!-- ' \" & -->", shown)
        self.assertIn("\u2028 \u2029 <!-- <script>", shown)
        self.assertEqual(self.browser.run("typeof window.evil"), "undefined")
        self.assertEqual(self.browser.run("document.querySelectorAll('img, #output script').length"), 0)
        self.browser.run("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.evil = 3'}))")
        self.assertEqual(self.browser.run("typeof window.evil"), "undefined", "the policy refuses what is not of the page")

    def test_a_kept_page_of_many_ranks(self):
        """It says what it leaves out."""
        self.expect(self.start("-np", 2, "--page-file", "page.html", "true").wait(), 0)
        with open(self.box.path("page.html"), encoding="utf-8") as file:
            text = file.read()
        before = '"left_out":{"ranks":0,"hosts":0,"outputs":0}'
        self.assertEqual(text.count(before), 1)
        self.write("page.html", text.replace(before, '"left_out":{"ranks":3000,"hosts":1,"outputs":7}'))
        self.open_file()
        self.assertEqual(self.text("#ranks-left-out"), "This file leaves out 3000 more ranks; those that failed came first.")
        self.assertRegex(self.text("#hosts-left-out"), "leaves out 1 more host;")
        self.browser.run("byId('output-rank').value = '1'; byId('output-rank').onchange()")
        self.until("#output", "^this file does not have the output of this rank$")
        self.no_problem()

    @unittest.skipUnless(os.environ.get("HVDRUN_PICTURE"), "only with HVDRUN_PICTURE=FILE")
    def test_picture(self):
        """That of the documents: HVDRUN_PICTURE=docs/page.png tests/flow/test_page.py InABrowser.test_picture"""
        self.write("train.sh", TRAIN, 0o755)
        job, _, page = self.serve_page("-np", 16, "--min-np", 8, "-H", "node1:4,node2:4,node3:4,node4:4", "--transport", "local",
                                       "--blacklist-cooldown-range", "1", "2", script="exec ./train.sh", count=16)
        self.browser.look(1000, 1600)
        self.browser.open(page)
        self.until("#restarts", "crash")
        self.until("#ranks tbody tr", "differs")
        self.until("#time-end", "after [45][0-9] s")
        self.browser.picture(os.environ["HVDRUN_PICTURE"])
        self.end(job)


if __name__ == "__main__":
    main()
