# SPDX-License-Identifier: Apache-2.0
"""The command line, configuration files and HVDRUN_ variables."""

import os
import re

from rig import Flow, main, worker

HOROVODRUN_FLAGS = """-v --version -np --num-proc -cb --check-build --disable-cache --start-timeout --network-interfaces
--network-interface --output-filename --verbose --config-file -p --ssh-port -i --ssh-identity-file
--fusion-threshold-mb --cycle-time-ms --cache-capacity --hierarchical-allreduce --no-hierarchical-allreduce
--hierarchical-allgather --no-hierarchical-allgather --torus-allreduce --no-torus-allreduce --autotune --no-autotune
--autotune-log-file --autotune-warmup-samples --autotune-steps-per-sample --autotune-bayes-opt-max-samples
--autotune-gaussian-process-noise --min-np --min-num-proc --max-np --max-num-proc --slots-per-host --elastic-timeout
--reset-limit --blacklist-cooldown-range --timeline-filename --timeline-mark-cycles --no-timeline-mark-cycles
--stall-check --no-stall-check --stall-check-warning-time-seconds --stall-check-shutdown-time-seconds
--mpi-threads-disable --no-mpi-threads-disable --mpi-args --tcp --binding-args --num-nccl-streams --thread-affinity
--gloo-timeout-seconds --log-level --log-with-timestamp --log-without-timestamp -prefix-timestamp
--prefix-output-with-timestamp --log-hide-timestamp --log-no-hide-timestamp -H --hosts -hostfile --hostfile
--host-discovery-script --gloo --mpi --jsrun""".split()


class CommandLine(Flow):

    def hello(self, *args, size, **options):
        """Runs hello with the arguments and expects `size` ranks."""
        result = self.expect(self.run_job(*args, worker("hello"), **options), 0)
        self.assertEqual(len(re.findall(f"hello from rank \\d+ of {size}$", result.stdout, re.M)), size, result.describe())
        return result

    def test_version(self):
        for option in ("--version", "-v"):
            with self.subTest(option=option):
                result = self.expect(self.run_job(option), 0)
                self.assertRegex(result.stdout, r"^hvdrun \d+\.\d+\.\d+")
                self.assertEqual(result.stderr, "")

    def test_v_with_a_command_is_verbose(self):
        result = self.hello("-v", "-np", 2, size=2)
        self.assertNotIn("hvdrun 0.", result.stdout)
        self.assertTrue(result.said.strip(), "verbose said nothing")

    def test_quiet_and_verbose(self):
        self.assertEqual(self.hello("-q", "-np", 1, "--mpi-args", "x", size=1).stderr, "")
        result = self.expect(self.run_job("-q", "-np", 2, worker("exit_with"), "1:3"), 3)
        self.expect_said(result, "rank 1")

    def test_help(self):
        few = self.expect(self.run_job("--help"), 0).stdout
        self.assertLessEqual(len(few.splitlines()), 46)
        self.assertIn("hvdrun --help all", few)
        self.assertEqual(self.expect(self.run_job("help"), 0).stdout, few)
        result = self.expect(self.run_job("--help", "all"), 0)
        self.assertEqual(self.expect(self.run_job("help", "all"), 0).stdout, result.stdout)
        self.assertEqual([line for line in result.lines if len(line) > 80], [])
        for option in ("--num-proc", "--hosts", "--output-filename", "--exit-policy", "--dry-run", "--fusion-threshold-mb",
                       "--stdin", "--report", "--timeout", "--mpi"):
            self.assertIn(option, result.stdout)
        self.assertGreaterEqual(len(re.findall(r"^\S.*:?$", result.stdout, re.M)), 6, "not grouped")
        self.assertEqual(result.stderr, "")

    def test_check_build(self):
        for option in ("--check-build", "-cb"):
            said = self.expect(self.run_job(option), 0).stdout
            self.assertRegex(said, r"(?i)pmix")
            for part in ("Slurm (srun)", "elastic jobs"):
                self.assertIn(f"[X] {part}", said)

    def test_every_flag_of_horovodrun_is_known(self):
        for flag in HOROVODRUN_FLAGS:
            with self.subTest(flag=flag):
                # followed by something impossible, so that it is judged and nothing is run
                result = self.run_job(flag, "--no-such-option", "--no-such-option")
                if flag not in ("-v", "--version", "-cb", "--check-build"):
                    self.expect(result, 2)
                    self.assertIn("--no-such-option", result.stderr, result.describe())
                self.assertNotRegex(result.stderr, f"unknown option '?{re.escape(flag)}\\b", result.describe())

    def test_all_spellings_of_np(self):
        for args in (["-np", "2"], ["-n", "2"], ["--np", "2"], ["--np=2"], ["--num-proc", "2"], ["--num-proc=2"]):
            with self.subTest(args=args):
                self.hello(*args, size=2)

    def test_all_spellings_of_hosts(self):
        for args in (["-H", "localhost:2"], ["--hosts", "localhost:2"], ["--hosts=localhost:2"], ["--host", "localhost:2"]):
            with self.subTest(args=args):
                self.hello(*args, size=2)

    def test_options_stop_at_the_command(self):
        result = self.expect(self.run_job("-np", 1, "echo", "-np", "7", "--no-such-option", "--help", "--", "-v"), 0)
        self.assertEqual(result.stdout, "[0]<stdout>:-np 7 --no-such-option --help -- -v\n")

    def test_two_dashes(self):
        result = self.expect(self.run_job("-np", 1, "--", "echo", "--", "x"), 0)
        self.assertEqual(result.stdout, "[0]<stdout>:-- x\n")

    def test_unknown_option_names_the_nearest(self):
        for typed, meant in (("--hsots", "--hosts"), ("--num-porc", "--num-proc"), ("--fusion-treshold-mb", "--fusion-threshold-mb"),
                             ("--outputfilename", "--output-filename"), ("--time-out", "--timeout")):
            with self.subTest(typed=typed):
                result = self.expect(self.run_job(typed, "x", "true"), 2)
                self.expect_said(result, f"{typed}.*{meant}")
                self.assertEqual(len(result.stderr.splitlines()), 1, result.describe())

    def test_value_missing(self):
        self.expect_said(self.expect(self.run_job("--timeout"), 2), "--timeout")
        self.expect_said(self.expect(self.run_job("--oversubscribe=yes-please", "true"), 2), "--oversubscribe")

    def test_foreign_options_are_accepted_with_one_warning(self):
        for args in (["--mpi-args", "--map-by node"], ["--mpi-args=-x A"], ["--binding-args", "-bind-to core"], ["--jsrun"],
                     ["--disable-cache"]):
            with self.subTest(args=args):
                result = self.hello(*args, "-np", 1, size=1)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.describe())
                self.expect_said(result, args[0].split("=")[0])

    def test_last_of_two_values_wins(self):
        self.hello("-np", 3, "-np", 2, size=2)

    def test_hosts_and_hostfile_contradict(self):
        path = self.write("hosts", "localhost slots=2\n")
        self.expect_said(self.expect(self.run_job("-H", "localhost:1", "--hostfile", path, "true"), 2), "-H.*hostfile")
        self.hello("--hostfile", path, size=2)

    def test_bad_bytes_in_arguments_of_options(self):
        self.expect(self.run_job(b"--hosts=\xff\xfe", "true"), 2)
        self.expect(self.run_job(b"-np", b"\xff", "true"), 2)
        self.expect(self.run_job("--" + "x" * 5000, "true"), 2)


class Configuration(Flow):

    def hello(self, *args, **options):
        return self.expect(self.run_job(*args, worker("hello"), "FROM_FILE", "HOROVOD_CYCLE_TIME",
                                        "HOROVOD_FUSION_THRESHOLD", "HOROVOD_TIMELINE", "HOROVOD_STALL_CHECK_DISABLE",
                                        **options), 0)

    def test_ini_file(self):
        path = self.write("job.ini", "# our cluster\n[launch]\nnp = 2\n\n[output]\nlabel = %r> \n"
                                     "[tune]\ncycle-time-ms = 2.5\nfusion-threshold-mb = 1\n[env]\nFROM_FILE = yes\n")
        result = self.hello("--config-file", path)
        self.assertRegex(result.stdout, r"(?m)^0> ?hello from rank 0 of 2$")
        self.assertRegex(result.stdout, r"(?m)^1> ?FROM_FILE=yes$")
        self.assertIn("HOROVOD_CYCLE_TIME=2.5", result.stdout)
        self.assertIn("HOROVOD_FUSION_THRESHOLD=1048576", result.stdout)

    def test_the_users_own_file(self):
        path = os.path.join(self.box.home, ".config/hvdrun/config.ini")
        self.write(path, "[launch]\nnp = 3\n")
        result = self.hello()
        self.assertEqual(result.stdout.count("hello from rank"), 3, result.describe())

    def test_precedence(self):
        own = os.path.join(self.box.home, ".config/hvdrun/config.ini")
        self.write(own, "[launch]\nnp = 2\n")
        named = self.write("job.ini", "[launch]\nnp = 3\n")
        count = lambda result: result.stdout.count("hello from rank")
        self.assertEqual(count(self.hello()), 2)
        self.assertEqual(count(self.hello("--config-file", named)), 3)
        self.assertEqual(count(self.hello("--config-file", named, env={"HVDRUN_NP": "4"})), 4)
        self.assertEqual(count(self.hello("--config-file", named, "-np", 5, env={"HVDRUN_NP": "4"})), 5)

    def test_bad_files_name_file_and_line(self):
        for text, line, word in (("[launch]\nnp = 2\nnpp = 3\n", 3, "npp"), ("[launch]\nnp = many\n", 2, "many"),
                                 ("[lunch]\nnp = 1\n", "[12]", "lunch"), ("[launch]\n\nthis is no setting\n", 3, "this"),
                                 ("[launch]\nlabel = x\n", 2, "label")):
            with self.subTest(text=text):
                path = self.write("bad.ini", text)
                result = self.expect(self.run_job("--config-file", path, "true"), 2)
                self.expect_said(result, rf"bad\.ini:{line}\b")
                self.expect_said(result, word if word != "this" else ".")
                self.assertEqual(len(result.stderr.splitlines()), 1, result.describe())

    def test_missing_file(self):
        result = self.run_job("--config-file", "nowhere.ini", "true")
        self.assertEqual(result.status, 2, result.describe())
        self.expect_said(result, "nowhere.ini.*no such file")

    def test_yaml_of_horovodrun(self):
        path = self.write("config.yaml", "params:\n  fusion_threshold_mb: 32\n  cycle_time_ms: 3.5\n"
                                         "timeline:\n  filename: t.json\n  mark_cycles: true\nstall_check:\n  enabled: false\n")
        result = self.hello("--config-file", path, "-np", 1)
        for text in ("HOROVOD_FUSION_THRESHOLD=33554432", "HOROVOD_CYCLE_TIME=3.5", "HOROVOD_TIMELINE=t.json",
                     "HOROVOD_STALL_CHECK_DISABLE=1"):
            self.assertIn(text, result.stdout, result.describe())

    def test_flag_wins_over_yaml(self):
        path = self.write("config.yaml", "params:\n  cycle_time_ms: 3.5\n")
        self.assertIn("HOROVOD_CYCLE_TIME=7", self.hello("--config-file", path, "--cycle-time-ms", 7).stdout)

    def test_bad_yaml_names_file_and_line(self):
        for text, line in (("params:\n  fusion_treshold_mb: 3\n", 2), ("params:\n  cycle_time_ms: soon\n", 2),
                           ("params:\n  cycle_time_ms: [1\n", r"\d")):
            with self.subTest(text=text):
                path = self.write("bad.yaml", text)
                self.expect_said(self.expect(self.run_job("--config-file", path, "true"), 2), rf"bad\.yaml:{line}\b")

    def test_variables(self):
        result = self.hello(env={"HVDRUN_NP": "2", "HVDRUN_LABEL": "<%r>", "HVDRUN_CYCLE_TIME_MS": "4"})
        self.assertIn("<1>hello from rank 1 of 2", result.lines, result.describe())
        self.assertIn("<0>HOROVOD_CYCLE_TIME=4", result.lines)

    def test_bad_variable_is_named(self):
        self.expect_said(self.expect(self.run_job("true", env={"HVDRUN_NP": "many"}), 2), "HVDRUN_NP.*many")

    def test_unknown_variable_is_a_warning(self):
        result = self.hello("-np", 1, env={"HVDRUN_TIMEOUTT": "5"})
        self.expect_said(result, "HVDRUN_TIMEOUTT")

    def test_config_file_by_variable(self):
        path = self.write("job.ini", "[launch]\nnp = 2\n")
        result = self.hello(env={"HVDRUN_CONFIG_FILE": path})
        self.assertEqual(result.stdout.count("hello from rank"), 2, result.describe())

    def test_start_timeout_of_horovodrun(self):
        self.hello("-np", 1, env={"HOROVOD_START_TIMEOUT": "40"})


if __name__ == "__main__":
    main()
