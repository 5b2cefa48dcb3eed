/* SPDX-License-Identifier: Apache-2.0 */
#include "model/allocation/slurm_nodelist.h"

#include <stdbool.h>
#include <string.h>

#include "base/parse.h"
#include "base/status.h"
#include "model/hosts/entry.h"
#include "model/hosts/hostlist_range.h"
#include "model/hosts/hosts.h"

static int add_name(void *context, const char *name, struct error *err)
{
    if (!name_is_safe(name, strlen(name)))
        return error_status(err, STATUS_USAGE, "not a host name");
    strv_add(context, name);
    return 0;
}

/* Up to the comma that ends the entry: commas in brackets belong to a range. */
static size_t entry_length(const char *text)
{
    bool inside = false;
    size_t length = 0;
    for (; text[length] != '\0' && (inside || text[length] != ','); length++) {
        if (text[length] == '[')
            inside = true;
        else if (text[length] == ']')
            inside = false;
    }
    return length;
}

int slurm_nodelist_parse(const char *text, struct strv *names, struct error *err)
{
    size_t budget = HOSTS_RANGE_MAX;
    for (const char *at = text;; at++) {
        size_t length = entry_length(at);
        if (hostlist_expand(at, length, &budget, add_name, names, err) < 0)
            return error_wrap(err, "'%s'", text_show(at, length).text);
        at += length;
        if (*at == '\0')
            return 0;
    }
}
