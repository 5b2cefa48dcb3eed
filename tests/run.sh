#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the tests need, configures, builds, and runs the tests through ctest, whose summary
# closes the output. See --help.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
# shellcheck source=cmake/packages.sh
source "$root/cmake/packages.sh"

usage() {
    cat <<'HELP'
usage: tests/run.sh [options]
  --preset NAME   dev (default), asan, ci or fuzz: see CMakePresets.json. ci is what a change must pass: two
                  builds without warnings, where each test runs once, with or without sanitizers
  --nightly       run the long tests (label nightly) as well, and then each fuzz target with libFuzzer
                  for HVDRUN_FUZZ_SECONDS (3600), where clang-14 is installed; hours, which
                  HVDRUN_SOAK_SECONDS (1800), HVDRUN_ENDURANCE_SECONDS (1800) and _JOBS (100) make shorter
  -R REGEX        only the tests whose name matches
  -E REGEX        not the tests whose name matches
  -L LABEL        only the tests with a label that matches
  --again         only the tests that failed in the last run, one after the other
  --no-install    install nothing
  --help          this text

Unless you name tests with -R or -L, some are omitted: the dearest (label long), which the preset ci and
--nightly run; the tests of the simulated hosts themselves (label harness), which run when a commit or the
working tree has changed tests/rig, and with --nightly.
HELP
}

wrong_usage() { # MESSAGE
    echo "tests/run.sh: $1: see --help" >&2
    exit 2
}

preset=dev
nightly=false
install=true
named=false
places=0
selection=()
while [[ $# -gt 0 ]]; do
    case "$1" in
    --preset | -R | -E | -L)
        [[ $# -ge 2 ]] || wrong_usage "$1 needs a value"
        if [[ "$1" == --preset ]]; then preset="$2"; else selection+=("$1" "$2"); fi
        if [[ "$1" == -[RL] ]]; then named=true; fi
        shift 2
        ;;
    --preset=*) preset="${1#*=}" && shift ;;
    --nightly) nightly=true && shift ;;
    --again) selection+=(--rerun-failed) && named=true && places=1 && shift ;;
    --no-install) install=false && shift ;;
    -h | --help) usage && exit 0 ;;
    *) wrong_usage "unknown option '$1'" ;;
    esac
done
case "$preset" in
dev | asan | ci | fuzz) ;;
*) wrong_usage "'$preset' is not a preset with tests" ;;
esac

# Whether the working tree or the commits since main (on main: the last one) change what the rig is made of.
# Without git nobody knows, so yes.
rig_has_changed() {
    local base head
    git -C "$root" rev-parse --verify --quiet HEAD >/dev/null || return 0
    head="$(git -C "$root" rev-parse HEAD)"
    base="$(git -C "$root" merge-base HEAD origin/main 2>/dev/null ||
        git -C "$root" merge-base HEAD main 2>/dev/null)" || base="$head"
    if [[ "$base" == "$head" ]]; then
        base="$(git -C "$root" rev-parse --verify --quiet HEAD~1)" || return 0
    fi
    ! git -C "$root" diff --quiet "$base" -- tests/rig tests/flow/{hosts,slurm,test_rig,test_slurm_rig}.py
}

# A test takes one to four places (tests/CMakeLists.txt). Most wait half of their time, except on a machine where a
# process costs more than 4 ms, as in some virtual ones: there the processors are the limit.
count_places() {
    local begun="${EPOCHREALTIME/[.,]/}" times
    for times in {1..50}; do /bin/true; done
    if [[ $((${EPOCHREALTIME/[.,]/} - begun)) -gt $((times * 4000)) ]]; then
        echo $((3 * $(nproc)))
    else
        echo $((6 * $(nproc)))
    fi
}

# A version manager's python3 is a script, which costs several times what the interpreter costs.
if [[ "$(head -c 2 "$(command -v python3)")" == "#!" ]]; then
    PATH="$(python3 -c 'import os, sys; print(os.path.dirname(os.path.realpath(sys.executable)))'):$PATH"
fi

omitted=()
if [[ $nightly == true ]]; then
    export HVDRUN_NIGHTLY=1 # for single tests that say so
else
    omitted+=(nightly)
    if [[ $named == false ]]; then
        if [[ $preset == dev ]]; then omitted+=(long); fi
        rig_has_changed || omitted+=(harness)
    fi
fi
if [[ ${#omitted[@]} -gt 0 && $preset != fuzz ]]; then
    selection+=(-LE "^($(IFS='|' && echo "${omitted[*]}"))\$")
fi

if [[ $install == true ]]; then
    packages_install "${packages_to_build[@]}" "${packages_to_test[@]}"
    packages_install_if_any "${packages_to_build_if_any[@]}" "${packages_to_test_if_any[@]}"
    [[ -d /run/systemd/system ]] || packages_install_if_any "${packages_to_test_without_systemd[@]}"
fi

# Memory that libraries never give back is not ours to fix; the list of them is.
if [[ $preset != dev || $nightly == true ]]; then
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

run() { # FOLDER OPTION...
    local folder="$1"
    shift
    ctest --test-dir "build/$folder" --output-on-failure --no-tests=error --timeout 300 "$@" </dev/null
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
if [[ $preset == ci ]]; then
    # One ctest for both builds: neither waits for the last tests of the other.
    build ci-asan
    mkdir -p build/ci-both
    printf 'subdirs("%s/build/ci" "%s/build/ci-asan")\n' "$root" "$root" >build/ci-both/CTestTestfile.cmake
    preset=ci-both
fi
[[ $places -gt 0 ]] || places="$(count_places)"
echo "tests: running, in $places places"
run "$preset" --parallel "$places" "${selection[@]}" || status=$?
if [[ $nightly == true && ${#selection[@]} -eq 0 ]]; then
    if command -v clang-14 >/dev/null; then
        run_fuzz || status=$?
    else
        echo "tests: clang-14 is not installed, so libFuzzer does not run" >&2
    fi
fi
exit "$status"
