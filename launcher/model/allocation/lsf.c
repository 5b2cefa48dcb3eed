/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LSF: a file with a host name for each slot, which LSF keeps up to date when a job is resized;
 * where there is none, "host slots host slots" in LSB_MCPU_HOSTS, or a name for each slot in
 * LSB_HOSTS, which LSF leaves out when it would be long.
 */
#include "model/allocation/lsf.h"

#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/strv.h"
#include "model/hosts/entry.h"

bool allocation_lsf_has(char *const *env, const char **file)
{
    *file = allocation_value(env, "LSB_DJOB_HOSTFILE");
    return allocation_value(env, "LSB_JOBID") != NULL &&
           (*file != NULL || allocation_value(env, "LSB_MCPU_HOSTS") != NULL ||
            allocation_value(env, "LSB_HOSTS") != NULL);
}

static int add_slot(void *context, const char *line, size_t length, struct error *err)
{
    return allocation_add(context, line, length, 1, err);
}

/* The next word at `*at`, which ends up behind it; 0 bytes: there is none. */
static size_t next_word(const char **at, const char **word)
{
    *at += strspn(*at, " \t");
    *word = *at;
    *at += strcspn(*at, " \t");
    return (size_t)(*at - *word);
}

static int read_pairs(const char *text, struct allocation *out, struct error *err)
{
    const char *at = text, *name = NULL, *count = NULL;
    for (size_t length = next_word(&at, &name); length > 0; length = next_word(&at, &name)) {
        int slots = 0;
        size_t digits = next_word(&at, &count);
        if (digits == 0)
            return error_status(
                err, STATUS_USAGE,
                "LSB_MCPU_HOSTS: no slot count after '%s'; expected 'host 4 host 4'",
                text_show(name, length).text);
        if (allocation_slots(count, digits, &slots, err) < 0 ||
            allocation_add(out, name, length, slots, err) < 0)
            return error_wrap(err, "LSB_MCPU_HOSTS");
    }
    return 0;
}

static int read_names(const char *text, struct allocation *out, struct error *err)
{
    const char *at = text, *name = NULL;
    for (size_t length = next_word(&at, &name); length > 0; length = next_word(&at, &name)) {
        if (allocation_add(out, name, length, 1, err) < 0)
            return error_wrap(err, "LSB_HOSTS");
    }
    return 0;
}

int allocation_lsf_parse(const struct allocation_source *source, struct allocation *out,
                         struct error *err)
{
    out->job_id = mem_strdup(allocation_value(source->env, "LSB_JOBID"));
    if (source->file != NULL)
        return allocation_lines(source, add_slot, out, err);
    const char *pairs = allocation_value(source->env, "LSB_MCPU_HOSTS");
    if (pairs != NULL)
        return read_pairs(pairs, out, err);
    return read_names(allocation_value(source->env, "LSB_HOSTS"), out, err);
}
