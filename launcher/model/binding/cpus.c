/* SPDX-License-Identifier: Apache-2.0 */
#include "model/binding/cpus.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* Numbers from..to of the cores of a package, or of all packages (-1). */
struct span {
    long package, from, to;
};

static int bad(const char *text, const char *why, struct error *err)
{
    return error_status(err, STATUS_USAGE, "the rankfile's CPUs '%s': %s", text, why);
}

/* false: no number here, or one that no machine has. */
static bool take_number(const char **at, long *number)
{
    char *end = NULL;
    if (!isdigit((unsigned char)**at))
        return false;
    *number = strtol(*at, &end, 10);
    *at = end;
    return *number <= CPU_NUMBER_MAX;
}

/* One part between commas; the package stays for the next one. */
static bool take_span(const char **at, struct span *span)
{
    const char *start = *at;
    long number = 0;
    if (take_number(at, &number) && **at == ':') {
        span->package = number;
        ++*at;
    } else {
        *at = start;
    }
    if (**at == '*') {
        ++*at;
        span->from = 0;
        span->to = LONG_MAX;
        return true;
    }
    if (!take_number(at, &span->from))
        return false;
    span->to = span->from;
    if (**at == '-') {
        ++*at;
        return take_number(at, &span->to) && span->to >= span->from;
    }
    return true;
}

/* Adds what is ours of a span; false: one of its cores does not exist, or is not ours. */
static bool add_span(const struct span *span, const struct topology *topology,
                     struct cpu_mask *mask)
{
    long core = -1, package = -1, found = 0, ours = 0;
    bool counted = false;
    for (size_t i = 0; i < topology->count; i++) {
        const struct topology_cpu *cpu = &topology->cpus[i];
        bool next_package = i == 0 || cpu->package != cpu[-1].package;
        bool next_core = i == 0 || cpu->core != cpu[-1].core;
        package += next_package;
        core = next_package && span->package >= 0 ? 0 : core + next_core;
        if ((span->package >= 0 && span->package != package) || core < span->from ||
            core > span->to)
            continue;
        found += next_core;
        counted = counted && !next_core;
        ours += cpu->allowed && !counted;
        counted = counted || cpu->allowed;
        if (cpu->allowed)
            cpu_mask_set(mask, cpu->cpu);
    }
    if (span->to == LONG_MAX)
        return ours > 0;
    return ours == found && found == span->to - span->from + 1;
}

int binding_cpus_parse(const char *text, const struct topology *topology, struct cpu_mask *mask,
                       struct error *err)
{
    struct span span = {.package = -1};
    for (const char *at = text;;) {
        if (!take_span(&at, &span) || (*at != '\0' && *at != ',' && *at != ';'))
            return bad(text, "expected cores such as 0-3,8 or package:cores such as 1:0-2", err);
        if (!add_span(&span, topology, mask))
            return bad(text,
                       "this host does not have all of these cores, or hvdrun may not use them",
                       err);
        if (*at == '\0')
            break;
        at++;
    }
    if (cpu_mask_count(mask) == 0)
        return bad(text, "hvdrun may not use any of these cores", err);
    return 0;
}
