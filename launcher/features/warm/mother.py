# SPDX-License-Identifier: Apache-2.0
"""The mother of warm ranks.

An interpreter that has imported what a script imports, and forks ranks that go on with the script. The agent starts
her (mother_agent.c): the text of this file is her stdin, and her argument is the number of her end of a socket.

She must stay fit for a fork: one thread, no GPU, no socket, no child. A module that makes her unfit ends her; the
agent starts another one that leaves it out. She never runs the script, and computes nothing.

Messages are datagrams of fields that end with NUL.
  to her:  "setup" agent kind target modules... "" names... "" (module instead)...
           "batch" count first (and descriptors, see take_batch); first "1": the ranks before it run
           "rest"; later "wake": another job asks whether she is fit
  by her:  "ready" seconds modules    "bad" module reason instead    "stale" file    "forked" pid...    "unfit" reason
"""
import sys


class Unfit(Exception):
    pass


class Mother:

    def __init__(self, fd):
        import _socket
        import os
        self.os = os
        self.socket = _socket.socket(fileno=fd)
        os.set_inheritable(fd, False)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        if null != 0:
            os.close(null)
        self.files = {}  # path: what stat() said of it
        self.read = set()  # variables of ranks that a module wanted to know
        self.has_forked = False  # since the last look at what the script imports

    def say(self, *fields):
        self.socket.send(b"".join(self.os.fsencode(str(field)) + b"\0" for field in fields))

    def hear(self, room, descriptors):
        """Fields and descriptors of the next message; ends at the end of the agent."""
        import _socket
        ancillary = _socket.CMSG_SPACE(4 * descriptors)
        data, control, flags, _ = self.socket.recvmsg(room, ancillary, _socket.MSG_CMSG_CLOEXEC)
        if not data or flags & (_socket.MSG_TRUNC | _socket.MSG_CTRUNC):
            self.os._exit(0)
        numbers = b"".join(part for level, kind, part in control if kind == _socket.SCM_RIGHTS)
        return [self.os.fsdecode(field) for field in data.split(b"\0")[:-1]], memoryview(numbers).cast("i").tolist()

    # What she imports

    def set_up(self):
        fields, _ = self.hear(1 << 20, 0)
        _, agent, self.kind, self.target, *rest = fields
        self.agent = int(agent)
        self.folder = self.os.getcwd()
        if self.kind == "script" and not self.is_source():
            raise Unfit("the script is a folder or an archive")
        end = rest.index("")
        modules, rest = rest[:end], rest[end + 1:]
        end = rest.index("")
        self.names, rest = {self.os.fsencode(name) for name in rest[:end]}, rest[end + 1:]
        self.told = {module: instead.split(",") for module, instead in zip(rest[::2], rest[1::2])}
        self.first = sys.path[0] = self.first_place(sys.path[0])
        sys.argv = [self.target if self.kind == "script" else "-" + self.kind]
        self.found = None if modules else self.imports_of_target()
        return modules or self.found

    def is_source(self):
        for hook in sys.path_hooks:
            try:
                hook(self.target)
                return False
            except ImportError:
                pass
        return not self.target.endswith(".pyc")

    def first_place(self, known):
        """sys.path[0], as the interpreter sets it for the script."""
        safe = getattr(sys.flags, "safe_path", False) or sys.flags.isolated
        if safe:
            return known
        path = self.os.path
        return {"script": path.dirname(path.realpath(self.target)), "m": self.folder, "c": ""}[self.kind]

    def local_file(self, name, folders=None):
        """The file of a module of the script's own folder, which must be read anew by each rank; "": it has none that
        can be read; None: it is elsewhere."""
        import importlib.machinery
        folders = folders or [self.first or self.folder]
        spec = importlib.machinery.PathFinder.find_spec(name.partition(".")[0], folders)
        if spec is None:
            return None
        parts = name.split(".")
        for count in range(2, len(parts) + 1):
            places = spec.submodule_search_locations
            spec = places and importlib.machinery.PathFinder.find_spec(".".join(parts[:count]), places)
            if not spec:
                return ""
        return spec.origin if spec.origin and spec.origin.endswith(".py") else ""

    def imports_of_target(self):
        """Names of modules that the script imports at its top level, also by way of modules of its own folder."""
        import ast
        found, seen = [], set()

        def prepares(node):
            """It may change what an import after it does."""
            defines = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            return not defines and any(
                isinstance(part, ast.Attribute) and (
                    part.attr in ("environ", "environb", "putenv", "patch_all")
                    or part.attr == "path" and isinstance(part.value, ast.Name) and part.value.id == "sys")
                for part in ast.walk(node))

        def walk(statements):
            for node in statements:
                if prepares(node):
                    return
                if isinstance(node, ast.Import):
                    for alias in node.names:
                        add(alias.name)
                elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module != "__future__":
                    add(node.module)
                    for alias in node.names:
                        add(node.module + "." + alias.name, maybe=True)
                elif isinstance(node, ast.Try):
                    walk(node.body)

        def add(name, maybe=False):
            if name in seen or len(seen) > 2000 or name.endswith("*"):
                return
            seen.add(name)
            file = self.local_file(name)
            if file is None:
                found.append("?" + name if maybe else name)
            elif file:
                read(file)

        def read(file):
            try:
                with open(file, "rb") as source:
                    walk(ast.parse(source.read()).body)
            except (OSError, SyntaxError, ValueError, RecursionError):
                pass  # the rank says what is wrong with it

        if self.kind == "script":
            read(self.target)
        elif self.kind == "m":
            file = self.local_file(self.target)
            if file is None:  # an installed one: its package, and what it imports
                package = self.target.rpartition(".")[0]
                found += [package] if package else []
                file = self.local_file(self.target, sys.path)
            read(file) if file else None
        else:
            try:
                walk(ast.parse(self.target).body)
            except (SyntaxError, ValueError, RecursionError):
                pass
        return found

    def watch_environment(self):
        read, names = self.read, self.names

        class Watched(dict):

            def __getitem__(self, name):
                if name in names:
                    read.add(name)
                return dict.__getitem__(self, name)

        self.set_data(Watched(self.os.environ._data))

    def set_data(self, data):
        self.os.environ._data = self.os.environb._data = data

    def descriptors(self):
        """Those that a fork may not share, by number."""
        os, found = self.os, {}
        for name in os.listdir("/proc/self/fd"):
            try:
                what = os.readlink("/proc/self/fd/" + name)
                with open("/proc/self/fdinfo/" + name) as info:
                    flags = int(next(line for line in info if line.startswith("flags:")).split()[1], 8)
            except OSError:
                continue  # that of the list itself
            # the offset of a file would be that of all ranks
            if what not in ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random") and not flags & os.O_DIRECTORY:
                found[int(name)] = what
        return found

    def get_limits(self):
        import resource
        return [resource.getrlimit(number) for number in range(resource.RLIM_NLIMITS if hasattr(
            resource, "RLIM_NLIMITS") else 15)]

    def shared_memory(self):
        """Places of memory that a fork shares and that can be written."""
        with open("/proc/self/maps") as maps:
            return {line.split()[0] for line in maps if line.split()[1][1::2] == "ws"}

    def wait_for(self, child):
        try:
            self.os.waitpid(child, 0)
        except ChildProcessError:
            pass  # a module ignores SIGCHLD: the child has ended

    def threads(self):
        os = self.os
        if len(os.listdir("/proc/self/task")) > 1:  # a pool may know what to do at a fork
            child = os.fork()
            if child == 0:
                os._exit(0)
            self.wait_for(child)
        return len(os.listdir("/proc/self/task"))

    def check(self):
        """Raises Unfit if ranks could not be forked from what is there now."""
        os = self.os
        if self.threads() > 1:
            raise Unfit("it starts a thread")
        try:
            os.waitpid(-1, os.WNOHANG)
            raise Unfit("it starts a process")
        except ChildProcessError:
            pass
        if "mpi4py.MPI" in sys.modules:
            raise Unfit("it begins MPI")
        if self.get_limits() != self.limits:
            raise Unfit("it changes a limit")
        if self.shared_memory() - self.mapped:
            raise Unfit("it shares memory")
        for number, what in self.descriptors().items():
            if number not in self.known:
                gpu = what.startswith(("/dev/nvidia", "/dev/kfd", "/dev/dri"))
                raise Unfit("it uses a GPU" if gpu else "it opens a socket" if what.startswith("socket:") else
                            "it opens " + what)
        self.check_reads()

    def check_reads(self):
        if self.read:
            raise Unfit("it reads " + self.os.fsdecode(sorted(self.read)[0]) + ", which differs between ranks or shells")

    def import_one(self, name):
        import importlib
        maybe, name = name.startswith("?"), name.lstrip("?")
        parent, _, last = name.rpartition(".")
        if maybe and hasattr(sys.modules.get(parent), last):
            return
        try:
            importlib.import_module(name)
        except BaseException as failure:  # SystemExit, too
            if maybe and isinstance(failure, ModuleNotFoundError):
                return
            self.check_reads()
            raise Unfit("it cannot be imported (%s: %s)" % (type(failure).__name__, failure)) from None

    def list_file(self):
        """Of what made a mother of this user unfit on this host."""
        environ, path = self.os.environ, self.os.path
        cache = environ.get("XDG_CACHE_HOME", "")
        if not cache.startswith("/"):
            cache = path.join(environ.get("HOME", ""), ".cache")
        if not cache.startswith("/"):
            return path.devnull
        return path.join(cache, "hvdrun", "left-out." + self.os.uname().nodename)

    def left_out(self):
        """By module: its file, the file's time, and the modules to import in its place."""
        try:
            with open(self.list_file(), encoding="utf-8", errors="surrogateescape") as lines:
                rows = [line.rstrip("\n").split("\t") for line in lines]
        except OSError:
            return {}
        return {row[1]: row[2:4] + [row[5].split(",")] for row in rows if len(row) == 6 and row[0] == sys.executable}

    def leave_out(self, name, reason, instead):
        """Told to the agent, and written down for the next job, until the module is another one."""
        origin, when = self.origin(name)
        if "\t" not in reason and "\n" not in reason and not reason.startswith("it cannot"):
            try:
                self.os.makedirs(self.os.path.dirname(self.list_file()), 0o700, exist_ok=True)
                with open(self.list_file(), "a", encoding="utf-8", errors="surrogateescape") as lines:
                    lines.write("\t".join([sys.executable, name, origin, when, reason, ",".join(instead)]) + "\n")
            except OSError:
                pass
        self.say("bad", name, reason, ",".join(instead))
        self.os.killpg(0, 9)  # what the module has started, too

    def origin(self, name):
        import importlib.machinery
        origin = ""
        try:
            spec = importlib.machinery.PathFinder.find_spec(name.partition(".")[0])
            origin = spec and spec.origin or ""
            return origin, str(self.os.stat(origin).st_mtime_ns)
        except Exception:  # a module may have brought a finder of its own
            return origin, ""

    def import_all(self, modules, left_out):
        """Imports them one by one. mpi4py begins MPI when it is imported, so only ranks may do that."""
        queue, done = list(modules), {"mpi4py"}
        while queue:
            name = queue.pop(0)
            bare = name.lstrip("?")
            if bare in done or bare.partition(".")[0] in done & {"mpi4py"}:
                continue
            done.add(bare)
            top = bare.partition(".")[0]
            row = left_out.get(bare)
            if row is not None and list(self.origin(bare)) == row[:2]:
                self.told[bare] = row[2]
            if bare in self.told:
                queue[:0] = [other for other in self.told[bare] if other]
                continue
            before = set(sys.modules)
            try:
                self.import_one(name)
                self.check()
            except Unfit as unfit:
                new = {other.partition(".")[0] for other in set(sys.modules) - before}
                self.leave_out(bare, str(unfit), sorted(
                    other for other in new - {top} if self.origin(other)[0].endswith("__init__.py")))

    def remember_files(self):
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if isinstance(path, str) and path not in self.files:
                self.files[path] = self.stat(path)
        self.origins = {name: self.origin(name) for name in list(sys.modules) if "." not in name}

    def stat(self, path):
        try:
            found = self.os.stat(path)
            return found.st_mtime_ns, found.st_size, found.st_ino
        except (OSError, ValueError):
            return None

    # Her ranks

    def serve(self):
        """Returns in a rank, with what it is."""
        import _ctypes
        import ctypes
        import gc
        import time
        begin = time.monotonic()
        self.known, self.mapped, self.limits = self.descriptors(), self.shared_memory(), self.get_limits()
        modules = self.set_up()
        self.check()  # what is there before the first import is the fault of no module
        self.watch_environment()
        before = dict(self.os.environ._data)
        self.import_all(modules, self.left_out())
        after = dict(self.os.environ._data)
        self.changes = {name: after.get(name) for name in {*before, *after} if before.get(name) != after.get(name)}
        self.set_data(after)
        self.remember_files()
        self.places = self.look_at_places()
        self.libc = ctypes.CDLL(None)
        for stream in (sys.stdout, sys.stderr):
            getattr(stream, "flush", int)()
        self.libc.fflush(None)
        gc.collect()
        gc.freeze()
        self.say("ready", "%.1f" % (time.monotonic() - begin), len(sys.modules))
        while True:
            fields, descriptors = self.hear(4096, 253)
            if fields[0] == "rest":
                self.rest()
                continue
            if fields[0] == "wake":
                self.check_files()
                self.check_places()
                self.check_imports()
                self.say("ready", "0", len(sys.modules))
                continue
            if fields[2] == "1":
                self.check_files()
                if self.has_forked:
                    self.check_imports()
            rank = self.take_batch(int(fields[1]), descriptors)
            if rank is not None:
                return rank

    def check_files(self):
        for path, known in self.files.items():
            if self.stat(path) != known:
                self.is_stale(path)

    def is_stale(self, path):
        self.say("stale", path)
        self.os._exit(0)

    def rest(self):
        """Nobody reads what she prints from now on."""
        os = self.os
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.close(null)

    def look_at_places(self):
        """What decides what an interpreter finds when it starts: itself, the environment, and site-packages with its
        .pth."""
        path = self.os.path
        folders = [name for name in sys.path[1:] if path.basename(name) in ("site-packages", "dist-packages")]
        homes = [path.dirname(path.dirname(sys.executable)), path.dirname(sys.executable)]
        configurations = [path.join(home, "pyvenv.cfg") for home in homes]
        return {name: self.stat(name) for name in folders + configurations + [sys.executable]}

    def check_places(self):
        """Also whether a library or her folder was replaced, even by one of the same name: she has the old one."""
        for path, known in self.look_at_places().items():
            if self.places.get(path) != known:
                self.is_stale(path)
        if not self.is_same_file(".", self.folder):
            self.is_stale(self.folder)
        with open("/proc/self/maps") as maps:
            for line in maps:
                path = line.rstrip("\n").partition("/")[2]
                if path.endswith(" (deleted)") and not path.startswith(("dev/", "memfd:", "SYSV", "anon_hugepage")):
                    self.is_stale("/" + path[:-len(" (deleted)")])

    def is_same_file(self, one, other):
        try:
            return self.os.path.samefile(one, other)
        except OSError:
            return False

    def check_imports(self):
        """Whether an interpreter that begins now would import the same: the script may prepare its imports by now, and
        another module of the same name may come first."""
        import importlib
        self.has_forked = False
        if self.first_place(self.first) != self.first:  # a link leads elsewhere
            self.is_stale(self.target)
        try:
            importlib.invalidate_caches()
            found = self.found and self.imports_of_target()
        except Exception:  # a module may have brought a finder of its own
            self.is_stale("the place of a module")
        if self.found and not set(found).issuperset(self.found):
            self.is_stale("what the script imports")
        for name, known in self.origins.items():
            if self.origin(name) != known:
                self.is_stale("the place of " + name)

    def take_batch(self, count, descriptors):
        """One process forks all ranks, and ends: so they become children of the agent. A rank waits for a byte of
        the agent, which means that it knows the rank and that this process has gone."""
        os = self.os
        payload, go, *theirs = descriptors
        with open(payload, "rb", closefd=False) as file:
            fields = iter(file.read().split(b"\0"))
        ranks = [Rank(self, fields, theirs) for _ in range(count)]
        read_end, write_end = os.pipe()
        brood = os.fork()
        if brood == 0:
            pids = []
            for rank in ranks:
                try:
                    pid = os.fork()
                except OSError:
                    pid = 0
                else:
                    if pid == 0:
                        os.setsid()
                        for other in {read_end, payload, self.socket.detach(), *descriptors} - {*rank.streams, go}:
                            os.close(other)
                        rank.go = go
                        os.close(write_end)  # at last: she reads until its end
                        return rank
                pids.append(b"%d" % pid)
            os.write(write_end, b"\0".join(pids) + b"\0")
            os._exit(0)
        os.close(write_end)
        with open(read_end, "rb") as pipe:
            pids = pipe.read()
        self.wait_for(brood)
        for descriptor in descriptors:
            os.close(descriptor)
        self.socket.send(b"forked\0" + pids)
        self.has_forked = True
        return None


class Rank:

    by_line = ("stderr",) if sys.version_info >= (3, 9) else ()

    def __init__(self, mother, fields, descriptors):
        self.mother = mother
        self.cpus = [int(cpu) for cpu in next(fields).split(b",") if cpu]
        self.keep = int(next(fields))  # the number that one more descriptor must have; 0: there is none
        self.terminal = next(fields) == b"1"
        self.name = next(fields)  # of the process; empty: it is right already
        self.limits = [(int(next(fields)), int(next(fields))) for _ in range(int(next(fields)))]
        self.skip = int(next(fields))  # arguments before those of the script
        self.arguments = [next(fields) for _ in range(int(next(fields)))]
        self.environment = [next(fields) for _ in range(int(next(fields)))]
        self.streams = [descriptors.pop(0) for _ in range(4 if self.keep else 3)]

    def begin(self):
        """All that exec() and the interpreter's own start would have done."""
        os = self.mother.os
        self.wait()
        if self.terminal:
            import fcntl
            import termios
            fcntl.ioctl(self.streams[0], termios.TIOCSCTTY, 0)
        self.place_descriptors()
        self.set_limits()
        if self.cpus:
            os.sched_setaffinity(0, self.cpus)
        self.set_environment()
        self.show_arguments()
        if self.name:
            self.mother.libc.prctl(15, self.name, 0, 0, 0)  # PR_SET_NAME
        self.open_streams()
        self.seed()

    def wait(self):
        os, libc = self.mother.os, self.mother.libc
        if os.read(self.go, 1) != b"g" or os.getppid() != self.mother.agent:
            os._exit(1)
        libc.prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG
        libc.prctl(0x59616D61, self.mother.agent, 0, 0, 0)  # PR_SET_PTRACER: a debugger is the agent's child
        if os.getppid() != self.mother.agent:
            os._exit(1)

    def place_descriptors(self):
        import fcntl
        os = self.mother.os
        numbers = [0, 1, 2, self.keep] if self.keep else [0, 1, 2]
        beyond = max(numbers) + 1
        moved = [fcntl.fcntl(stream, fcntl.F_DUPFD_CLOEXEC, beyond) for stream in self.streams]
        for number in {*self.streams, self.go}:
            os.close(number)
        for number, descriptor in zip(numbers, moved):
            os.dup2(descriptor, number)
            os.close(descriptor)

    def set_limits(self):
        import resource
        for what, soft in self.limits:
            hard = resource.getrlimit(what)[1]
            soft = resource.RLIM_INFINITY if soft >= 1 << 63 else soft
            if hard != resource.RLIM_INFINITY and (soft == resource.RLIM_INFINITY or soft > hard):
                soft = hard
            resource.setrlimit(what, (soft, hard))

    def set_environment(self):
        wanted = dict(pair.partition(b"=")[::2] for pair in self.environment)
        for name, value in self.mother.changes.items():  # by an import, as each rank would have done
            wanted.pop(name, None)
            if value is not None:
                wanted[name] = value
        environ = self.mother.os.environb
        zone = environ.get(b"TZ")
        for name in set(environ) - set(wanted):
            del environ[name]
        for name, value in wanted.items():
            if environ.get(name) != value:
                environ[name] = value
        if environ.get(b"TZ") != zone:
            import time
            time.tzset()

    def show_arguments(self):
        """ps and /proc show the arguments and the environment of this rank (prctl(2), PR_SET_MM_MAP)."""
        import ctypes
        libc = self.mother.libc
        sys.orig_argv = [self.mother.os.fsdecode(argument) for argument in self.arguments]
        with open("/proc/self/stat", "rb") as file:
            stat = file.read().rpartition(b")")[2].split()
        words = b"".join(argument + b"\0" for argument in self.arguments)
        both = words + b"".join(pair + b"\0" for pair in self.environment)
        self.shown = ctypes.create_string_buffer(both, len(both))
        start = ctypes.addressof(self.shown)
        libc.sbrk.restype = ctypes.c_void_p
        code, end_code, stack = (int(stat[i]) for i in (23, 24, 25))
        data, end_data, heap = (int(stat[i]) for i in (42, 43, 44))
        places = (code, end_code, data, end_data, heap, libc.sbrk(0), stack, start, start + len(words),
                  start + len(words), start + len(both), 0)
        layout = (ctypes.c_uint64 * 13)(*places, 0xffffffff << 32)
        libc.prctl(35, 14, ctypes.byref(layout), ctypes.c_ulong(ctypes.sizeof(layout)), 0)

    def open_streams(self):
        import io
        os, old = self.mother.os, sys.__stdin__
        for number, name in ((1, "stdout"), (2, "stderr")):
            stream = getattr(sys, "__%s__" % name)  # a module may have kept it: it is the same one in a rank
            try:
                if not stream.write_through:
                    stream.reconfigure(line_buffering=os.isatty(number) or name in self.by_line)
            except (AttributeError, ValueError):
                pass  # a module has taken it apart, as it would have done here
        raw = open(0, "rb", closefd=False)
        raw.raw.name = "<stdin>"
        stdin = io.TextIOWrapper(raw, encoding=old.encoding, errors=old.errors, write_through=old.write_through,
                                 line_buffering=raw.isatty() and not old.write_through)
        stdin.mode = "r"
        if sys.stdin is old:
            sys.stdin = stdin
        sys.__stdin__ = stdin

    def seed(self):
        """What is random in an interpreter that has just begun. `random` itself does it at a fork."""
        modules = sys.modules
        if "numpy.random" in modules:
            modules["numpy.random"].seed()
        if "torch" in modules:
            modules["torch"].default_generator.seed()
        if "multiprocessing.process" in modules:
            process = modules["multiprocessing.process"].current_process()
            process.authkey = self.mother.os.urandom(32)

    def prepare(self):
        """A new __main__; returns (code, its names), or the name of a module of python -m."""
        os, mother = self.mother.os, self.mother
        rest = sys.orig_argv[self.skip:]
        for finder in sys.path_importer_cache.values():
            try:
                finder.invalidate_caches()
            except Exception:  # it is None, has no caches, or a module has brought it
                pass
        main = type(sys)("__main__")
        self.old_main, sys.modules["__main__"] = sys.modules["__main__"], main
        names = main.__dict__
        names.update(__annotations__={}, __builtins__=sys.modules["builtins"])
        sys.argv = [mother.target if mother.kind == "script" else "-" + mother.kind] + rest
        if mother.kind == "m":
            return mother.target, None
        if mother.kind == "c":
            return compile(mother.target + "\n", "<string>", "exec", dont_inherit=True), names
        from importlib.machinery import SourceFileLoader
        path, full = mother.target, os.path.join(mother.folder, mother.target)
        try:
            with open(full, "rb") as file:
                source = file.read()
        except OSError as error:
            print("%s: can't open file %r: [Errno %d] %s" % (sys.orig_argv[0], full, error.errno, error.strerror),
                  file=sys.stderr)
            sys.exit(2)
        if sys.version_info >= (3, 9):
            path = full
        names.update(__file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path))
        return compile(source, path, "exec", dont_inherit=True), names

    def report(self, failure, depth):
        """As the interpreter does for an exception that nobody has caught, without the frames of this file."""
        trace = failure.__traceback__
        for _ in range(depth):
            trace = trace and trace.tb_next
        failure = failure.with_traceback(trace)
        sys.last_type, sys.last_value, sys.last_traceback = type(failure), failure, trace
        sys.last_exc = failure
        sys.excepthook(type(failure), failure, trace)
        if isinstance(failure, KeyboardInterrupt):
            self.end_by_interrupt()

    def end_by_interrupt(self):
        import atexit
        import signal
        import threading
        threading._shutdown()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        self.mother.os.kill(self.mother.os.getpid(), signal.SIGINT)


mother = Mother(int(sys.argv[1]))
try:
    rank = mother.serve()
except Unfit as unfit:
    mother.say("unfit", unfit)
    mother.os._exit(0)
rank.begin()
depth = 2  # frames from here to what the interpreter itself would begin with
try:
    code, names = rank.prepare()
    depth = 1
    if names is None:
        import runpy
        runpy._run_module_as_main(code)
    else:
        exec(code, names)
except SystemExit:
    raise
except BaseException as failure:
    rank.report(failure, depth)
    sys.exit(1)
