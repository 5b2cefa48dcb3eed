/* SPDX-License-Identifier: Apache-2.0 */
#include "model/exit/signal_name.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/parse.h"

#define SIGNAL_BASE 128

void status_text(int status, struct buf *out)
{
    const char *name = status > SIGNAL_BASE ? signal_short_name(status - SIGNAL_BASE) : NULL;
    buf_printf(out, "exit status %d", status);
    if (name != NULL)
        buf_printf(out, " (SIG%s)", name);
}

const char *signal_short_name(int number)
{
    return number > 0 && number <= SIGNAL_NUMBER_MAX ? sigabbrev_np(number) : NULL;
}

int signal_number(const char *name)
{
    int64_t number = 0;
    if (parse_int(name, 1, SIGNAL_NUMBER_MAX, &number, NULL) == 0)
        return signal_short_name((int)number) != NULL ? (int)number : 0;
    if (strncasecmp(name, "SIG", 3) == 0)
        name += 3;
    for (int i = 1; i <= SIGNAL_NUMBER_MAX; i++) {
        const char *known = signal_short_name(i);
        if (known != NULL && strcasecmp(known, name) == 0)
            return i;
    }
    return 0;
}

#define SIGNAL_CASE(name) case name:

bool signal_is_passed(int number)
{
    switch (number) {
        SIGNAL_PASSED_LIST(SIGNAL_CASE)
        return true;
    default: return false;
    }
}

bool signal_is_barred(int number)
{
    switch (number) {
        SIGNAL_BARRED_LIST(SIGNAL_CASE)
        return true;
    default: return false;
    }
}

bool signal_wants_end(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

const char *signal_passed_names(void)
{
    static const char names[] =
#define SIGNAL_TEXT(name) ", " #name
        SIGNAL_PASSED_LIST(SIGNAL_TEXT);
    return names + 2;
}
