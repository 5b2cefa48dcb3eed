# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# Prints CALL(NAME) for each system call of which the C library has the number.
set -e
echo '#include <sys/syscall.h>' | "$@" -E -dM -x c - | sed -n 's/^#define SYS_\([a-z0-9_]*\) .*/CALL(\1)/p' | LC_ALL=C sort
