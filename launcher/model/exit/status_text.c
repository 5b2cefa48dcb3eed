/* SPDX-License-Identifier: Apache-2.0 */
#include "model/exit/status_text.h"

#include "model/exit/signal_name.h"

#define SIGNAL_BASE 128

void status_text(int status, struct buf *out)
{
    const char *name = status > SIGNAL_BASE ? signal_short_name(status - SIGNAL_BASE) : NULL;
    buf_printf(out, "exit status %d", status);
    if (name != NULL)
        buf_printf(out, " (SIG%s)", name);
}
