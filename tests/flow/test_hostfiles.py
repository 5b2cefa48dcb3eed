# SPDX-License-Identifier: Apache-2.0
"""Hostfiles: plans and runs with every sample of hostfiles/, files that are not hostfiles, and how a host's entry
affects its workers. unit.model.hostfile and unit.model.hostfile_ini test each dialect in detail."""

import gzip
import json
import os
import re
import subprocess

from elastic import Elastic, write_atomically
from rig import SOURCE, Flow, main, parse_self, worker

FOLDER = os.path.join(SOURCE, "hostfiles")
LOCAL = ("--transport", "local")

SAMPLES = {
    "horovodrun.hosts": "node1:4 node2:2 node3:1",
    "openmpi.hosts": "node1:2 node2:2 node3:1",
    "mpich.hosts": "node1:4 node2:2 node3:1 2001:db8::15:1",
    "names.hosts": "node1:2 node2:2 node3:1",
    "slurm.hosts": "node01:2 node02:2 node03:2 rack1n1:1 rack1n2:1 rack2n1:1 rack2n2:1 gpu7:1 gpu9:1",
    "sge.hosts": "node1.example.com:4 node2.example.com:2",
    "cluster.hosts": "node1:4 node2:4 node03:8 node04:8 node05:8 node06:8 gpu1:2 gpu2:2 gpu3:2 gpu4:2 2001:db8::15:2",
    "cluster.ini": "node01:2 node02:2 node03:2 spare:1 gpu1:4 gpu2:4 head:1",
    "cluster.ini#gpu": "gpu1:4 gpu2:4",
}


def slots_of(text):
    """[(host, slots)...] of a line of SAMPLES."""
    return [(host, int(slots)) for host, slots in (one.rsplit(":", 1) for one in text.split())]


class Hostfiles(Flow):

    def plan(self, path, *args):
        result = self.run_job("--hostfile", path, *LOCAL, *args, "--dry-run=json", "./x")
        self.expect(result, 0)
        return json.loads(result.stdout)

    def refused(self, path, *patterns, args=(), **options):
        """Status 2 and one line that says all of this."""
        result = self.expect(self.run_job("--hostfile", path, *args, "--dry-run", "./x", **options), 2)
        self.assertEqual(result.stderr.count("\n"), 1, result.describe())
        for pattern in patterns:
            self.expect_said(result, pattern)
        return result


class Samples(Hostfiles):

    def test_all_are_here(self):
        names = {name for name in os.listdir(FOLDER) if name != "README.md"}
        self.assertEqual(names, {name.split("#")[0] for name in SAMPLES})
        with open(os.path.join(FOLDER, "README.md"), encoding="utf-8") as file:
            self.assertEqual(set(re.findall(r"\]\((\w+\.\w+)\)", file.read())), names)

    def test_plans(self):
        for name, text in SAMPLES.items():
            with self.subTest(name):
                found = self.plan(os.path.join(FOLDER, name))
                self.assertEqual([(host["name"], host["slots"]) for host in found["nodes"]], slots_of(text))

    def test_runs(self):
        for name, text in SAMPLES.items():
            with self.subTest(name):
                hosts = [host for host, slots in slots_of(text) for _ in range(slots)]
                result = self.run_job("--hostfile", os.path.join(FOLDER, name), *LOCAL, "-np", len(hosts),
                                      worker("hello"), "HOROVOD_HOSTNAME", timeout=120)
                self.expect(result, 0)
                self.assertEqual(sorted(line for line in result.lines if "HOSTNAME=" in line),
                                 sorted(f"[{rank}]<stdout>:HOROVOD_HOSTNAME={host}" for rank, host in enumerate(hosts)))


class Refusals(Hostfiles):

    def test_place_and_expectation(self):
        path = self.write("h", "node1 slots=4\n\nnode2 slots=many\n")
        self.refused(path, rf"{re.escape(path)}:3: 'node2 slots=many': 'many' is not a slot count; expected a whole")
        path = self.write("i", "[defaults]\nslots = 2\n[host a]\nuser = ann\n[host a]\nuser = bob\n")
        self.refused(path, r":6: .*a has the user 'ann' already \(line 4, \[host a\]\)")
        self.refused(self.write("j", "a\n[host b]\n"), ":2: .*a section after plain host lines")
        self.refused(self.write("k", "[host b]\na slots=4\n"), ":2: .*a plain host line among sections")

    def test_a_folder(self):
        self.refused(self.box.path("."), "is a folder; expected a text file")

    def test_no_such_file(self):
        self.refused(self.box.path("none"), "cannot open .*none: No such file")
        self.refused(self.box.path("none#group"), "cannot open .*none: No such file")

    def test_no_text(self):
        text = b"node1 slots=4\n"
        self.refused(self.write("gz", gzip.compress(text)), "a NUL byte")
        self.refused(self.write("utf16", text.decode().encode("utf-16")), "a NUL byte")
        self.refused(worker("hello"), "a NUL byte")
        self.refused("/dev/zero", "a NUL byte")
        self.refused(self.write("nul", b"node1\0\n"), "a NUL byte")

    def test_nothing_in_it(self):
        self.refused("/dev/null", "names no host")
        self.refused(self.write("comments", "# node1\n\n"), "names no host")

    def test_a_million_hosts(self):
        path = self.write("million", "".join(f"node{i:06} slots=1\n" for i in range(1000000)))
        self.refused(path, ":100001: .*more than 100000 hosts")

    def test_a_million_lines(self):
        path = self.write("lines", "".join(f"node{i % 500}\n" for i in range(1000000)))
        found = self.plan(path, "-np", 2)
        self.assertEqual([(host["name"], host["slots"]) for host in found["nodes"]], [("node0", 2000)])

    def test_a_long_line(self):
        self.refused(self.write("long", b"a" * 100000000), ":1: a line of 100000000 bytes")

    def test_a_pipe_that_never_ends(self):
        path = self.box.path("pipe")
        os.mkfifo(path)
        self.refused(path, "pipe did not end within 0.5 s", args=("--start-timeout", "500ms"))
        writer = os.open(path, os.O_RDWR)
        os.write(writer, b"node1\n")
        self.refused(path, "pipe did not end within", args=("--start-timeout", "500ms"))
        os.close(writer)

    def test_max_slots(self):
        path = self.write("h", "a slots=2 max_slots=3\n")
        result = self.run_job("--hostfile", path, "-np", 3, "--oversubscribe", "--dry-run", "./x")
        self.expect(result, 0)
        result = self.run_job("--hostfile", path, "-np", 4, "--oversubscribe", "--dry-run", "./x")
        self.expect(result, 123)
        self.expect_said(result, "max_slots.*3|3.*max_slots")


class Pipes(Hostfiles):

    def test_a_pipe(self):
        path = self.box.path("pipe")
        os.mkfifo(path)
        writer = self.helper("sh", "-c", f"sleep 0.2; printf 'a slots=2\\n' > {path}", stdout=subprocess.DEVNULL)
        self.assertEqual([host["slots"] for host in self.plan(path)["nodes"]], [2])
        writer.popen.wait()

    def test_standard_input(self):
        result = self.expect(self.run_job("--hostfile", "/dev/stdin", "--dry-run", "./x", stdin=b"a slots=2\nb\n"), 0)
        self.assertIn("3 ranks of 1 program on 2 hosts with 3 slots", result.stdout)


class Groups(Hostfiles):

    def test_unknown(self):
        path = os.path.join(FOLDER, "cluster.ini")
        self.refused(f"{path}#gpus", r"cluster.ini has no group 'gpus'; expected a section \[group gpus\]")
        self.refused(os.path.join(FOLDER, "mpich.hosts") + "#gpu", "no group 'gpu': it has no sections")

    def test_a_file_that_is_called_so(self):
        self.assertEqual([host["name"] for host in self.plan(self.write("h#x", "a\n"))["nodes"]], ["a"])


class Workers(Hostfiles):
    """What an entry does to the workers of its host."""

    def test_environment(self):
        path = self.write("h.ini", "[defaults]\nenv.SHELL_TOO = host\nenv.GIVEN = host\nenv.PLACE = any\n"
                                   "[host a]\nenv.PLACE = on a\n[host b]\n")
        result = self.run_job("--hostfile", path, *LOCAL, "-x", "GIVEN=job", worker("hello"), "SHELL_TOO", "GIVEN",
                              "PLACE", env={"SHELL_TOO": "shell"})
        self.expect(result, 0)
        for rank, place in enumerate(["on a", "any"]):
            for line in ("SHELL_TOO=host", "GIVEN=job", f"PLACE={place}"):
                self.assertIn(f"[{rank}]<stdout>:{line}", result.lines, result.describe())

    def test_rank_variables_stay_true(self):
        path = self.write("h.ini", "[host a]\nenv.HVDRUN_TEST_OTHER = 1\n[host b]\n")
        result = self.run_job("--hostfile", path, *LOCAL, worker("hello"), "HOROVOD_RANK", "HVDRUN_TEST_OTHER")
        self.expect(result, 0)
        self.assertIn("[0]<stdout>:HVDRUN_TEST_OTHER=1", result.lines, result.describe())
        self.assertIn("[1]<stdout>:HOROVOD_RANK=1", result.lines, result.describe())
        self.assertNotIn("[1]<stdout>:HVDRUN_TEST_OTHER=1", result.lines, result.describe())

    def test_working_folder(self):
        for name in ("job", "here", "far"):
            os.mkdir(self.box.path(name))
        path = self.write("h.ini", f"[host a]\nwdir = {self.box.path('far')}\n[host b]\nwdir = here\n[host c]\n")
        for args, last in (((), self.box.path(".")), (("--wdir", self.box.path("job")), self.box.path("job"))):
            result = self.expect(self.run_job("--hostfile", path, *LOCAL, *args, worker("self")), 0)
            found = [os.path.realpath(parse_self(result.stdout, rank)["cwd"]) for rank in range(3)]
            want = [self.box.path("far"), self.box.path("here"), last]
            self.assertEqual(found, [os.path.realpath(one) for one in want], result.describe())

    def test_no_such_working_folder(self):
        path = self.write("h", "a\nb wdir=/nonexistent/far\n")
        result = self.expect(self.run_job("--hostfile", path, *LOCAL, worker("hello")), 125)
        self.expect_said(result, r"b: .*cannot enter the working directory /nonexistent/far")

    def test_slots_by_gpus(self):
        path = self.write("h.ini", "[group g]\nhosts = a,b\ngpus = 2\n[host b]\nslots = 1\n")
        self.assertEqual([(host["name"], host["slots"]) for host in self.plan(path)["nodes"]], [("a", 2), ("b", 1)])


class Watched(Elastic, Flow):
    """--hosts-watch reads the same dialects."""

    SAY = ('echo "rank $RANK of $WORLD_SIZE on $HVDRUN_HOSTNAME has $OF_GROUP in $PWD"; '
           'until [ -e "$GATE" ]; do sleep 0.1; done')

    def test_sections(self):
        folder, hosts, gate = self.box.path("far"), self.box.path("hosts"), self.box.path("gate")
        os.mkdir(folder)
        text = f"[group g]\nhosts = a\nslots = 2\nenv.OF_GROUP = it\n[host b]\nwdir = {folder}\n"
        write_atomically(hosts, text)
        job = self.start_elastic("--hosts-watch", hosts, "--min-np", 2, "--grow-delay", "200ms", "sh", "-c", self.SAY,
                                 env={"GATE": gate})
        job.wait_output(r"of 3 on b has  in " + re.escape(os.path.realpath(folder)))
        job.wait_output("of 3 on a has it in ", count=2)
        write_atomically(hosts, text.replace("hosts = a", "hosts = a,c"))
        job.wait_output("of 5 on c has it in ", count=2)
        self.write("gate", "")
        self.expect(job.wait(), 0)

    def test_a_bad_section_is_told(self):
        hosts = self.write("hosts", "[group g]\nhosts = a\nslotz = 2\n")
        result = self.expect(self.start_elastic("--hosts-watch", hosts, "--min-np", 1, "true").wait(), 125)
        self.expect_said(result, r"hosts:3: 'slotz = 2': an unknown key")


class Identity(Hostfiles):
    """The key of each host, as the ssh program gets it; that it opens the door: test_ssh.py."""

    def test_each_host_has_its_key(self):
        for name in ("one", "two", "all"):
            self.write(f"{name}.key", "a key")
        self.write("bin/ssh", "#!/bin/sh\necho \"$@\" >> \"$SSH_LOG\"\nexit 255\n", 0o755)
        log = self.box.path("ssh.log")
        path = self.write("h.ini", f"[host a]\nidentity = {self.box.path('one.key')}\n"
                                   f"[host b]\nidentity = {self.box.path('two.key')}\n[host c]\n")
        result = self.run_job("--hostfile", path, "--transport", "ssh-cli", "-i", self.box.path("all.key"), "true",
                              env={"PATH": f"{self.box.path('bin')}:{os.environ['PATH']}", "SSH_LOG": log})
        self.expect(result, 125)
        with open(log, encoding="utf-8") as file:
            calls = [line.split() for line in file]
        for host, key in (("a", "one"), ("b", "two"), ("c", "all")):
            mine = [words for words in calls if host in words]
            self.assertTrue(mine, calls)
            for words in mine:
                self.assertEqual([after for word, after in zip(words, words[1:]) if word == "-i"],
                                 [self.box.path(f"{key}.key")], words)

    def test_a_key_that_is_not_there(self):
        path = self.write("h", "a identity=/nonexistent/key\n")
        result = self.expect(self.run_job("--hostfile", path, "--transport", "ssh", "true"), 125)
        self.expect_said(result, r"a: .*/nonexistent/key \(identity in the host list\)")


if __name__ == "__main__":
    main()
