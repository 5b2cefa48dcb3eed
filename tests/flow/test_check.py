# SPDX-License-Identifier: Apache-2.0
"""`hvdrun check` with simulated hosts on this machine: the table, the JSON, the command line."""

import json
import os
import re
import resource
import signal
import socket

from rig import Flow, descendants, main, patient, plain, sanitized, wait_until

LOCAL = ("--transport", "local")

# What each host that has answered has, and of which type. docs/check.md tells the same.
TEXT, OPTIONAL = str, (str, type(None))
NUMBER, LIMIT = (int, float), (int, type(None))
LIBRARY = {"version": OPTIONAL, "file": OPTIONAL, "problem": OPTIONAL}
FOLDER = {"path": TEXT, "free_bytes": int, "total_bytes": int, "noexec": bool, "problem": OPTIONAL}
BOTH = {"hard": LIMIT, "workers": LIMIT}
FAILED_HOST = {"name": TEXT, "state": TEXT, "stage": OPTIONAL, "why": OPTIONAL, "here": bool, "reached_by": OPTIONAL,
               "login": OPTIONAL, "host_key": OPTIONAL, "address": OPTIONAL, "interface": OPTIONAL}
HOST = {**FAILED_HOST, "clock": {"offset_s": NUMBER, "error_s": NUMBER}, "version": TEXT, "hostname": TEXT,
        "boot_id": TEXT, "machine": TEXT, "cpus": int, "cpus_online": int, "memory_bytes": int, "interfaces": list,
        "system": OPTIONAL, "kernel": TEXT, "pmix": LIBRARY, "hwloc": LIBRARY, "folders": {"tmp": FOLDER, "shm": FOLDER},
        "limits": {name: BOTH for name in ("nofile", "nproc", "core", "stack", "memlock", "as", "cpu", "fsize")},
        "gpus": {"count": int, "names": list, "driver": OPTIONAL}, "adapters": list, "own_address": OPTIONAL}
CONNECTION = {"from": TEXT, "to": TEXT, "address": TEXT, "source": OPTIONAL, "outcome": TEXT, "text": OPTIONAL,
              "connect_s": (*NUMBER, type(None))}
TRANSFER = {**CONNECTION, "bytes": int, "seconds": NUMBER, "bits_per_s": NUMBER}
FINDING = {"host": OPTIONAL, "fatal": bool, "bad": bool, "text": TEXT}


class Checks(Flow):

    def expect_form(self, value, form, where="."):
        """Exactly these members, of these types."""
        if isinstance(form, dict):
            self.assertIsInstance(value, dict, where)
            self.assertEqual(sorted(value), sorted(form), where)
            for name, inner in form.items():
                self.expect_form(value[name], inner, f"{where}/{name}")
        else:
            self.assertIsInstance(value, form, where)

    def expect_report(self, report, names, net=False):
        self.assertEqual(sorted(report), ["connections", "findings", "hosts", "hvdrun", "status"])
        self.assertEqual([host["name"] for host in report["hosts"]], names)
        for host in report["hosts"]:
            self.expect_form(host, HOST if "cpus" in host else {**FAILED_HOST, "clock": type(None)})
        for connection in report["connections"]:
            self.expect_form(connection, TRANSFER if net else CONNECTION)
        for finding in report["findings"]:
            self.expect_form(finding, FINDING)

    def check(self, *args, status=0, **options):
        return self.expect(self.run_job("check", *args, **options), status)

    def report(self, *args, status=0, **options):
        result = self.check("--json", *args, status=status, **options)
        return json.loads(result.stdout)


class Here(Checks):

    def test_this_machine(self):
        result = self.check()
        self.assertRegex(result.lines[0], r"^HOST +STATE +ADDRESS +IFACE +CPUS +MEMORY +GPUS +CLOCK +TMP +SHM$")
        self.assertRegex(result.lines[1], r"^localhost +(ok|warning) +127\.0\.0\.1 +lo +\d")
        self.assertRegex(result.stdout, r"\non the host: hvdrun \d\S+, \w+, ")
        self.assertRegex(result.lines[-1], r"^1 host: ")
        self.assertEqual(result.stderr, "", result.describe())

    def test_json_of_this_machine(self):
        report = self.report()
        self.expect_report(report, ["localhost"])
        host = report["hosts"][0]
        self.assertEqual((report["status"], host["here"], host["why"]), (0, True, None))
        self.assertEqual(host["hostname"], socket.gethostname())
        self.assertEqual(host["machine"], os.uname().machine)
        self.assertEqual(host["cpus"], len(os.sched_getaffinity(0)))
        self.assertEqual(report["connections"], [])

    def test_made_up_hosts_in_their_order(self):
        report = self.report("-H", "zeta,alpha:4,mid", *LOCAL)
        self.expect_report(report, ["zeta", "alpha", "mid"])
        pairs = [(link["from"], link["to"], link["outcome"]) for link in report["connections"]]
        names = ["zeta", "alpha", "mid"]
        self.assertEqual(pairs, [(one, other, "reached") for one in names for other in names if one != other])
        self.assertEqual({link["address"] for link in report["connections"]}, {"127.0.0.1"})

    def test_the_same_clock(self):
        for host in self.report("-H", "a,b", *LOCAL)["hosts"]:
            self.assertEqual(host["clock"]["error_s"], 0)

    def test_transfers(self):
        names = ["a", "b", "c", "d"]
        report = self.report("--net", "-H", ",".join(names), *LOCAL)
        self.expect_report(report, names, net=True)
        self.assertEqual(len(report["connections"]), 12)
        for link in report["connections"]:
            self.assertGreater(link["bytes"], 0, link)

    def test_a_matrix_of_speeds(self):
        result = self.check("--net", "-H", "a,b", *LOCAL)
        self.assertRegex(result.stdout, r"network: 2 of 2 connections between hosts succeeded.*\n"
                                        r"Gbit/s[^\n]*\n +a +b\na +- +[\d.]+\nb +[\d.]+ +-\n")

    @plain
    def test_many_hosts(self):
        count = 16 if sanitized() else 64
        result = self.check("-H", f"n[1-{count}]", *LOCAL, timeout=120)
        self.assertEqual([line.split()[0] for line in result.lines[1:count + 1]], [f"n{i + 1}" for i in range(count)])
        self.assertIn(f"network: {count * (count - 1)} of {count * (count - 1)} connections", result.stdout)
        shown = [line for line in result.lines if not line.startswith("warning: ")]  # libpmix rarely fails in one of many
        self.assertLessEqual(max(map(len, shown)), 100, result.describe())

    def test_more_hosts_than_pairs_can_be_tried(self):
        if sanitized():
            count, links = 66, 66 * 2 * 6
        else:
            count, links = 80, 80 * 2 * 6
        report = self.report("-H", f"n[1-{count}]", *LOCAL, timeout=180)
        self.assertEqual(len(report["connections"]), links)
        self.assertEqual({link["from"] for link in report["connections"]}, {host["name"] for host in report["hosts"]})
        self.assertEqual({link["outcome"] for link in report["connections"]}, {"reached"})

    def test_the_temporary_folder_is_what_tmpdir_says(self):
        report = self.report()
        self.assertEqual(report["hosts"][0]["folders"]["tmp"]["path"], self.box.environment()["TMPDIR"])

    def test_a_temporary_folder_that_is_none(self):
        for args, status, state in (((), 0, "warning"), (("--mpi=pmix",), 125, "problem")):
            report = self.report(*args, status=status, env={"TMPDIR": self.write("file", "")})
            host = report["hosts"][0]
            self.assertEqual(host["state"], state)
            self.assertRegex(host["folders"]["tmp"]["problem"], r"cannot create.*TMPDIR")
            self.assertEqual([(one["fatal"], one["host"]) for one in report["findings"]],
                             [(status == 125, "localhost")])

    def test_limits_of_this_shell_count(self):
        result = self.check("--json", limits={resource.RLIMIT_NOFILE: (512, 4096)})
        report = json.loads(result.stdout)
        self.assertEqual(report["hosts"][0]["limits"]["nofile"], {"hard": 4096, "workers": 512})
        texts = [finding["text"] for finding in report["findings"] if not finding["fatal"]]
        self.assertTrue(any("only 512 files" in text for text in texts), texts)

    def test_warnings_do_not_change_the_status(self):
        result = self.check(limits={resource.RLIMIT_NOFILE: (512, 4096)})
        self.assertRegex(result.stdout, r"\nwarning: localhost: workers may open only 512 files")
        self.assertRegex(result.lines[1], r"^localhost +warning")

    def test_quiet_shows_findings_alone(self):
        result = self.check("-q", limits={resource.RLIMIT_NOFILE: (512, 4096)})
        for line in result.lines:
            self.assertRegex(line, r"^(warning: .*)?$")
        self.assertIn("512 files", result.stdout)

    def test_hosts_of_a_file(self):
        path = self.write("hosts", "# mine\none slots=4\ntwo slots=2\n")
        self.assertEqual([host["name"] for host in self.report("--hostfile", path, *LOCAL)["hosts"]], ["one", "two"])

    def test_an_interface_that_nobody_has(self):
        result = self.check("-H", "a,b", *LOCAL, "--network-interfaces", "nope7", status=125)
        self.assertRegex(result.stdout, r"problem: a has no network interface that --network-interfaces allows")

    def test_an_agent_that_hangs_is_named_and_the_others_go_on(self):
        job = self.start("check", "--net", "-H", "n[1-5]", *LOCAL, "--node-timeout", 3)
        def agents():
            """Each below its keeper."""
            return [one for keeper in job.agents() for one in descendants(keeper.pid) if one.state != "Z"]
        os.kill(wait_until(lambda: agents()[2:], "some agents run")[0].pid, signal.SIGSTOP)
        result = self.expect(job.wait(patient(90)), 125)
        failed = [line for line in result.lines if re.match(r"n\d+ +(agent|lost)\b", line)]
        self.assertEqual(len(failed), 1, result.describe())
        self.assertRegex(result.stdout, r"problem: n\d+: (agent|lost): ")
        self.assertRegex(result.lines[-1], r"^5 hosts: .*1 with problems; a job would not run$")

    def test_an_agent_that_is_killed(self):
        job = self.start("check", "--net", "-H", "n[1-5]", *LOCAL)
        os.kill(wait_until(lambda: job.agents()[2:], "some agents run")[0].pid, signal.SIGKILL)
        result = self.expect(job.wait(), 125)
        self.assertRegex(result.stdout, r"problem: n\d+: (agent|lost): ")


class Ends(Checks):

    def interrupted(self, number):
        job = self.start("check", "--net", "-H", "n[1-40]", *LOCAL)
        wait_until(lambda: len(job.agents()) >= 5, "agents run")
        job.signal(number)
        result = job.wait()
        self.assertEqual(result.status, 128 + number, result.describe())
        self.assertIn("interrupted (SIG", result.said)
        return result

    def test_ctrl_c(self):
        self.interrupted(signal.SIGINT)

    def test_term(self):
        self.interrupted(signal.SIGTERM)

    def test_standard_input_is_left_alone(self):
        read, write = os.pipe()
        os.write(write, b"mine\n")
        self.check(stdin=read)
        self.assertEqual(os.read(read, 100), b"mine\n")
        os.close(read)
        os.close(write)

    def test_no_reader(self):
        read, write = os.pipe()
        os.close(read)
        job = self.start("check", stdout=write)
        os.close(write)
        self.assertIn(job.wait().status, (0, 141))


class Words(Checks):

    def refused(self, *args, text):
        result = self.check(*args, status=2)
        self.expect_said(result, text)
        self.assertEqual(result.stdout, "")

    def test_a_program_is_refused(self):
        self.refused("true", text="takes options, but no program: unexpected 'true'")
        self.refused("-H", "a", "--", "--net", text="no program: unexpected '--net'")

    def test_unknown_options(self):
        self.refused("--jsom", text="--jsom")
        self.refused("-H", text="-H")

    def test_wrong_hosts(self):
        self.refused("-H", "a,,b", text="empty")
        self.refused("--hostfile", "/no/such/file", text="/no/such/file")

    def test_hosts_that_are_not_known_yet(self):
        script = self.write("find", "#!/bin/sh\necho a:1\n", 0o755)
        self.refused("--host-discovery-script", script, "--min-np", 1, text="-H or --hostfile")

    def test_help(self):
        for word in ("--help", "-h"):
            result = self.check(word)
            self.assertRegex(result.stdout, r"^Usage: hvdrun check ")
        self.assertIn("check [--net] [--gpu [--python PROGRAM]] [--json]", self.expect(self.run_job("--help", "all"), 0).stdout)

    def test_options_of_a_job_may_stand_there(self):
        self.assertEqual(len(self.report("-np", 2, "-H", "a:1,b:1", *LOCAL, "--oversubscribe", "-v")["hosts"]), 2)

    def test_a_program_of_that_name(self):
        self.write("check", "#!/bin/sh\necho mine\n", 0o755)
        result = self.expect(self.run_job("--", "./check"), 0)
        self.assertIn("[0]<stdout>:mine", result.lines)
        env = {"PATH": self.box.work + os.pathsep + os.environ["PATH"]}
        self.assertIn("[0]<stdout>:mine", self.expect(self.run_job("--", "check", env=env), 0).lines)


if __name__ == "__main__":
    main()
