# shellcheck shell=bash disable=SC2034 # the scripts use the variables
# SPDX-License-Identifier: Apache-2.0
# How all scripts here begin: `source begin.sh [BUILD]`. The script ends with `exit "$bad"`.
set -uo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
build="${1:-$here/../../build/dev}"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
bad=0
