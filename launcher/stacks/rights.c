/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/rights.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"

char *refusal(const char *what, int error)
{
    struct buf scope AUTO_BUF = BUF_INIT(16);
    bool refused = error == EACCES || error == EPERM;
    if (refused && fd_read_file("/proc/sys/kernel/yama/ptrace_scope", &scope, NULL) == 0 &&
        *buf_text(&scope) > '0')
        return mem_printf("%s: %s (kernel.yama.ptrace_scope is %c)", what, strerror(error),
                          *buf_text(&scope));
    return mem_printf("%s: %s", what, strerror(error));
}
