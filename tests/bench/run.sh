#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs benchmarks against a release build and prints their tables as Markdown: see README.md.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
all=(engines hvd hvd_hosts hvd_failure torch_horovod start mpi_start mpi_speed memory failure output attach page stacks warm recovery restart torch_store churn slurm_start ssh_start ssh_io stage scaling)

usage() {
    cat <<HELP
usage: tests/bench/run.sh [NAME...] [-- OPTION...]
  NAME     one of: ${all[*]} (default: all of these),
           or versions, which compares two builds (versions -- --old FOLDER)
  OPTION   an option for each of them: see tests/bench/NAME.py --help
Uses the build in \$HVDRUN_BUILD, or else makes one in build/bench. Writes results as JSON to bench/NAME.json there.
HELP
}

names=()
while [[ $# -gt 0 && "$1" != -- ]]; do
    case "$1" in
    -h | --help) usage && exit 0 ;;
    *) names+=("$1") && shift ;;
    esac
done
[[ $# -eq 0 ]] || shift
[[ ${#names[@]} -gt 0 ]] || names=("${all[@]}")
for name in "${names[@]}"; do
    if [[ ! " ${all[*]} versions " == *" $name "* ]]; then
        echo "tests/bench/run.sh: there is no benchmark '$name': see --help" >&2
        exit 2
    fi
done

if [[ -z "${HVDRUN_BUILD-}" ]]; then
    export HVDRUN_BUILD="$root/build/bench"
    cmake -S "$root" -B "$HVDRUN_BUILD" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHVDRUN_TESTS=ON </dev/null >/dev/null
    cmake --build "$HVDRUN_BUILD" --target hvdrun hvdrun-agent hvdrun_ssh workers mpi_workers bench_floors bench_engines -- --quiet </dev/null >&2
    # Users run a copy. What the linker wrote is in smaller pieces in the page cache, and each start takes 0.3 ms more.
    cp -p "$HVDRUN_BUILD/hvdrun" "$HVDRUN_BUILD/hvdrun.copy"
    mv "$HVDRUN_BUILD/hvdrun.copy" "$HVDRUN_BUILD/hvdrun"
fi
mkdir -p "$HVDRUN_BUILD/bench"
failed=()
for name in "${names[@]}"; do
    python3 -B "$here/$name.py" --json "$HVDRUN_BUILD/bench/$name.json" "$@" || failed+=("$name")
done
if [[ ${#failed[@]} -gt 0 ]]; then
    echo "tests/bench/run.sh: failed: ${failed[*]}" >&2
    exit 1
fi
