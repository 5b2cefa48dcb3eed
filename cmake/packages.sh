# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The packages that hvdrun needs on Debian 12 and Ubuntu 24.04, and functions that install them.
# examples/quickstart.sh and tests/run.sh source this file. It only defines lists and functions.

# shellcheck disable=SC2034 # used by the scripts that source this
packages_to_build=(
    build-essential cmake ninja-build pkg-config
    libevent-dev libpmix-dev libhwloc-dev libinih-dev libyaml-dev libjansson-dev libssl-dev libssh2-1-dev
    libprotobuf-c-dev protobuf-c-compiler libncurses-dev libdw-dev zlib1g-dev
    openmpi-bin libopenmpi-dev # for the examples
)

# Optional: without one of them, the build omits a part. libgloo-dev is for libhvd's engine gloo.
# shellcheck disable=SC2034
packages_to_build_if_any=(g++ libgloo-dev)

# shellcheck disable=SC2034
packages_to_test=(
    libcmocka-dev mpich libmpich-dev python3 git procps openssh-server openssh-client
    iproute2 nftables slurm-wlm munge python3-torch python3-numpy
    python3-pytest python3-cloudpickle
    shellcheck groff-base man-db
)

# Optional: if the distribution does not have one of them, the tests that need it skip.
# shellcheck disable=SC2034
packages_to_test_if_any=(
    python3-pip python3-venv clang-format-14 black flake8 clang-14 libclang-rt-14-dev tcsh fish zsh valgrind debootstrap gdb
    prometheus # metrics
    chromium # the status page
    rsync # the benchmark of --stage
    podman podman-compose crun netavark aardvark-dns iptables umoci # containers
    charliecloud-runtime
)
# Packages of other vendors have the same files.
command -v kubectl >/dev/null || packages_to_test_if_any+=(kubernetes-client)

# Docker starts with the machine and changes its packet filter. The tests use it, but install it only
# where nothing starts services, as in a container.
packages_to_test_without_systemd=()
command -v docker >/dev/null || packages_to_test_without_systemd+=(docker.io docker-compose)

packages_installed() { # NAME
    [[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

# Prints the names that are not installed, on one line.
packages_missing() { # NAME...
    local name missing=()
    for name in "$@"; do
        packages_installed "$name" || missing+=("$name")
    done
    echo "${missing[*]}"
}

# packages_as_root COMMAND...: runs the command as root, through sudo if necessary. sudo asks for a
# password only on a terminal.
packages_as_root() {
    if [[ $EUID -eq 0 ]]; then
        "$@"
    elif [[ -t 0 ]]; then
        sudo "$@"
    else
        sudo -n "$@"
    fi
}

# packages_apt ARGUMENT...: runs apt-get without questions, and shows its output only if it fails.
packages_apt() {
    local log status=0
    log="$(mktemp)"
    packages_as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 \
        -o Acquire::Retries=3 "$@" >"$log" 2>&1 </dev/null || status=$?
    if [[ $status -ne 0 ]]; then
        tail -n 20 "$log" >&2
    fi
    rm -f "$log"
    return "$status"
}

# packages_install NAME...: installs those that are missing, and prints their names. If it cannot, it
# prints one line with the command to run, and returns 1.
packages_install() {
    local missing wanted
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        echo "packages: this is not Debian or Ubuntu; install the equivalents of these packages: $*" >&2
        return 0
    fi
    missing="$(packages_missing "$@")"
    [[ -n "$missing" ]] || return 0
    if [[ $EUID -ne 0 ]] && ! { command -v sudo && { [[ -t 0 ]] || sudo -n true; }; } &>/dev/null; then
        echo "packages: cannot install without root; run this first: apt-get install $missing" >&2
        return 1
    fi
    read -ra wanted <<<"$missing"
    echo "packages: installing with apt: $missing"
    if ! { packages_apt update && packages_apt install -y --no-install-recommends "${wanted[@]}"; }; then
        echo "packages: apt failed; run this and try again: apt-get install $missing" >&2
        return 1
    fi
}

# packages_install_if_any NAME...: installs those that the distribution has. Never fails.
packages_install_if_any() {
    local name have=()
    command -v apt-cache >/dev/null || return 0
    for name in "$@"; do
        if ! packages_installed "$name" && apt-cache show "$name" &>/dev/null; then
            have+=("$name")
        fi
    done
    [[ ${#have[@]} -eq 0 ]] || packages_install "${have[@]}" || true
}
