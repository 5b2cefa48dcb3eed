# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# Prints CALL(NAME) for each system call of which the C library has the number. The arguments are
# the compiler. It fails if that fails, or if there is no read(2) among them.
set -e
macros=$(echo '#include <sys/syscall.h>' | "$@" -E -dM -x c -)
calls=$(echo "$macros" | sed -n 's/^#define SYS_\([a-z0-9_]*\) .*/CALL(\1)/p' | LC_ALL=C sort)
case "$calls" in
*'CALL(read)'*) echo "$calls" ;;
*) echo "calls.sh: the compiler does not name the system calls: $*" >&2 && exit 1 ;;
esac
