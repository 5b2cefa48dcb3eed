/* SPDX-License-Identifier: Apache-2.0 */
#include "features/check/check.h"

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

uint64_t check_host_limit(const struct check_result *result, const struct check_host *host,
                          const char *name)
{
    const struct {
        const char *name;
        uint64_t limit;
    } own[] = {{"nofile", result->nofile}, {"nproc", result->nproc}, {"memlock", result->memlock}};
    uint64_t limit = UINT64_MAX;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        limit = strcmp(own[i].name, name) == 0 ? own[i].limit : limit;
    for (size_t i = 0; host->facts != NULL && i < host->facts->n_limits; i++) {
        const Hvdrun__CheckLimit *its = host->facts->limits[i];
        if (strcmp(its->name, name) == 0)
            return its->hard < limit ? its->hard : limit;
    }
    return limit;
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

struct check_finding *check_findings_add(struct check_findings *findings, int host, bool fatal,
                                         const char *format, ...)
{
    struct buf text = BUF_INIT(TEXT_MAX);
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    struct check_finding *finding = &MEM_ADD(findings->items, findings->count);
    *finding = (struct check_finding){.host = host, .fatal = fatal, .text = buf_take(&text)};
    return finding;
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

/* ---- One line for each host, for people ------------------------------------------------------ */

#define CELL_MAX 64

enum column { HOST, STATE, KEY, ADDRESS, IFACE, CPUS, MEMORY, GPUS, CLOCK, TMP, SHM, COLUMNS };

/* Numbers are aligned to the right. */
static const struct {
    const char *title;
    bool right;
} columns[COLUMNS] = {
    [HOST] = {"HOST", false},       [STATE] = {"STATE", false}, [KEY] = {"HOST KEY", false},
    [ADDRESS] = {"ADDRESS", false}, [IFACE] = {"IFACE", false}, [CPUS] = {"CPUS", true},
    [MEMORY] = {"MEMORY", true},    [GPUS] = {"GPUS", true},    [CLOCK] = {"CLOCK", true},
    [TMP] = {"TMP", true},          [SHM] = {"SHM", true},
};

const char *check_state_word(const struct check_result *result,
                             const struct check_findings *findings, int host)
{
    if (result->hosts[host].why != NULL)
        return result->hosts[host].stage;
    if (check_findings_has(findings, host, true))
        return "problem";
    return check_findings_has(findings, host, false) ? "warning" : "ok";
}

void check_host_interface(const struct check_host *host, char *text, size_t room)
{
    text[0] = '\0';
    if (host->address == NULL || host->hello == NULL)
        return;
    size_t wanted = strlen(host->address);
    for (size_t i = 0; i < host->hello->n_interfaces; i++) {
        const char *line = host->hello->interfaces[i];
        const char *address = strchr(line, ' ');
        if (address != NULL && strncmp(address + 1, host->address, wanted) == 0 &&
            (address[1 + wanted] == '/' || address[1 + wanted] == '\0')) {
            snprintf(text, room, "%.*s", (int)(address - line), line);
            return;
        }
    }
}

/* "+0.2 ms", "-3.1 s", or "<1.3 ms" if the measurement error is larger than the difference. */
static void put_clock(const struct check_host *host, char *text, size_t room)
{
    double off = (double)host->clock_ns / 1e9, error = (double)host->clock_error_ns / 1e9;
    double size = off < 0 ? -off : off;
    if (size > error && size >= 0.9995)
        snprintf(text, room, "%+.1f s", off);
    else if (size > error)
        snprintf(text, room, "%+.1f ms", off * 1e3);
    else
        snprintf(text, room, "<%.1f ms", error * 1e3 < 0.1 ? 0.1 : error * 1e3);
}

static void put_folder(const struct check_host *host, const char *what, char *text)
{
    const Hvdrun__CheckFolder *folder = check_host_folder(host, what);
    if (folder != NULL)
        check_size_text(folder->free_bytes, text);
}

typedef char row[COLUMNS][CELL_MAX];

/* `cells` are empty before. */
static void fill_row(const struct check_result *result, const struct check_findings *findings,
                     int number, row cells)
{
    const struct check_host *host = &result->hosts[number];
    snprintf(cells[HOST], CELL_MAX, "%s", host->name);
    snprintf(cells[STATE], CELL_MAX, "%s", check_state_word(result, findings, number));
    snprintf(cells[KEY], CELL_MAX, "%s", check_host_key(host));
    if (host->facts == NULL)
        return;
    snprintf(cells[ADDRESS], CELL_MAX, "%s", host->address == NULL ? "none" : host->address);
    check_host_interface(host, cells[IFACE], CELL_MAX);
    snprintf(cells[CPUS], CELL_MAX, "%u", host->hello->cpus_allowed);
    check_size_text(host->hello->memory_bytes, cells[MEMORY]);
    snprintf(cells[GPUS], CELL_MAX, "%u", host->hello->gpus);
    if (host->clock_known)
        put_clock(host, cells[CLOCK], CELL_MAX);
    put_folder(host, "tmp", cells[TMP]);
    put_folder(host, "shm", cells[SHM]);
}

static void widen(size_t *widths, row cells)
{
    for (int i = 0; i < COLUMNS; i++) {
        size_t length = strlen(cells[i]);
        widths[i] = length > widths[i] ? length : widths[i];
    }
}

/* Without trailing blanks. A column that is empty in all rows is left out. */
static void put_row(row cells, const size_t *widths, struct buf *out)
{
    int last = COLUMNS - 1;
    while (last > 0 && (cells[last][0] == '\0' || widths[last] == 0))
        last--;
    for (int i = 0; i <= last; i++) {
        int width = (int)widths[i];
        if (width == 0)
            continue;
        if (columns[i].right)
            buf_printf(out, "%*s", width, cells[i]);
        else
            buf_printf(out, "%-*s", i == last ? 0 : width, cells[i]);
        buf_puts(out, i == last ? "\n" : "  ");
    }
}

void check_table(const struct check_result *result, const struct check_findings *findings,
                 struct buf *out)
{
    size_t widths[COLUMNS] = {0};
    row *rows AUTO_FREE = mem_array((size_t)result->count, sizeof(*rows));
    row titles;
    for (int i = 0; i < result->count; i++) {
        fill_row(result, findings, i, rows[i]);
        widen(widths, rows[i]);
    }
    memset(titles, 0, sizeof(titles));
    for (int i = 0; i < COLUMNS; i++) {
        if (widths[i] > 0)
            snprintf(titles[i], CELL_MAX, "%s", columns[i].title);
    }
    widen(widths, titles);
    put_row(titles, widths, out);
    for (int i = 0; i < result->count; i++)
        put_row(rows[i], widths, out);
}
