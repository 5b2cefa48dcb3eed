#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the tests need, configures, builds, and runs everything through ctest, whose summary
# closes the output. See --help.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
# shellcheck source=cmake/packages.sh
source "$root/cmake/packages.sh"

usage() {
    cat <<'HELP'
usage: tests/run.sh [options]
  --preset NAME   dev (default), asan, ci or ci-asan: see CMakePresets.json
  --nightly       run the long tests (label nightly) as well
  -R REGEX        only the tests whose name matches
  -E REGEX        not the tests whose name matches
  -L LABEL        only the tests with a label that matches
  --again         only the tests that failed in the last run, one after the other
  --no-install    install nothing
  --help          this text
HELP
}

wrong_usage() { # MESSAGE
    echo "tests/run.sh: $1: see --help" >&2
    exit 2
}

preset=dev
nightly=false
install=true
places=5 # of which most tests take two: see tests/CMakeLists.txt
selection=()
while [[ $# -gt 0 ]]; do
    case "$1" in
    --preset | -R | -E | -L)
        [[ $# -ge 2 ]] || wrong_usage "$1 needs a value"
        if [[ "$1" == --preset ]]; then preset="$2"; else selection+=("$1" "$2"); fi
        shift 2
        ;;
    --preset=*) preset="${1#*=}" && shift ;;
    --nightly) nightly=true && shift ;;
    --again) selection+=(--rerun-failed) && places=1 && shift ;;
    --no-install) install=false && shift ;;
    -h | --help) usage && exit 0 ;;
    *) wrong_usage "unknown option '$1'" ;;
    esac
done
case "$preset" in
dev | asan | ci | ci-asan) ;;
*) wrong_usage "there is no preset '$preset' with tests" ;;
esac
if [[ $nightly == false ]]; then
    selection+=(-LE '^nightly$')
fi

if [[ $install == true ]]; then
    packages_install "${packages_to_build[@]}" "${packages_to_test[@]}"
    packages_install_if_any "${packages_to_test_if_any[@]}"
fi

# Memory that libraries never give back is not ours to fix; the list of them is.
if [[ $preset == *asan ]]; then
    export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:${UBSAN_OPTIONS-}"
    export LSAN_OPTIONS="suppressions='$root/tests/lint/lsan.supp':print_suppressions=0:${LSAN_OPTIONS-}"
fi

cd "$root"
echo "tests: building (preset $preset)"
cmake --preset "$preset" </dev/null >/dev/null
cmake --build "build/$preset" -- --quiet </dev/null

echo "tests: running"
exec ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --parallel "$places" \
    --timeout 120 "${selection[@]}" </dev/null
