/* SPDX-License-Identifier: Apache-2.0 */
#include "features/debug/debug_line.h"

#include <string.h>

#include "base/buf.h"

#define LINE_MAX_BYTES ((size_t)1 << 20)

static void put_pid(struct buf *out, const char *with, pid_t pid)
{
    for (const char *at = with; *at != '\0';) {
        bool is_mark = strncmp(at, "{pid}", 5) == 0;
        if (is_mark)
            buf_printf(out, "%ld", (long)pid);
        else
            buf_putc(out, *at);
        at += is_mark ? 5 : 1;
    }
}

static void put_gdb(struct strv *out, const char *command)
{
    strv_add(out, "-iex");
    strv_add(out, command);
}

void debug_line(const char *with, pid_t pid, bool is_stopped, struct strv *out)
{
    bool is_gdb = strcmp(with, "gdb") == 0;
    if (!is_gdb && strcmp(with, "lldb") != 0) {
        struct buf line AUTO_BUF = BUF_INIT(LINE_MAX_BYTES);
        put_pid(&line, with, pid);
        strv_add(out, "/bin/sh");
        strv_add(out, "-c");
        strv_add(out, buf_text(&line));
        return;
    }
    strv_add(out, with);
    if (is_gdb) {
        strv_add(out, "-q");
        put_gdb(out, "set confirm off"); /* to quit detaches: there is nothing to confirm */
    }
    if (is_gdb && is_stopped)
        put_gdb(out, "handle SIGSTOP nostop noprint nopass");
    strv_add(out, "-p");
    strv_printf(out, "%ld", (long)pid);
}
