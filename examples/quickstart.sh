#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh machine to a running job: installs missing packages (Debian 12, Ubuntu 24.04), builds
# hvdrun in build/, and trains a network on handwritten digits with 4 workers on this machine. Builds
# no more than hvdrun and that example, since the rest can wait. Exits with the status of that job. A
# second run repeats only the steps that are still necessary.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
# shellcheck source=cmake/packages.sh
source "$root/cmake/packages.sh"

# cmake_quietly ARGUMENT...: runs cmake, and shows its output only if it fails.
cmake_quietly() {
    local status=0
    cmake "$@" >"$log" 2>&1 </dev/null || status=$?
    if [[ $status -ne 0 ]]; then
        tail -n 60 "$log" >&2
    fi
    return "$status"
}

# Shows how far the build is: on a terminal in one line, elsewhere in about ten. Its input has a line
# `@FINISHED ALL ...` for each step of ninja. Two steps are ninja's look at its own files.
show_progress() {
    local finished all next=0 shown=false
    while read -r finished all _; do
        finished="${finished#@}"
        [[ "$finished" =~ ^[0-9]+$ && "$all" =~ ^[0-9]+$ && "$all" -gt 2 ]] || continue
        if [[ -t 1 ]]; then
            printf '\rquickstart: %d of %d steps ' "$finished" "$all"
            shown=true
        elif [[ "$finished" -ge "$next" || "$finished" -eq "$all" ]]; then
            printf 'quickstart: %d of %d steps\n' "$finished" "$all"
            next=$((finished + all / 10 + 1))
        fi
    done
    if [[ $shown == true ]]; then echo; fi
}

# build TARGET...: builds these, and shows the progress.
build() {
    local status=0
    NINJA_STATUS='@%f %t ' cmake --build build --target "$@" </dev/null 2>&1 | tee "$log" | show_progress || status=$?
    if [[ $status -ne 0 ]]; then
        grep -v '^@' "$log" | tail -n 60 >&2
    fi
    return "$status"
}

# CMake refuses a build folder that was made for another source folder (a moved or copied tree).
build_is_elsewhere() {
    local cache="$root/build/CMakeCache.txt"
    [[ -f "$cache" ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache"
}

packages_install "${packages_to_build[@]}"
packages_install_if_any "${packages_to_build_if_any[@]}"

cd "$root"
echo "quickstart: building hvdrun and the first example in build/"
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
if build_is_elsewhere; then
    rm -rf build/CMakeCache.txt build/CMakeFiles
fi
cmake_quietly --preset release
build hvdrun train
rm -f "$log"

echo "quickstart: 'cmake --build build' builds the rest: man pages, completions, the other examples"
echo "quickstart: hvdrun -np 4 build/examples/train/train"
exec build/hvdrun -np 4 build/examples/train/train
