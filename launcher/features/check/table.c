/* SPDX-License-Identifier: Apache-2.0 */
#include "features/check/table.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

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
