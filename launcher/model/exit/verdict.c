/* SPDX-License-Identifier: Apache-2.0 */
#include "model/exit/verdict.h"

#include <stdio.h>

#define EXIT_NAME(name, text) [name] = (text),

const char *exit_cause_name(enum exit_cause cause)
{
    static const char *const names[] = {EXIT_CAUSE_LIST(EXIT_NAME)};
    return names[cause];
}

const char *exit_role_name(enum exit_role role)
{
    static const char *const names[] = {EXIT_ROLE_LIST(EXIT_NAME)};
    return names[role];
}

void verdict_set(struct verdict *out, int status, enum exit_cause cause, const char *explanation)
{
    *out = (struct verdict){.status = status, .cause = cause, .seat = -1, .node = -1};
    if (explanation != NULL)
        snprintf(out->explanation, sizeof(out->explanation), "%s", explanation);
}
