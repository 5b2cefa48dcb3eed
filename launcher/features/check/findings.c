/* SPDX-License-Identifier: Apache-2.0 */
#include "features/check/findings.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define TEXT_MAX ((size_t)16 << 10)

void check_findings_add(struct check_findings *findings, int host, bool fatal, const char *format,
                        ...)
{
    struct buf text = BUF_INIT(TEXT_MAX);
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    findings->items =
        mem_resize_array(findings->items, findings->count + 1, sizeof(*findings->items));
    findings->items[findings->count++] = (struct check_finding){host, fatal, buf_take(&text)};
}

void check_findings_clear(struct check_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        free(findings->items[i].text);
    free(findings->items);
    *findings = (struct check_findings){.count = 0};
}

void check_findings_sort(struct check_findings *findings)
{
    struct check_finding *sorted = mem_array(findings->count, sizeof(*sorted));
    size_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < findings->count; i++) {
            if (findings->items[i].fatal == (pass == 0))
                sorted[count++] = findings->items[i];
        }
    }
    free(findings->items);
    findings->items = sorted;
}

size_t check_findings_count(const struct check_findings *findings, bool fatal)
{
    size_t count = 0;
    for (size_t i = 0; i < findings->count; i++)
        count += findings->items[i].fatal == fatal;
    return count;
}

bool check_findings_has(const struct check_findings *findings, int host, bool fatal)
{
    for (size_t i = 0; i < findings->count; i++) {
        if (findings->items[i].host == host && findings->items[i].fatal == fatal)
            return true;
    }
    return false;
}
