# SPDX-License-Identifier: Apache-2.0
"""Each name of Horovod exists with Horovod's parameters and defaults, or docs/horovod.md says that it does not."""
import importlib
import inspect
import operator
import os
import re

import horovod.torch as hvd
import pytest
from surface import ELSEWHERE, MISSING, TORCH, lines_of

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/horovod.md")
LINES = [("horovod.torch", line) for line in lines_of(TORCH)]
LINES += [(module, line) for module, text in ELSEWHERE.items() for line in lines_of(text)]
VALUES = {"GPS": hvd.global_process_set, "NONE": hvd.Compression.none}


def parameters_of(line):
    """{name: default} of a line of the surface, in order."""
    scope = dict(VALUES)
    exec(f"def function{line[line.index('('):]}: pass", scope)
    return inspect.signature(scope["function"]).parameters.values()


@pytest.mark.parametrize("module, line", LINES, ids=lambda value: value.split("(")[0])
def test_a_name(module, line):
    found = getattr(importlib.import_module(module), line.split("(")[0])
    if "(" not in line:
        return
    own = inspect.signature(found).parameters
    wanted = parameters_of(line)
    assert list(own)[: len(wanted)] == [one.name for one in wanted]  # ours may have further ones
    for one in wanted:
        given = own[one.name]
        assert given.default == one.default or one.default is one.empty, f"the default of {one.name}"
    for name in list(own)[len(wanted) :]:
        assert own[name].default is not inspect.Parameter.empty or own[name].kind is inspect.Parameter.VAR_KEYWORD


def rows():
    """[(names, text)] of the table of docs/horovod.md."""
    with open(PAGE, encoding="utf-8") as file:
        table = file.read().split("## Supported functions")[1]
    cells = [line.strip("| \n").split(" | ") for line in table.split("\n") if line.startswith("| `")]
    return [(re.findall(r"`([^`]+)`", names), text) for names, text in cells]


def test_the_page_has_all_names():
    page = rows()
    supported = {name for names, text in page for name in names if not text.startswith("not supported")}
    missing = {name for names, text in page for name in names if text.startswith("not supported")}
    assert missing == set(MISSING)
    for name in supported - {"init(comm=...)"}:  # the page has nothing that is not there
        if name.startswith("horovod."):
            importlib.import_module(name.removesuffix(".run"))
        else:
            operator.attrgetter(name)(hvd)
    words = {word for name in supported for word in name.split(".")}
    for module, line in LINES:
        name = line.split("(")[0]
        assert name in words or name.startswith("_") or module in supported, f"{module}.{name} is not in {PAGE}"


@pytest.mark.parametrize(
    "name",
    [*(name for name in MISSING if name.startswith("horovod.")), "horovod.run.run", "horovod.runner.util.network"],
)
def test_what_is_missing_says_so(name):
    with pytest.raises(ImportError) as found:
        importlib.import_module(name)
    assert "hvdrun" in str(found.value) and "\n" not in str(found.value)


def test_private_names_that_others_use():
    basics = hvd.mpi_ops._basics
    assert basics.MPI_LIB_CTYPES is not None and basics._get_process_set_ids_and_ranks()[0] == list(range(hvd.size()))
    assert importlib.import_module("horovod.common.process_sets")._basics is basics
    assert (hvd.Average, hvd.Sum, hvd.Adasum, hvd.Min, hvd.Max, hvd.Product) == (0, 1, 2, 3, 4, 5)
    state = hvd.elastic.ObjectState()
    assert state._host_messages.empty() and state._last_updated_timestamp == 0
