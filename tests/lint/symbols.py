# SPDX-License-Identifier: Apache-2.0
"""Which file calls which, read from the symbol tables of the objects in a build folder."""
import collections
import subprocess

SHARED = ("runtime/base/", "runtime/include/", "runtime/line/")  # the launcher links with these as well


def objects(root, build):
    """{object: source} of LAYER/CMakeFiles/TARGET.dir/ROOM/NAME.c.o or .cc.o, if the source is still there;
    a source that several targets compile is there once."""
    found = {}
    for layer in ("launcher", "runtime"):
        for folder in sorted((build / layer).glob("CMakeFiles/*.dir")):
            for path in sorted((*folder.rglob("*.c.o"), *folder.rglob("*.cc.o"))):
                source = f"{layer}/{path.relative_to(folder).with_suffix('').as_posix()}"
                if (root / source).is_file():
                    found.setdefault(source, path)
    return {str(path): source for source, path in found.items()}


def tables(sources):
    """{name: files that define it} and {file: names that it needs}, of all global names."""
    defined, needed = collections.defaultdict(set), collections.defaultdict(set)
    if not sources:
        return defined, needed
    listing = subprocess.run(["nm", "-A", "-g", "-P", *sources], check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        path, _, entry = line.partition(": ")
        name, kind = entry.split()[:2]
        if kind in "Uvw":
            needed[sources[path]].add(name)
        else:
            defined[name].add(sources[path])
    return defined, needed


def may_link(source, other):
    """libhvd and the launcher are programs of their own, which may have functions of one name."""
    return source.split("/")[0] == other.split("/")[0] or other.startswith(SHARED)


def calls(root, build):
    """{(file, file): names}: the first uses functions or variables that the second defines."""
    defined, needed = tables(objects(root, build))
    edges = collections.defaultdict(set)
    for source, names in needed.items():
        for name in names:
            for other in defined[name] if name in defined else ():
                if other != source and may_link(source, other):
                    edges[source, other].add(name)
    return edges
