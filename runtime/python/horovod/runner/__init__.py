# SPDX-License-Identifier: Apache-2.0
"""horovod.run(): calls a function on all ranks of a job that hvdrun starts, and returns the results."""
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import warnings

from horovod.runner.task_server import ADDRESS, KEY, TaskServer

_OLDER = {
    "np": "num_proc",
    "min_np": "min_num_proc",
    "max_np": "max_num_proc",
    "network_interface": "network_interfaces",
}
_FAILED = (
    "Horovod detected that one or more processes exited with non-zero status, thus causing the job to be terminated"
)


def _is_trusted(path, package):
    """Whether nobody can put a program there who cannot change this package, whose code runs already. So each folder
    below the one that both share, and the file, belong to root, to this user, or to the owner of the package. None is a
    link, and others cannot write there; its group can only if it can write to the package."""
    own = os.stat(__file__)
    owners = {0, os.geteuid(), own.st_uid}
    groups = {own.st_gid} if own.st_mode & stat.S_IWGRP else set()
    shared = os.path.commonpath([path, package])
    while path != shared:
        told = os.lstat(path)
        if stat.S_ISLNK(told.st_mode) or told.st_uid not in owners or told.st_mode & stat.S_IWOTH:
            return False
        if told.st_mode & stat.S_IWGRP and told.st_gid not in groups:
            return False
        path = os.path.dirname(path)
    return True


def _launcher():
    """The hvdrun of this installation (LIBDIR/hvdrun/python/horovod), of the same wheel, or the one in PATH."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = package.endswith(os.path.join("hvdrun", "python", "horovod"))
    for place in ("../../../../bin/hvdrun", "../../../../hvdrun") if installed else ("../hvdrun/bin/hvdrun",):
        path = os.path.normpath(os.path.join(package, place))
        if os.access(path, os.X_OK) and os.path.isfile(path) and _is_trusted(path, package):
            return path
    found = shutil.which("hvdrun")
    if found is None:
        raise RuntimeError("horovod.run() does not find the program hvdrun; put its folder into PATH")
    return found


def _is_local(hosts):
    return all(host.split(":")[0] in ("localhost", "127.0.0.1") for host in (hosts or "localhost").split(","))


class _Options:
    """The options of hvdrun, from the arguments of run()."""

    def __init__(self):
        self.words = []

    def add(self, name, value):
        if value is not None and value is not False:
            self.words += [name] if value is True else [name, str(value)]


def _options(given):
    if given["hosts"] and given["hostfile"]:
        raise ValueError("horovod.run(): hosts and hostfile are both given; use one")
    if given["use_gloo"] and given["use_mpi"]:
        raise ValueError("horovod.run(): use_gloo and use_mpi are both given; use one")
    elastic = given["host_discovery_script"] or given["min_num_proc"]
    options = _Options()
    options.add("-np", given["num_proc"])
    if not (given["hosts"] or given["hostfile"] or given["host_discovery_script"]):
        options.add("-H", f"localhost:{given['num_proc']}")
    options.add("-H", given["hosts"])
    options.add("--hostfile", given["hostfile"])
    options.add("--min-np", given["min_num_proc"])
    options.add("--max-np", given["max_num_proc"])
    options.add("--slots-per-host", given["slots"])
    options.add("--host-discovery-script", given["host_discovery_script"])
    options.add("--reset-limit", given["reset_limit"] if elastic else None)
    if given["cooldown_range"]:
        options.words += ["--blacklist-cooldown-range", *map(str, given["cooldown_range"])]
    options.add("--start-timeout", given["start_timeout"])
    options.add("--ssh-port", given["ssh_port"])
    options.add("--ssh-identity-file", given["ssh_identity_file"])
    options.add("--output-filename", given["output_filename"])
    options.add("--verbose", bool(given["verbose"]))
    options.add("--network-interfaces", given["network_interfaces"])
    options.add("--controller", "mpi" if given["use_mpi"] else "gloo" if given["use_gloo"] else None)
    return options.words


def _read_cause(path):
    """What hvdrun blames for the end of the job, the rank, and its process; None: not known."""
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        cause = report["job"]["cause"]
        pids = {rank["rank"]: rank["pid"] for rank in report["ranks"]}
        return cause["text"], cause["rank"], pids.get(cause["rank"])
    except (OSError, ValueError):
        return None, None, None  # it did not come so far, or the user has the report


def _failed(status, path, server):
    """The exception of run(), with the worker's own if that one is the cause."""
    text, rank, pid = _read_cause(path)
    raised, trace = server.failure(rank, pid) or (None, None)
    why = f": {text}" if text else "; its messages say why"
    failed = RuntimeError(f"{_FAILED}. hvdrun ended with status {status}{why}" + (f": {raised}" if raised else ""))
    failed.__cause__ = RuntimeError(f"on rank {rank}\n{trace}") if raised else None
    return failed


def run(
    func,
    args=(),
    kwargs=None,
    num_proc=1,
    min_num_proc=None,
    max_num_proc=None,
    slots=None,
    reset_limit=None,
    cooldown_range=None,
    hosts=None,
    hostfile=None,
    host_discovery_script=None,
    start_timeout=None,
    ssh_port=None,
    ssh_identity_file=None,
    disable_cache=None,
    output_filename=None,
    verbose=None,
    use_gloo=None,
    use_mpi=None,
    mpi_args=None,
    network_interface=None,
    network_interfaces=None,
    executable=None,
    np=None,
    min_np=None,
    max_np=None,
):
    """The list of what `func` returned on each rank. In an elastic job, of the first `min_num_proc`
    ranks. RuntimeError: a worker has failed."""
    given = dict(locals())
    for older, newer in _OLDER.items():
        if given[older] is not None:
            warnings.warn(f"{older} is deprecated; use {newer}", DeprecationWarning, stacklevel=2)
            given[newer] = given[older]
    options = _options(given)
    local = _is_local(given["hosts"]) and not (given["hostfile"] or given["host_discovery_script"])
    with TaskServer(func, args, kwargs or {}, local) as server, tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        command = [_launcher(), "--horovod", "bundled", *options, "-x", ADDRESS, "-x", KEY]
        if "HVDRUN_REPORT" not in os.environ:
            command += ["--report", report]
        worker = [given["executable"] or sys.executable, "-m", "horovod.runner.run_task"]
        done = subprocess.run([*command, *worker], env={**os.environ, **server.environment()}, check=False)
        if done.returncode != 0:
            raise _failed(done.returncode, report, server)
        return server.take(given["min_num_proc"] or given["num_proc"])
