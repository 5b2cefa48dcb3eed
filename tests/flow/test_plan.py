# SPDX-License-Identifier: Apache-2.0
"""The planner, without starting anything: golden --dry-run plans, and what does not fit.

Each case has two golden files, golden/NAME.txt (the table) and golden/NAME.json, compared byte for
byte. HVDRUN_UPDATE_GOLDEN=1 writes them anew. So that this cannot cement a wrong plan, the test also computes
the plan by horovodrun's rule, and compares the JSON files with it.
"""

import json
import os
import socket

from rig import HERE, Flow, main

GOLDEN = os.path.join(HERE, "golden")
LOCAL = ["--transport", "local"]

# name: (arguments, hosts as (name, slots), np of each app, commands)
CASES = {
    "one": (["-np", "1", "./train"], [("localhost", 1)], [1], ["./train"]),
    "four": (["-np", "4", "./train", "--epochs", "3"], [("localhost", 4)], [4], ["./train --epochs 3"]),
    "bare": (["./train"], [("localhost", 1)], [1], ["./train"]),
    "two_hosts": (["-np", "4", "-H", "a:2,b:2", *LOCAL, "./train"], [("a", 2), ("b", 2)], [4], ["./train"]),
    "unequal": (["-H", "a:2,b:4,c:1", *LOCAL, "./train"], [("a", 2), ("b", 4), ("c", 1)], [7], ["./train"]),
    "unequal_partly": (["-np", "5", "-H", "a:2,b:4,c:1", *LOCAL, "./train"], [("a", 2), ("b", 4), ("c", 1)], [5],
                       ["./train"]),
    "first_host_is_enough": (["-np", "3", "-H", "a:4,b:4", *LOCAL, "./train"], [("a", 4), ("b", 4)], [3],
                             ["./train"]),
    "no_slot_count": (["-H", "a,b,c", *LOCAL, "./train"], [("a", 1), ("b", 1), ("c", 1)], [3], ["./train"]),
    "same_host_again": (["-H", "a:1,b:2,a:2", *LOCAL, "./train"], [("a", 3), ("b", 2)], [5], ["./train"]),
    "range": (["-H", "node[08-11]:2", *LOCAL, "./train"],
              [("node08", 2), ("node09", 2), ("node10", 2), ("node11", 2)], [8], ["./train"]),
    "ipv6": (["-H", "[fe80::1]:2,[fe80::2]", *LOCAL, "./train"], [("fe80::1", 2), ("fe80::2", 1)], [3], ["./train"]),
    "twelve": (["-np", "12", "-H", "node1:8,node2:8", *LOCAL, "./train"], [("node1", 8), ("node2", 8)], [12],
               ["./train"]),
    "mpmd": (["-H", "a:2,b:2", *LOCAL, "-np", "1", "./a", "x", ":", "-np", "3", "./b"], [("a", 2), ("b", 2)], [1, 3],
             ["./a x", "./b"]),
    "quoting": (["-np", "1", "./train", "two words", "it's", "", "naïve", "$HOME"], [("localhost", 1)], [1],
                ["./train 'two words' 'it'\\''s' '' 'naïve' '$HOME'"]),
}

# name: (arguments, hosts as (name, slots), the host of each rank, np of each app)
MAPPED = {
    "by_node": (["--map-by", "node", "-H", "a:2,b:2", *LOCAL, "./train"], [("a", 2), ("b", 2)], "a b a b", [4]),
    "by_node_unequal": (["--map-by", "node", "-H", "a:3,b:1,c:2", *LOCAL, "./train"], [("a", 3), ("b", 1), ("c", 2)],
                        "a b c a c a", [6]),
    "by_node_partly": (["-np", "3", "--map-by", "node", "-H", "a:3,b:1,c:2", *LOCAL, "./train"],
                       [("a", 3), ("b", 1), ("c", 2)], "a b c", [3]),
    "by_node_over": (["-np", "5", "--map-by", "node", "--oversubscribe", "-H", "a:2,b:1", *LOCAL, "./train"],
                     [("a", 2), ("b", 1)], "a b a a b", [5]),
    "by_node_mpmd": (["--map-by", "node", "-H", "a:2,b:2", *LOCAL, "-np", "1", "./a", ":", "-np", "3", "./b"],
                     [("a", 2), ("b", 2)], "a b a b", [1, 3]),
    "ppr": (["--map-by", "ppr:2:node", "-H", "a:4,b:4,c:2", *LOCAL, "./train"], [("a", 4), ("b", 4), ("c", 2)],
            "a a b b c c", [6]),
    "ppr_open": (["--map-by", "ppr:2:node", "-H", "a,b", *LOCAL, "./train"], [("a", 2), ("b", 2)], "a a b b", [4]),
    "ppr_here": (["--map-by", "ppr:3:node:PE=2", "./train"], [("localhost", 3)],
                 "localhost localhost localhost", [3]),
    "numa": (["--map-by", "numa", "-H", "a:2,b:2", *LOCAL, "./train"], [("a", 2), ("b", 2)], "a a b b", [4]),
    "seq": (["--map-by", "seq", "-H", "a,b,a", *LOCAL, "./train"], [("a", 2), ("b", 1)], "a b a", [3]),
}
GOLDEN_CASES = {name: case[0] for name, case in [*CASES.items(), *MAPPED.items()]}


def reference(hosts, sizes):
    """horovodrun's rule: fill a host, then the next; the cross rank is the index among the hosts that
    have this local rank."""
    total = sum(sizes)
    used, left = [], total
    for name, slots in hosts:
        if left > 0:
            used.append((name, slots, min(slots, left)))
            left -= used[-1][2]
    apps = [(app, n) for app, size in enumerate(sizes) for n in range(size)]
    nodes, ranks = [], []
    for name, slots, count in used:
        nodes.append({"name": name, "slots": slots, "local_size": count, "first_rank": len(ranks)})
        for local in range(count):
            having = [host for host, _, size in used if size > local]
            app, number = apps[len(ranks)]
            ranks.append({"rank": len(ranks), "host": name, "local_rank": local, "local_size": count,
                          "cross_rank": having.index(name), "cross_size": len(having), "app": app,
                          "app_rank": number})
    return {"size": total, "nodes": nodes, "ranks": ranks}


def placed(hosts, names, sizes):
    """The plan in which rank i runs on the i-th of `names`: nodes in the order of their lowest ranks."""
    names = names.split()
    apps = [(app, n) for app, size in enumerate(sizes) for n in range(size)]
    order = list(dict.fromkeys(names))
    nodes = [{"name": name, "slots": dict(hosts)[name], "local_size": names.count(name),
              "first_rank": names.index(name)} for name in order]
    ranks = []
    for rank, name in enumerate(names):
        local = names[:rank].count(name)
        having = [host for host in order if names.count(host) > local]
        ranks.append({"rank": rank, "host": name, "local_rank": local, "local_size": names.count(name),
                      "cross_rank": having.index(name), "cross_size": len(having), "app": apps[rank][0],
                      "app_rank": apps[rank][1]})
    return {"size": len(names), "nodes": nodes, "ranks": ranks}


RULES = {**{name: reference(hosts, sizes) for name, (_, hosts, sizes, _) in CASES.items()},
         **{name: placed(hosts, names, sizes) for name, (_, hosts, names, sizes) in MAPPED.items()}}


class Plan(Flow):

    def dry(self, *args, kind=None, status=0, **options):
        result = self.run_job("--dry-run" if kind is None else f"--dry-run={kind}", *args, **options)
        return self.expect(result, status)

    def compare(self, name, extension, text):
        path = os.path.join(GOLDEN, f"{name}.{extension}")
        if os.environ.get("HVDRUN_UPDATE_GOLDEN"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(text, file.read(), f"differs from {path}")

    def test_golden_tables(self):
        for name, args in GOLDEN_CASES.items():
            with self.subTest(case=name):
                self.compare(name, "txt", self.dry(*args).stdout)

    def test_golden_json(self):
        for name, args in GOLDEN_CASES.items():
            with self.subTest(case=name):
                self.compare(name, "json", self.dry(*args, kind="json").stdout)

    def test_json_against_the_rule(self):
        for name, args in GOLDEN_CASES.items():
            with self.subTest(case=name):
                plan = json.loads(self.dry(*args, kind="json").stdout)
                self.assertEqual({key: plan[key] for key in RULES[name]}, RULES[name])
                sizes = CASES[name][2] if name in CASES else MAPPED[name][3]
                self.assertEqual([app["np"] for app in plan["apps"]], sizes)

    def test_golden_files_hold_to_the_rule(self):
        for name, rule in RULES.items():
            with self.subTest(case=name):
                with open(os.path.join(GOLDEN, f"{name}.json"), encoding="utf-8") as file:
                    plan = json.load(file)
                self.assertEqual({key: plan[key] for key in rule}, rule)
        known = {f"{name}.{kind}" for name in RULES for kind in ("txt", "json")}
        there = {entry.name for entry in os.scandir(GOLDEN) if entry.is_file()}
        self.assertEqual(there, known, "a golden file without a case, or the reverse")

    def test_nothing_is_started(self):
        self.dry("-np", "2", "touch", self.box.path("made"))
        self.assertFalse(os.path.exists(self.box.path("made")))
        self.dry("-np", "2", "./no/such/program")

    def test_dry_run_needs_no_reachable_host(self):
        # the plan is made without facts, so any host will do
        plan = json.loads(self.dry("-H", "far-away:2,further:2", "./train", kind="json").stdout)
        self.assertEqual([node["name"] for node in plan["nodes"]], ["far-away", "further"])

    def test_many_hosts(self):
        plan = json.loads(self.dry("-H", "n[001-300]:4", *LOCAL, "./train", kind="json").stdout)
        rule = reference([(f"n{i:03}", 4) for i in range(1, 301)], [1200])
        self.assertEqual({key: plan[key] for key in rule}, rule)

    def test_hostfiles(self):
        path = self.write("hosts", "# a comment\n\na slots=2\nb:1   # three ways to say it\nc\n")
        for option in ("--hostfile", "-hostfile"):
            plan = json.loads(self.dry(option, path, *LOCAL, "./train", kind="json").stdout)
            self.assertEqual({key: plan[key] for key in ("size", "nodes", "ranks")},
                             reference([("a", 2), ("b", 1), ("c", 1)], [4]))

    def test_bad_hostfile_names_file_and_line(self):
        path = self.write("hosts", "a slots=2\nb slots=many\n")
        result = self.dry("--hostfile", path, "./train", status=2)
        self.expect_said(result, r"hosts:2\b.*many")

    def test_bad_host_names(self):
        for hosts in ("-rf:2", "a;b:1", "a b", "a:0", "a:x", "a:-1", ":2", "node[3-1]", "$(x)"):
            with self.subTest(hosts=hosts):
                result = self.dry(f"--hosts={hosts}", "./train", status=2)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.describe())

    def test_not_enough_slots(self):
        result = self.dry("-np", "8", "-H", "a:2,b:4", *LOCAL, "./train", status=123)
        self.expect_said(result, r"\b8\b")
        self.expect_said(result, r"\b6\b|a\D+2.*b\D+4")
        self.expect_said(result, r"\ba\b.*2.*\bb\b.*4")
        self.expect_said(result, "oversubscribe")
        self.expect(self.run_job("-np", 3, "-H", "localhost:2", "true"), 123)

    def test_oversubscribe(self):
        plan = json.loads(self.dry("-np", "7", "-H", "a:2,b:1", "--oversubscribe", *LOCAL, "./train",
                                   kind="json").stdout)
        self.assertEqual(plan["size"], 7)
        self.assertEqual([rank["rank"] for rank in plan["ranks"]], list(range(7)))
        self.assertEqual(sum(node["local_size"] for node in plan["nodes"]), 7)
        for node in plan["nodes"]:
            own = [rank for rank in plan["ranks"] if rank["host"] == node["name"]]
            self.assertEqual([rank["local_rank"] for rank in own], list(range(node["local_size"])))
            self.assertEqual(own[0]["rank"], node["first_rank"])
            self.assertGreaterEqual(node["local_size"], node["slots"])

    def test_np_without_hosts_is_never_short_of_slots(self):
        self.assertEqual(json.loads(self.dry("-np", "64", "./train", kind="json").stdout)["nodes"][0]["slots"], 64)

    def test_unknown_format(self):
        self.expect_said(self.dry("./train", kind="xml", status=2), "dry-run.*xml.*json")


class HostsOfOthers(Flow):

    def test_a_host_that_nobody_knows(self):
        result = self.expect(self.run_job("-np", 2, "-H", "some-other-host.invalid:2", "true"), 125)
        self.expect_said(result, "some-other-host.invalid: resolve: ")

    def test_this_host_needs_none(self):
        self.expect(self.run_job("-np", 1, "-H", socket.gethostname(), "true"), 0)


if __name__ == "__main__":
    main()
