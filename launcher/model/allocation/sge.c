/* SPDX-License-Identifier: Apache-2.0 */
/* Grid Engine and its descendants: "host slots queue range" a line, for each queue of a host. */
#include "model/allocation/sge.h"

#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"

bool allocation_sge_has(char *const *env, const char **file)
{
    *file = allocation_value(env, "PE_HOSTFILE");
    return *file != NULL && allocation_value(env, "JOB_ID") != NULL;
}

static size_t word_length(const char *at, const char *end)
{
    const char *start = at;
    while (at < end && *at != ' ' && *at != '\t')
        at++;
    return (size_t)(at - start);
}

static int add_line(void *context, const char *line, size_t length, struct error *err)
{
    const char *end = line + length;
    size_t name = word_length(line, end);
    const char *count = line + name;
    while (count < end && (*count == ' ' || *count == '\t'))
        count++;
    size_t digits = word_length(count, end);
    int slots = 0;
    if (digits == 0)
        return error_status(err, STATUS_USAGE, "no slot count; expected HOST SLOTS QUEUE RANGE");
    if (allocation_slots(count, digits, &slots, err) < 0)
        return -1;
    return allocation_add(context, line, name, slots, err);
}

int allocation_sge_parse(const struct allocation_source *source, struct allocation *out,
                         struct error *err)
{
    int64_t restarted = 0;
    out->job_id = mem_strdup(allocation_value(source->env, "JOB_ID"));
    if (allocation_number(source->env, "RESTARTED", 0, INT_MAX, &restarted, err) < 0)
        return -1;
    out->restart_count = (int)restarted;
    return allocation_lines(source, add_line, out, err);
}
