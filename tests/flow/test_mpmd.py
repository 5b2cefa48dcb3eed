# SPDX-License-Identifier: Apache-2.0
"""Several programs in one job: `a : b`."""

import os

from rig import Flow, main, parse_self, worker


class Mpmd(Flow):

    def test_ranks_go_on_from_program_to_program(self):
        result = self.run_job("-np", 1, worker("hello"), "HOME_GROUND", ":", "-np", 3, worker("hello"))
        self.expect(result, 0)
        self.expect_lines(result, ["[0]<stdout>:HOME_GROUND unset",
                                   *(f"[{r}]<stdout>:hello from rank {r} of 4" for r in range(4))])

    def test_three_programs_over_two_hosts(self):
        result = self.run_job("-H", "a:2,b:3", "--transport", "local", "-np", 1, worker("hello"), "HOROVOD_HOSTNAME", ":",
                              "-np", 2, worker("hello"), "HOROVOD_HOSTNAME", ":", "-np", 2, worker("hello"),
                              "HOROVOD_LOCAL_RANK")
        self.expect(result, 0)
        for rank, text in enumerate(["HOROVOD_HOSTNAME=a", "HOROVOD_HOSTNAME=a", "HOROVOD_HOSTNAME=b",
                                     "HOROVOD_LOCAL_RANK=1", "HOROVOD_LOCAL_RANK=2"]):
            self.assertIn(f"[{rank}]<stdout>:{text}", result.lines, result.describe())

    def test_x_of_one_program(self):
        result = self.run_job("-x", "ALL=1", "-np", 1, "-x", "MINE=first", worker("hello"), "MINE", "ALL", ":",
                              "-np", 1, "-x", "MINE=second", worker("hello"), "MINE", "ALL", ":",
                              "-np", 1, worker("hello"), "MINE")
        self.expect(result, 0)
        self.assertIn("[0]<stdout>:ALL=1", result.lines, result.describe())
        self.assertIn("[1]<stdout>:MINE=second", result.lines, result.describe())
        self.assertIn("[0]<stdout>:MINE=first", result.lines, result.describe())

    def test_wdir_of_one_program(self):
        os.mkdir(self.box.path("one"))
        result = self.run_job("-np", 1, worker("self"), ":", "-np", 1, "--wdir", self.box.path("one"), worker("self"))
        self.expect(result, 0)
        self.assertEqual(parse_self(result.stdout, 1)["cwd"], os.path.realpath(self.box.path("one")))

    def test_each_needs_its_np(self):
        result = self.expect(self.run_job("-np", 1, "true", ":", "true"), 2)
        self.expect_said(result, "-np")

    def test_job_options_belong_before_the_first(self):
        result = self.expect(self.run_job("-np", 1, "true", ":", "-np", 1, "--timeout", 5, "true"), 2)
        self.expect_said(result, "--timeout.*first")

    def test_empty_program(self):
        for args in (["-np", 1, "true", ":"], [":", "-np", 1, "true"], ["-np", 1, "true", ":", ":", "-np", 1, "true"]):
            with self.subTest(args=args):
                self.expect(self.run_job(*args), 2)

    def test_colon_after_two_dashes_is_an_argument(self):
        result = self.expect(self.run_job("-np", 1, "--", worker("self"), ":", "-np", "2"), 0)
        found = parse_self(result.stdout, 0)
        self.assertEqual(found["argc"], "4", result.describe())
        self.assertEqual([bytes.fromhex(found[f"argv.{i}"]) for i in (1, 2, 3)], [b":", b"-np", b"2"])

    def test_colon_inside_a_word_is_no_separator(self):
        result = self.expect(self.run_job("-np", 1, worker("self"), "a:b", "::"), 0)
        self.assertEqual(parse_self(result.stdout, 0)["argc"], "3", result.describe())

    def test_failure_of_one_program_ends_the_others(self):
        result = self.run_job("-np", 2, worker("hang"), ":", "-np", 1, worker("exit_with"), "2:4")
        self.expect(result, 4)
        self.expect_blame(result, 2, code=4)


if __name__ == "__main__":
    main()
