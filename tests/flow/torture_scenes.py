# SPDX-License-Identifier: Apache-2.0
"""The short runs in which calls fail (torture.py), and what is right at the end of each."""

import json
import os
import socket

from ground import mpi_worker, worker
from torture import Scene

ELASTIC = """#!/bin/sh
echo "rank $RANK of $WORLD_SIZE restart $TORCHELASTIC_RESTART_COUNT"
[ "$RANK" != 1 ] || [ "$HVDRUN_EPOCH" -gt 1 ] || exit 3
"""
# A rank that asks for what --metrics serves. It says which answers it got, and ends well without them, too.
ASK = """import http.client, sys
got = []
for path in ("/metrics", "/", "/job.json", "/output.json?rank=0", "/nosuch"):
    try:
        one = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=5)
        one.request("GET", path)
        answer = one.getresponse()
        answer.read()
        got.append(str(answer.status))
    except (OSError, http.client.HTTPException):
        got.append("none")
with open("answers", "w") as file:
    file.write(" ".join(got))
print("asked")
"""
MUCH = [str(number) for number in range(30000)]
TEXT = b"some text\nand more\n" * 20


def said(*lines):
    return [f"[{rank}]<stdout>:{line}" for rank, line in enumerate(lines)]


def hello(count):
    return said(*(f"hello from rank {rank} of {count}" for rank in range(count)))


def _files(test, result):
    for rank in range(2):
        with open(test.box.path("out", f"rank.{rank}", "stdout"), encoding="ascii") as file:
            test.assertEqual(file.read(), f"hello from rank {rank} of 2\n")


def _report(test, result):
    report = test.read_json(test.box.path("report"))
    test.assertEqual((report["job"]["status"], len(report["ranks"])), (result.status, 2), report)
    with open(test.box.path("events"), encoding="utf-8") as file:
        events = [json.loads(line)["event"] for line in file]
    test.assertEqual((events[0], events[-1]), ("job_start", "job_end"), events)


def _answers(test, result):
    with open(test.box.path("answers"), encoding="ascii") as file:
        got = file.read().split()
    test.assertEqual(len(got), 5, got)
    test.assertLessEqual(set(got), {"200", "403", "404", "503", "none"}, got)


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _blame(test, result):
    test.expect_blame(result, 1, code=3)


def _printed(test, result):
    test.assertGreater(len(result.stdout), 20, result.describe())


def _twice(test, result):
    for restart in range(2):
        test.assertEqual(result.stdout.count(f"of 2 restart {restart}\n"), 2 if restart else result.stdout.count("restart 0\n"),
                         result.describe())


def ssh_scenes(test):
    """By name. `test` is a Hosts: agents there are not made to fail, they are what the driver has to do with."""
    args = [*test.ssh_words(), "--start-timeout", "90s", "-np", 2, "-H", "node1:1,node2:1", worker("hello")]

    def forget():
        for number in (1, 2):
            test.host(number).forget_agent()
    return {scene.name: scene for scene in (
        Scene("ssh", args, lines=hello(2), roles=["driver"], left=test.check_hosts),
        Scene("ssh_first", args, lines=hello(2), roles=["driver"], left=test.check_hosts, before=forget))}


def scenes(test):
    """By name. `test` is a Flow, in whose working folder they run."""
    once, ask, port = test.write("elastic.sh", ELASTIC, 0o755), test.write("ask.py", ASK), _free_port()
    much = test.write("much", "\n".join(MUCH) + "\n")
    local, mpi = ["--transport", "local"], {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
    all_scenes = [
        Scene("plain", ["-np", 2, worker("hello")], lines=hello(2)),
        Scene("two_nodes", ["-np", 2, "-H", "a:1,b:1", *local, worker("hello")], lines=hello(2)),
        Scene("files", ["-np", 2, "--output-filename", "out", worker("hello")], lines=hello(2), check=_files, files=["out"]),
        Scene("report", ["-np", 2, "--report", "report", "--events", "events", worker("hello")], lines=hello(2),
              check=_report, files=["report", "events"]),
        Scene("record", ["-np", 2, "sh", "-c", "sleep 0.1; echo rank $RANK"],  # long enough for a socket and a log
              lines=[f"[{rank}]<stdout>:rank {rank}" for rank in range(2)], roles=["driver"]),
        Scene("page", ["-np", 1, "--metrics", port, "/usr/bin/python3", "-S", ask, port], lines=["[0]<stdout>:asked"],
              check=_answers, files=["answers"], roles=["driver"]),
        Scene("stdin", ["-np", 2, "--stdin", "all", "cat"], stdin=TEXT,
              lines=[f"[{rank}]<stdout>:{line}" for rank in range(2) for line in TEXT.decode().splitlines()]),
        # For that much the agent has another way than for a line. The rank writes all of it in one go: so the pipe is
        # full each time that the agent looks, however the machine runs the two.
        Scene("much", ["-np", 2, "dd", f"if={much}", "bs=1M", "status=none"],
              lines=[f"[{rank}]<stdout>:{line}" for rank in range(2) for line in MUCH]),
        Scene("failure", ["-np", 2, worker("exit_with"), "--say", "woe", "1:3"], status=3, check=_blame),
        Scene("restart", ["-np", 2, "--min-np", 1, "-H", "a:2", *local, "--max-restarts", 1,
                           "--elastic-timeout", 3, once], check=_twice,
              roles=("driver", "agent", "keeper")),
        # Without descriptors for ever the agent says so and goes on trying, and this worker waits as long as it does.
        Scene("horovod", ["-np", 2, worker("horovod_worker")], once=["mfile"]),
        # a socket of which nothing was sent yet is never full
        Scene("check", ["check", "-H", "a,b", *local], check=_printed, without=["again"], reason="^problem: .{10}"),
        # whose reader goes: they end by SIGPIPE, which is not ignored yet
        Scene("dry_run", ["-np", 2, "--dry-run", "-H", "a:1,b:1", "true"], check=_printed, roles=["driver"], without=["pipe"]),
        Scene("version", ["--version"], check=_printed, roles=["driver"], without=["pipe"]),
        Scene("help", ["--help"], check=_printed, roles=["driver"], without=["pipe"]),
    ]
    for name, kind in (("pmi1", "mpich"), ("pmix", "openmpi")):
        if os.access(os.path.join(os.path.dirname(worker("hello")), f"mpi_hello.{kind}"), os.X_OK):
            # Without descriptors for ever nobody can look into the folders that PMIx makes, to remove them. A rank
            # whose PMI connection has ended is gone, or it is MPICH that reads on without end: nothing to prove.
            all_scenes.append(Scene(name, ["-np", 2, mpi_worker("mpi_hello", kind)], env=mpi, once=["mfile"],
                                    without=["pipe"] if name == "pmi1" else [],
                                    lines=said("rank 0 of 2 sum 1", "rank 1 of 2 sum 1")))
    return {scene.name: scene for scene in all_scenes}
