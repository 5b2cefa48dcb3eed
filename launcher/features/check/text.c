/* SPDX-License-Identifier: Apache-2.0 */
#include "features/check/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strv.h"

#define MATRIX_MAX 10 /* hosts that fit into one matrix */
#define SLOW_SHOWN 5
#define NAMES_SHOWN 8
#define WIDTH 96
#define ADAPTERS_MAX 4096
#define FACT_HOSTS_SHOWN 4

/* Facts that all hosts share, printed once. If the hosts differ, the values with the names of
 * their hosts. The words before the values; "": the value says it. */
static const char *const titles[] = {"hvdrun", "",      "",           "kernel",
                                     "PMIx",   "hwloc", "GPU driver", "adapters",
                                     "nofile", "nproc", "memlock"};

#define FACTS (sizeof(titles) / sizeof(titles[0]))

/* "OpenPMIx 4.2.2 (PMIx Standard: ...)": only the number. */
static void add_pmix(const char *version, struct strv *out)
{
    version += strcspn(version, "0123456789");
    size_t length = strcspn(version, " ,)");
    strv_printf(out, "%.*s", length > 0 ? (int)length : 4, length > 0 ? version : "none");
}

static void add_adapters(const Hvdrun__Facts *facts, struct strv *out)
{
    struct buf text AUTO_BUF = BUF_INIT(ADAPTERS_MAX);
    for (size_t i = 0; i < facts->n_adapters; i++)
        buf_printf(&text, "%s%.*s", i > 0 ? " " : "", (int)strcspn(facts->adapters[i], " "),
                   facts->adapters[i]);
    strv_add(out, buf_text(&text));
}

static void add_limit(const struct check_result *result, const struct check_host *host,
                      const char *name, bool bytes, struct strv *out)
{
    uint64_t limit = check_host_limit(result, host, name);
    char text[16];
    check_size_text(limit, text);
    if (limit == UINT64_MAX)
        strv_add(out, "unlimited");
    else if (bytes)
        strv_add(out, text);
    else
        strv_printf(out, "%" PRIu64, limit);
}

/* The values, in the order of the titles. */
static void read_facts(const struct check_result *result, const struct check_host *host,
                       struct strv *out)
{
    const Hvdrun__Facts *facts = host->facts;
    strv_add(out, host->hello->version);
    strv_add(out, host->hello->machine);
    strv_add(out, facts->system);
    strv_add(out, facts->kernel);
    add_pmix(facts->pmix, out);
    /* it cannot tell its release: 2.9.0 has the API of 2.8 */
    strv_printf(out, "%s%s", facts->hwloc[0] == '\0' ? "none" : "API ", facts->hwloc);
    strv_add(out, facts->gpu_driver);
    add_adapters(facts, out);
    add_limit(result, host, "nofile", false, out);
    add_limit(result, host, "nproc", false, out);
    add_limit(result, host, "memlock", true, out);
}

/* Words in one paragraph, wrapped at WIDTH. */
static void put_wrapped(const char *title, const struct strv *words, struct buf *out)
{
    size_t column = strlen(title);
    buf_puts(out, title);
    for (size_t i = 0; i < words->count; i++) {
        size_t length = strlen(words->items[i]) + 2;
        if (column + length > WIDTH && i > 0) {
            buf_puts(out, "\n ");
            column = 1;
        }
        buf_printf(out, " %s%s", words->items[i], i + 1 < words->count ? "," : "");
        column += length;
    }
    buf_putc(out, '\n');
}

/* "4.2.2 (a, b)": the value with the hosts that have it; marks them in `seen`. */
static void put_value(const struct check_result *result, const struct strv *values, size_t fact,
                      int first, bool *seen, struct strv *words)
{
    struct buf names AUTO_BUF = BUF_INIT((size_t)64 << 10);
    const char *value = values[first].items[fact];
    int count = 0;
    for (int i = first; i < result->count; i++) {
        if (values[i].count == 0 || strcmp(values[i].items[fact], value) != 0)
            continue;
        seen[i] = true;
        if (count++ < FACT_HOSTS_SHOWN)
            buf_printf(&names, "%s%s", count > 1 ? " " : "", result->hosts[i].name);
    }
    if (count > FACT_HOSTS_SHOWN)
        buf_printf(&names, " and %d more", count - FACT_HOSTS_SHOWN);
    strv_printf(words, "%s (%s)", value[0] == '\0' ? "none" : value, buf_text(&names));
}

static void put_different(const struct check_result *result, const struct strv *values, size_t fact,
                          struct buf *out)
{
    struct strv words AUTO_STRV = STRV_INIT;
    bool *seen AUTO_FREE = mem_array((size_t)result->count, sizeof(*seen));
    char title[64];
    for (int i = 0; i < result->count; i++) {
        if (values[i].count > 0 && !seen[i])
            put_value(result, values, fact, i, seen, &words);
    }
    snprintf(title, sizeof(title), "%s:", titles[fact][0] == '\0' ? "hosts" : titles[fact]);
    put_wrapped(title, &words, out);
}

/* Of the hosts that were heard. */
static bool is_same(const struct check_result *result, const struct strv *values, size_t fact,
                    int first)
{
    bool same = true;
    for (int i = first; i < result->count; i++)
        same = same && (values[i].count == 0 ||
                        strcmp(values[i].items[fact], values[first].items[fact]) == 0);
    return same;
}

static void put_facts(const struct check_result *result, const struct strv *values, int first,
                      int heard, struct buf *out)
{
    struct strv common AUTO_STRV = STRV_INIT;
    struct buf different AUTO_BUF = BUF_INIT((size_t)1 << 20);
    for (size_t i = 0; i < FACTS; i++) {
        if (!is_same(result, values, i, first))
            put_different(result, values, i, &different);
        else if (values[first].items[i][0] != '\0')
            strv_printf(&common, "%s%s%s", titles[i], titles[i][0] == '\0' ? "" : " ",
                        values[first].items[i]);
    }
    if (common.count > 0)
        put_wrapped(heard == 1 ? "on the host:" : "on all hosts:", &common, out);
    buf_puts(out, buf_text(&different));
}

void check_text_facts(const struct check_result *result, struct buf *out)
{
    struct strv *values AUTO_FREE = mem_array((size_t)result->count, sizeof(*values));
    int heard = 0, first = 0;
    for (int i = result->count - 1; i >= 0; i--) {
        if (result->hosts[i].facts == NULL)
            continue;
        read_facts(result, &result->hosts[i], &values[i]);
        heard++;
        first = i;
    }
    if (heard > 0)
        put_facts(result, values, first, heard, out);
    for (int i = 0; i < result->count; i++)
        strv_destroy(&values[i]);
}

/* The network */

static double gigabits(const struct check_link *link)
{
    return (double)link->bytes * 8e-3 / (double)(link->transfer_us > 0 ? link->transfer_us : 1);
}

static int compare_speed(const void *a, const void *b)
{
    double one = gigabits(*(const struct check_link *const *)a);
    double other = gigabits(*(const struct check_link *const *)b);
    return (one > other) - (one < other);
}

static void put_matrix(const struct check_result *result, struct buf *out)
{
    size_t width = 6;
    for (int i = 0; i < result->count; i++) {
        size_t length = strlen(result->hosts[i].name);
        width = length > width ? length : width;
    }
    buf_printf(out, "%*s", (int)width, "");
    for (int i = 0; i < result->count; i++)
        buf_printf(out, "  %*s", (int)width, result->hosts[i].name);
    for (int i = 0; i < result->count; i++) {
        buf_printf(out, "\n%-*s", (int)width, result->hosts[i].name);
        for (int j = 0; j < result->count; j++) {
            const struct check_link *link = check_result_link(result, i, j);
            if (link == NULL || link->bytes == 0)
                buf_printf(out, "  %*s", (int)width, "-");
            else
                buf_printf(out, "  %*.*f", (int)width, gigabits(link) < 10 ? 2 : 1, gigabits(link));
        }
    }
    buf_putc(out, '\n');
}

/* The slowest transfers are the interesting ones. */
static void put_slowest(const struct check_result *result, const struct check_link **sorted,
                        size_t count, struct buf *out)
{
    buf_printf(out, "  slowest %.2f, median %.2f, fastest %.2f\n", gigabits(sorted[0]),
               gigabits(sorted[count / 2]), gigabits(sorted[count - 1]));
    for (size_t i = 0; i < count && i < SLOW_SHOWN; i++)
        buf_printf(out, "  %.2f from %s to %s\n", gigabits(sorted[i]),
                   result->hosts[sorted[i]->from].name, result->hosts[sorted[i]->to].name);
}

static void put_speeds(const struct check_result *result, struct buf *out)
{
    const struct check_link **sorted AUTO_FREE = mem_array(result->link_count, sizeof(*sorted));
    size_t count = 0;
    for (size_t i = 0; i < result->link_count; i++) {
        if (result->links[i].bytes > 0)
            sorted[count++] = &result->links[i];
    }
    if (count == 0)
        return;
    buf_puts(out, "Gbit/s of one TCP connection, sent by the host on the left:\n");
    if (result->count <= MATRIX_MAX) {
        put_matrix(result, out);
        return;
    }
    qsort(sorted, count, sizeof(*sorted), compare_speed);
    put_slowest(result, sorted, count, out);
}

void check_text_network(const struct check_result *result, struct buf *out)
{
    size_t tried = 0, reached = 0;
    int64_t fastest = INT64_MAX, slowest = 0;
    for (size_t i = 0; i < result->link_count; i++) {
        const struct check_link *link = &result->links[i];
        tried += link->tried;
        if (!link->tried || link->outcome != HVDRUN__PROBE_OUTCOME__PROBE_REACHED)
            continue;
        reached++;
        fastest = link->connect_us < fastest ? link->connect_us : fastest;
        slowest = link->connect_us > slowest ? link->connect_us : slowest;
    }
    if (tried == 0)
        return;
    buf_printf(out, "network: %zu of %zu connections between hosts succeeded", reached, tried);
    if (reached > 0)
        buf_printf(out, ", in %.2f to %.2f ms", (double)fastest / 1e3, (double)slowest / 1e3);
    buf_putc(out, '\n');
    put_speeds(result, out);
}

/* The GPUs */

struct range {
    double low, high;
    size_t count;
};

static void widen(struct range *range, double value)
{
    range->low = range->count == 0 || value < range->low ? value : range->low;
    range->high = range->count == 0 || value > range->high ? value : range->high;
    range->count++;
}

/* ", 31 to 38 degrees Celsius" */
static void put_range(const struct range *range, const char *unit, struct buf *out)
{
    if (range->count > 0)
        buf_printf(out, ", %.0f", range->low);
    if (range->count > 0 && range->high - range->low >= 1)
        buf_printf(out, " to %.0f", range->high);
    if (range->count > 0)
        buf_printf(out, " %s", unit);
}

static void put_gpu_test(const struct check_result *result, struct buf *out)
{
    struct range speeds[SPEEDS] = {{.count = 0}}, reduce = {.count = 0}, between = {.count = 0};
    const char *none = NULL;
    for (int i = 0; i < result->count; i++) {
        const struct gpu_test *test = &result->hosts[i].gpu_test;
        for (size_t j = 0; j < test->count * SPEEDS; j++)
            widen(&speeds[j % SPEEDS], test->speeds[j / SPEEDS].value[j % SPEEDS]);
        if (test->reduce_gpus > 0)
            widen(&reduce, test->reduce);
        if (result->hosts[i].between > 0)
            widen(&between, result->hosts[i].between);
        none = none == NULL ? test->none : none;
    }
    if (speeds[0].count > 0) {
        buf_printf(out, "GPU test: %zu tested", speeds[0].count);
        put_range(&speeds[SPEED_COMPUTE], "TFLOP/s in bf16", out);
        put_range(&speeds[SPEED_MEMORY], "GB/s in memory", out);
        put_range(&speeds[SPEED_HOST], "GB/s from the host", out);
        put_range(&reduce, "GB/s in all-reduces", out);
        buf_putc(out, '\n');
    }
    if (between.count > 0)
        buf_printf(out, "all-reduces between hosts: %zu hosts tested, %.2f to %.2f GB/s\n",
                   between.count, between.low, between.high);
    if (none != NULL)
        buf_printf(out, "GPU test: none%s: %s\n", result->count > 1 ? " on some hosts" : "", none);
}

void check_text_gpus(const struct check_result *result, struct buf *out)
{
    struct range heat = {.count = 0};
    size_t count = 0;
    bool asked = false;
    for (int i = 0; i < result->count; i++) {
        const Hvdrun__GpuHealths *gpus = result->hosts[i].gpus;
        asked = asked || gpus != NULL;
        for (size_t j = 0; gpus != NULL && j < gpus->n_gpus; j++) {
            count++;
            if (gpus->gpus[j]->has_temperature)
                widen(&heat, gpus->gpus[j]->celsius);
        }
    }
    if (!asked)
        return;
    buf_printf(out, "GPUs: %zu checked", count);
    put_range(&heat, "degrees Celsius", out);
    buf_putc(out, '\n');
    put_gpu_test(result, out);
}

/* The findings */

/* "a, b and 12 more": the hosts from `first` on that have the same finding; marks them in
 * `told`. */
static void put_hosts(const struct check_result *result, const struct check_findings *findings,
                      size_t first, bool *told, struct buf *out)
{
    const struct check_finding *model = &findings->items[first];
    int count = 0;
    for (size_t i = first; i < findings->count; i++) {
        const struct check_finding *finding = &findings->items[i];
        if (finding->host < 0 || finding->fatal != model->fatal ||
            strcmp(finding->text, model->text) != 0)
            continue;
        told[i] = true;
        if (count++ < NAMES_SHOWN)
            buf_printf(out, "%s%s", count > 1 ? ", " : "", result->hosts[finding->host].name);
    }
    if (count > NAMES_SHOWN)
        buf_printf(out, " and %d more", count - NAMES_SHOWN);
    buf_puts(out, ": ");
}

static void put_findings(const struct check_result *result, const struct check_findings *findings,
                         struct buf *out)
{
    bool *told AUTO_FREE = mem_array(findings->count, sizeof(*told));
    for (size_t i = 0; i < findings->count; i++) {
        if (told[i])
            continue;
        buf_puts(out, findings->items[i].fatal ? "problem: " : "warning: ");
        if (findings->items[i].host >= 0)
            put_hosts(result, findings, i, told, out);
        buf_printf(out, "%s\n", findings->items[i].text);
    }
}

static void put_summary(const struct check_result *result, const struct check_findings *findings,
                        struct buf *out)
{
    int problems = 0, warnings = 0;
    for (int i = 0; i < result->count; i++) {
        if (check_findings_has(findings, i, true))
            problems++;
        else
            warnings += check_findings_has(findings, i, false);
    }
    buf_printf(out, "%d host%s: %d ok", result->count, result->count == 1 ? "" : "s",
               result->count - problems - warnings);
    if (warnings > 0)
        buf_printf(out, ", %d with warnings", warnings);
    if (problems > 0)
        buf_printf(out, ", %d with problems", problems);
    buf_puts(out, check_findings_count(findings, true) > 0 ? "; a job would not run\n" : "\n");
}

void check_text(const struct check_result *result, const struct check_findings *findings,
                bool brief, struct buf *out)
{
    if (!brief) {
        check_table(result, findings, out);
        check_text_facts(result, out);
        check_text_network(result, out);
        check_text_gpus(result, out);
    }
    put_findings(result, findings, out);
    if (!brief)
        put_summary(result, findings, out);
}
