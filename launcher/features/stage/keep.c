/* SPDX-License-Identifier: Apache-2.0 */
#include "features/stage/keep.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/status.h"

#define AGE_USUAL_MS ((int64_t)7 * 24 * 3600 * 1000)

static int refuse(const char *text, struct error *err)
{
    return error_status(err, STATUS_USAGE,
                        "'%s': expected SIZE or SIZE:TIME, such as 32G:7d, or 0 to keep nothing",
                        text);
}

int stage_keep_parse(const char *text, struct stage_keep *out, struct error *err)
{
    static const char units[] = "KMGT";
    size_t length = strcspn(text, ":");
    struct stage_keep keep = {.age_ms = AGE_USUAL_MS};
    int64_t number;
    if (text[length] == ':' && parse_duration_ms(text + length + 1, &keep.age_ms, NULL) < 0)
        return refuse(text, err);
    char *size AUTO_FREE = mem_strndup(text, length);
    const char *unit = length > 1 ? strchr(units, size[length - 1]) : NULL;
    if (unit != NULL)
        size[length - 1] = '\0';
    if (parse_int(size, 0, (int64_t)1 << 20, &number, NULL) < 0)
        return refuse(text, err);
    if (unit == NULL && number != 0)
        return refuse(text, err); /* bytes? nobody means that */
    keep.bytes = (uint64_t)number << (unit == NULL ? 0 : 10 * (unit - units + 1));
    *out = keep;
    return 0;
}

static struct stage_kept *oldest(struct stage_kept *copies, size_t count)
{
    struct stage_kept *found = NULL;
    for (size_t i = 0; i < count; i++) {
        struct stage_kept *copy = &copies[i];
        if (!copy->in_use && !copy->goes && (found == NULL || copy->used_ms < found->used_ms))
            found = copy;
    }
    return found;
}

void stage_keep_choose(const struct stage_keep *keep, struct stage_kept *copies, size_t count,
                       uint64_t coming, int64_t now_ms)
{
    uint64_t bytes = coming;
    for (size_t i = 0; i < count; i++) {
        copies[i].goes = !copies[i].in_use && now_ms - copies[i].used_ms > keep->age_ms;
        bytes += copies[i].goes ? 0 : copies[i].bytes;
    }
    while (bytes > keep->bytes) {
        struct stage_kept *copy = oldest(copies, count);
        if (copy == NULL)
            return;
        copy->goes = true;
        bytes -= copy->bytes;
    }
}
