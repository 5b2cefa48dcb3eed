#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs shellcheck over every shell script of the tree: shell.sh [ROOT]. Status 77: shellcheck is missing.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="${1:-$here/../..}"

if ! command -v shellcheck >/dev/null; then
    echo "skipped: shellcheck is not installed"
    exit 77
fi

list="$(python3 - "$here" "$root" <<'PYTHON'
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import tree

source = tree.Tree(sys.argv[2])
for name in source.files:
    first = source.text(name).partition("\n")[0] if "." not in name.rpartition("/")[2] else ""
    if name.endswith((".sh", ".bash")) or (first.startswith("#!") and first.endswith(("sh", "bash"))):
        print(name)
PYTHON
)"

cd "$root"
if [[ -z "$list" ]]; then
    echo "0 files: nothing found"
    exit 0
fi
mapfile -t scripts <<<"$list"
shellcheck -x "${scripts[@]}"
echo "${#scripts[@]} files: nothing found"
