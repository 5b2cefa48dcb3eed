/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that all hosts share, printed once. If the hosts differ, the values with the names of
 * their hosts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/strv.h"
#include "driver/check/text.h"

#define WIDTH 96
#define FACT_MAX 128
#define NAMES_SHOWN 4

struct fact {
    const char *title; /* before the value; "": the value says it */
    void (*write)(const struct check_result *result, const struct check_host *host, char *text);
};

static void write_version(const struct check_result *result, const struct check_host *host,
                          char *text)
{
    (void)result;
    snprintf(text, FACT_MAX, "%s", host->hello->version);
}

static void write_machine(const struct check_result *result, const struct check_host *host,
                          char *text)
{
    (void)result;
    snprintf(text, FACT_MAX, "%s", host->hello->machine);
}

static void write_system(const struct check_result *result, const struct check_host *host,
                         char *text)
{
    (void)result;
    snprintf(text, FACT_MAX, "%s", host->facts->system);
}

static void write_kernel(const struct check_result *result, const struct check_host *host,
                         char *text)
{
    (void)result;
    snprintf(text, FACT_MAX, "%s", host->facts->kernel);
}

/* "OpenPMIx 4.2.2 (PMIx Standard: ...)": only the number. */
static void write_pmix(const struct check_result *result, const struct check_host *host, char *text)
{
    (void)result;
    const char *version = host->facts->pmix;
    size_t skip = strcspn(version, "0123456789");
    size_t length = strcspn(version + skip, " ,)");
    snprintf(text, FACT_MAX, "%.*s", (int)length, length > 0 ? version + skip : "none");
    if (length == 0)
        snprintf(text, FACT_MAX, "none");
}

static void write_hwloc(const struct check_result *result, const struct check_host *host,
                        char *text)
{
    (void)result;
    const char *api = host->facts->hwloc; /* it cannot tell its release: 2.9.0 has the API of 2.8 */
    snprintf(text, FACT_MAX, "%s%s", api[0] == '\0' ? "none" : "API ", api);
}

static void write_driver(const struct check_result *result, const struct check_host *host,
                         char *text)
{
    (void)result;
    snprintf(text, FACT_MAX, "%s", host->facts->gpu_driver);
}

static void write_adapters(const struct check_result *result, const struct check_host *host,
                           char *text)
{
    size_t length = 0;
    (void)result;
    text[0] = '\0';
    for (size_t i = 0; i < host->facts->n_adapters && length + 40 < FACT_MAX; i++) {
        const char *adapter = host->facts->adapters[i];
        int printed = snprintf(text + length, FACT_MAX - length, "%s%.*s", i > 0 ? " " : "",
                               (int)strcspn(adapter, " "), adapter);
        length += printed > 0 ? (size_t)printed : 0;
    }
}

static void put_limit(uint64_t value, bool bytes, char *text)
{
    if (value == UINT64_MAX)
        snprintf(text, FACT_MAX, "unlimited");
    else if (bytes)
        check_size_text(value, text);
    else
        snprintf(text, FACT_MAX, "%" PRIu64, value);
}

static void write_nofile(const struct check_result *result, const struct check_host *host,
                         char *text)
{
    put_limit(check_host_limit(host, "nofile", result->nofile), false, text);
}

static void write_nproc(const struct check_result *result, const struct check_host *host,
                        char *text)
{
    put_limit(check_host_limit(host, "nproc", result->nproc), false, text);
}

static void write_memlock(const struct check_result *result, const struct check_host *host,
                          char *text)
{
    put_limit(check_host_limit(host, "memlock", result->memlock), true, text);
}

static const struct fact facts[] = {
    {"hvdrun", write_version},    {"", write_machine},          {"", write_system},
    {"kernel", write_kernel},     {"PMIx", write_pmix},         {"hwloc", write_hwloc},
    {"GPU driver", write_driver}, {"adapters", write_adapters}, {"nofile", write_nofile},
    {"nproc", write_nproc},       {"memlock", write_memlock},
};

#define FACTS (sizeof(facts) / sizeof(facts[0]))

typedef char fact_text[FACT_MAX];

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
static void put_value(const struct check_result *result, const fact_text *values, int first,
                      bool *seen, struct strv *words)
{
    struct buf names AUTO_BUF = BUF_INIT((size_t)64 << 10);
    int count = 0;
    for (int i = first; i < result->count; i++) {
        if (result->hosts[i].facts == NULL || strcmp(values[i], values[first]) != 0)
            continue;
        seen[i] = true;
        if (count++ < NAMES_SHOWN)
            buf_printf(&names, "%s%s", count > 1 ? " " : "", result->hosts[i].name);
    }
    if (count > NAMES_SHOWN)
        buf_printf(&names, " and %d more", count - NAMES_SHOWN);
    strv_printf(words, "%s (%s)", values[first][0] == '\0' ? "none" : values[first],
                buf_text(&names));
}

static void put_different(const struct check_result *result, const struct fact *fact,
                          const fact_text *values, struct buf *out)
{
    struct strv words AUTO_STRV = STRV_INIT;
    bool *seen AUTO_FREE = mem_array((size_t)result->count, sizeof(*seen));
    char title[64];
    for (int i = 0; i < result->count; i++) {
        if (result->hosts[i].facts != NULL && !seen[i])
            put_value(result, values, i, seen, &words);
    }
    snprintf(title, sizeof(title), "%s:", fact->title[0] == '\0' ? "hosts" : fact->title);
    put_wrapped(title, &words, out);
}

/* Fills the values; true: they are all the same. */
static bool fill_values(const struct check_result *result, const struct fact *fact,
                        fact_text *values, int *first)
{
    bool same = true;
    *first = -1;
    for (int i = 0; i < result->count; i++) {
        if (result->hosts[i].facts == NULL)
            continue;
        fact->write(result, &result->hosts[i], values[i]);
        if (*first < 0)
            *first = i;
        same = same && strcmp(values[i], values[*first]) == 0;
    }
    return same;
}

void check_text_facts(const struct check_result *result, struct buf *out)
{
    struct strv common AUTO_STRV = STRV_INIT;
    struct buf different AUTO_BUF = BUF_INIT((size_t)1 << 20);
    fact_text *values AUTO_FREE = mem_array((size_t)result->count, sizeof(*values));
    int heard = 0, first;
    for (int i = 0; i < result->count; i++)
        heard += result->hosts[i].facts != NULL;
    for (size_t i = 0; i < FACTS && heard > 0; i++) {
        if (!fill_values(result, &facts[i], values, &first))
            put_different(result, &facts[i], values, &different);
        else if (values[first][0] != '\0')
            strv_printf(&common, "%s%s%s", facts[i].title, facts[i].title[0] == '\0' ? "" : " ",
                        values[first]);
    }
    if (common.count > 0)
        put_wrapped(heard == 1 ? "on the host:" : "on all hosts:", &common, out);
    buf_puts(out, buf_text(&different));
}
