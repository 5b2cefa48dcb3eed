/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/check/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MATRIX_MAX 10 /* hosts that fit into one matrix */
#define SLOW_SHOWN 5
#define NAMES_SHOWN 8

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
        check_text_table(result, findings, out);
        check_text_facts(result, out);
        check_text_network(result, out);
    }
    put_findings(result, findings, out);
    if (!brief)
        put_summary(result, findings, out);
}
