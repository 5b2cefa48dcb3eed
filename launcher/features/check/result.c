/* SPDX-License-Identifier: Apache-2.0 */
#include "features/check/result.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

static void clear_host(struct check_host *host)
{
    free(host->stage);
    free(host->why);
    free(host->login);
    free(host->address);
    free(host->door_problem);
    free(host->gpus_missing);
    free(host->gpu_test_problem);
    free(host->between_problem);
    gpu_test_clear(&host->gpu_test);
    if (host->gpus != NULL)
        hvdrun__gpu_healths__free_unpacked(host->gpus, NULL);
    if (host->facts != NULL)
        hvdrun__facts__free_unpacked(host->facts, NULL);
}

void check_result_clear(struct check_result *result)
{
    for (int i = 0; i < result->count; i++)
        clear_host(&result->hosts[i]);
    for (size_t i = 0; i < result->link_count; i++) {
        free(result->links[i].text);
        free(result->links[i].transfer_problem);
    }
    free(result->hosts);
    free(result->links);
    free(result->network_problem);
    *result = (struct check_result){.count = 0};
}

struct check_link *check_result_find(const struct check_result *result, int from, int to)
{
    size_t low = 0, high = result->link_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct check_link *link = &result->links[middle];
        if (link->from == from && link->to == to)
            return link;
        if (link->from < from || (link->from == from && link->to < to))
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct check_link *check_result_link(const struct check_result *result, int from, int to)
{
    const struct check_link *link = check_result_find(result, from, to);
    return link != NULL && link->tried ? link : NULL;
}

uint64_t check_host_limit(const struct check_host *host, const char *name, uint64_t ours)
{
    for (size_t i = 0; host->facts != NULL && i < host->facts->n_limits; i++) {
        const Hvdrun__CheckLimit *limit = host->facts->limits[i];
        if (strcmp(limit->name, name) == 0)
            return limit->hard < ours ? limit->hard : ours;
    }
    return ours;
}

const char *check_host_key(const struct check_host *host)
{
    const char *key = host->login == NULL ? NULL : strstr(host->login, "host key ");
    if (key == NULL)
        return "";
    if (strstr(key, ", new, added to ") != NULL)
        return "added";
    return strstr(key, ", new, and not remembered") != NULL ? "new" : "known";
}

const Hvdrun__CheckFolder *check_host_folder(const struct check_host *host, const char *what)
{
    for (size_t i = 0; host->facts != NULL && i < host->facts->n_folders; i++) {
        if (strcmp(host->facts->folders[i]->what, what) == 0)
            return host->facts->folders[i];
    }
    return NULL;
}

void check_size_text(uint64_t bytes, char text[16])
{
    static const char units[] = "BKMGTPE";
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1000 && units[unit + 1] != '\0') {
        value /= 1024;
        unit++;
    }
    if (unit == 0)
        snprintf(text, 16, "%d", (int)bytes);
    else
        snprintf(text, 16, "%.*f%c", value < 9.95 ? 1 : 0, value, units[unit]);
}

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
    findings->items[findings->count++] =
        (struct check_finding){.host = host, .fatal = fatal, .text = buf_take(&text)};
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
