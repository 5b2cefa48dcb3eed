#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh machine to a running job: installs missing packages (Debian 12, Ubuntu 24.04), builds
# hvdrun in build/, and trains a network on handwritten digits with 4 workers on this machine.
# Exits with the status of that job. A second run repeats only the steps that are still necessary.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
# shellcheck source=cmake/packages.sh
source "$root/cmake/packages.sh"

# cmake_quietly ARGUMENT...: runs cmake, and shows its output only if it fails.
cmake_quietly() {
    local log status=0
    log="$(mktemp)"
    cmake "$@" >"$log" 2>&1 </dev/null || status=$?
    if [[ $status -ne 0 ]]; then
        tail -n 60 "$log" >&2
    fi
    rm -f "$log"
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
echo "quickstart: building hvdrun in build/"
if build_is_elsewhere; then
    rm -rf build/CMakeCache.txt build/CMakeFiles
fi
cmake_quietly --preset release
cmake_quietly --build build

echo "quickstart: hvdrun -np 4 build/examples/train/train"
exec build/hvdrun -np 4 build/examples/train/train
