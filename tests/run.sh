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
  --preset NAME   dev (default), asan, ci, ci-asan or fuzz: see CMakePresets.json
  --nightly       run the long tests (label nightly) as well, and then each fuzz target with libFuzzer
                  for HVDRUN_FUZZ_SECONDS (3600), where clang-14 is installed; hours, which
                  HVDRUN_SOAK_SECONDS (1800), HVDRUN_ENDURANCE_SECONDS (1800) and _JOBS (100) make shorter
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
places=7 # of which most tests take three: see tests/CMakeLists.txt
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
dev | asan | ci | ci-asan | fuzz) ;;
*) wrong_usage "there is no preset '$preset' with tests" ;;
esac
if [[ $nightly == false && $preset != fuzz ]]; then
    selection+=(-LE '^nightly$')
fi

if [[ $install == true ]]; then
    packages_install "${packages_to_build[@]}" "${packages_to_test[@]}"
    packages_install_if_any "${packages_to_test_if_any[@]}"
fi

# Memory that libraries never give back is not ours to fix; the list of them is.
if [[ $preset == *asan || $preset == fuzz || $nightly == true ]]; then
    export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:${UBSAN_OPTIONS-}"
    export LSAN_OPTIONS="suppressions='$root/tests/lint/lsan.supp':print_suppressions=0:${LSAN_OPTIONS-}"
fi

build() { # PRESET TARGET...
    local preset="$1" targets=()
    shift
    if [[ $# -gt 0 ]]; then targets=(--target "$@"); fi
    echo "tests: building (preset $preset)"
    cmake --preset "$preset" </dev/null >/dev/null
    cmake --build "build/$preset" "${targets[@]}" -- --quiet </dev/null
}

run() { # PRESET OPTION...
    local preset="$1"
    shift
    ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --timeout 120 "$@" </dev/null
}

# As many targets at once as there are processors: they wait for nothing.
run_fuzz() { # OPTION...
    cmake --preset fuzz "-DHVDRUN_FUZZ_SECONDS=${HVDRUN_FUZZ_SECONDS:-3600}" </dev/null >/dev/null
    build fuzz fuzz_targets
    echo "tests: fuzzing"
    run fuzz -L '^fuzz$' --parallel "$(nproc)" "$@"
}

cd "$root"
status=0
if [[ $preset == fuzz ]]; then
    run_fuzz "${selection[@]}" || status=$?
    exit "$status"
fi
build "$preset"
echo "tests: running"
run "$preset" --parallel "$places" "${selection[@]}" || status=$?
if [[ $nightly == true && ${#selection[@]} -eq 0 ]]; then
    if command -v clang-14 >/dev/null; then
        run_fuzz || status=$?
    else
        echo "tests: no clang-14, so nothing is fuzzed by libFuzzer" >&2
    fi
fi
exit "$status"
