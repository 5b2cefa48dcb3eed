/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/rank_list.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/plain.h"
#include "base/text.h"
#include "model/binding/binding.h"

/* Ranks as text: "rank 3", "ranks 0-7,9". Pure. */

#define SHOWN_RANGES_MAX 8

void rank_ranges(const int *ranks, int count, struct buf *out)
{
    buf_puts(out, count == 1 ? "rank " : "ranks ");
    rank_ranges_bare(ranks, count, out);
}

void rank_ranges_bare(const int *ranks, int count, struct buf *out)
{
    for (int first = 0, shown = 0; first < count; shown++) {
        int last = first;
        while (last + 1 < count && ranks[last + 1] == ranks[last] + 1)
            last++;
        if (shown == SHOWN_RANGES_MAX) {
            buf_puts(out, ",...");
            return;
        }
        buf_printf(out, last > first ? "%s%d-%d" : "%s%d", shown > 0 ? "," : "", ranks[first],
                   ranks[last]);
        first = last + 1;
    }
}

/* The places. */

#define PLACE_NONE INT32_MIN
#define COUNTED_MAX 1000000 /* +nK: K is below */

/* The place of `rank`; makes it, and all below it, as PLACE_NONE. Borrowed until the next call. */
static struct rank_place *place_at(struct rank_list *list, size_t rank)
{
    if (rank >= list->room) {
        size_t twice = list->room * 2;
        list->room = rank < 8 ? 16 : twice > rank ? twice : rank + 1;
        list->items = mem_resize_array(list->items, list->room, sizeof(*list->items));
    }
    for (; list->count <= rank; list->count++)
        list->items[list->count] = (struct rank_place){.host = PLACE_NONE};
    return &list->items[rank];
}

/* `+n3`; -1: it is none. */
static int64_t counted(const char *text, size_t length)
{
    char digits[16] = "";
    int64_t number = -1;
    if (length < 3 || length - 2 >= sizeof(digits) || text[0] != '+' ||
        (text[1] != 'n' && text[1] != 'N') || text[2] < '0' || text[2] > '9')
        return -1;
    memcpy(digits, text + 2, length - 2);
    return parse_int(digits, 0, COUNTED_MAX - 1, &number, NULL) < 0 ? -1 : number;
}

/* Reads a host, counted or by its name. An IPv6 address may be in brackets. */
static int read_host(struct rank_list *list, const char *text, size_t length, int *out,
                     struct error *err)
{
    int64_t number = counted(text, length);
    bool brackets = length > 2 && text[0] == '[' && text[length - 1] == ']';
    if (number >= 0) {
        *out = (int)(-1 - number);
        return 0;
    }
    const char *bare = brackets ? text + 1 : text;
    size_t bare_length = brackets ? length - 2 : length;
    if (!name_is_safe(bare, bare_length))
        return error_usage(
            err, "'%s' is not a host; expected a name of the host list, or +n0 for its first host",
            plain_show(text, length).text);
    char *name AUTO_FREE = mem_strndup(bare, bare_length);
    const struct host *host = hosts_add(&list->names, name, 1, false);
    *out = (int)(host - list->names.items);
    return 0;
}

static int unknown(const struct rank_list *list, size_t rank, const struct host_list *hosts,
                   struct error *err)
{
    const struct rank_place *place = &list->items[rank];
    char *where AUTO_FREE =
        place->line > 0 ? mem_printf("%s:%d", list->source, place->line) : mem_strdup(list->source);
    if (place->host < 0)
        return error_usage(
            err, "%s: rank %zu is to run on +n%d, but the last of the job's %zu host%s is +n%zu",
            where, rank, -1 - place->host, hosts->count, hosts->count == 1 ? "" : "s",
            hosts->count - 1);
    return error_usage(err,
                       "%s: rank %zu is to run on %s, which is not among the %zu host%s of the "
                       "job; add it to -H or the hostfile",
                       where, rank, list->names.items[place->host].name, hosts->count,
                       hosts->count == 1 ? "" : "s");
}

int *rank_list_resolve(const struct rank_list *list, const struct host_list *hosts,
                       struct error *err)
{
    int *known AUTO_FREE = mem_array(list->names.count + 1, sizeof(*known));
    int *out = mem_array(list->count, sizeof(*out));
    for (size_t i = 0; i < list->names.count; i++) {
        const struct host *host = hosts_find(hosts, list->names.items[i].name);
        known[i] = host == NULL ? -1 : (int)(host - hosts->items);
    }
    for (size_t rank = 0; rank < list->count; rank++) {
        int host = list->items[rank].host;
        out[rank] = host >= 0 ? known[host] : -1 - host;
        if (out[rank] >= 0 && (size_t)out[rank] < hosts->count)
            continue;
        unknown(list, rank, hosts, err);
        free(out);
        return NULL;
    }
    return out;
}

void rank_list_destroy(struct rank_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].cpus);
    free(list->items);
    hosts_destroy(&list->names);
    free(list->source);
    *list = (struct rank_list){.count = 0};
}

#define CPUS_MAX 4096   /* bytes of one list */
#define SHORTEST_LINE 9 /* bytes of "rank 0=a\n" */

static bool is_word(const char *word, size_t length, const char *wanted)
{
    return length == strlen(wanted) && strncasecmp(word, wanted, length) == 0;
}

static int take_number(struct text_rest *rest, size_t most, int64_t *out, struct error *err)
{
    const char *word = NULL;
    size_t length = text_take_word(rest, '=', &word);
    char digits[16] = "";
    if (length < sizeof(digits))
        memcpy(digits, word, length);
    if (digits[0] < '0' || digits[0] > '9' || parse_int(digits, 0, INT32_MAX, out, NULL) < 0)
        return error_usage(err, "'%s' is not a rank; expected a whole number, 0 or more",
                           plain_show(word, length).text);
    if ((size_t)*out < most)
        return 0;
    return error_usage(err,
                       "rank %lld, but the file is too short to name all ranks below it; expected "
                       "ranks from 0 on without a gap",
                       (long long)*out);
}

static int take_cpus(struct text_rest *rest, char **out, struct error *err)
{
    const char *word = NULL;
    if (rest->at == rest->end)
        return 0;
    size_t length = text_take_word(rest, '=', &word);
    if (!(is_word(word, length, "slot") || is_word(word, length, "slots")) ||
        !text_take_byte(rest, '='))
        return error_usage(err, "'%s' is unknown here; expected slot=CPUS",
                           plain_show(word, length).text);
    length = text_take_word(rest, '=', &word);
    if (rest->at < rest->end || length == 0 || length > CPUS_MAX)
        return error_usage(
            err,
            "expected one list of CPUs without blanks at the end of the line, as in slot=0-3,8");
    *out = mem_strndup(word, length);
    if (binding_cpus_parse(*out, NULL, NULL, NULL) == 0)
        return 0;
    return error_usage(
        err,
        "'%s' is not a list of CPUs; expected one as in 0-3,8 or 1:0-2 (package 1, cores 0 to 2); "
        "no machine has a core above %d",
        plain_show(*out, strlen(*out)).text, CPU_NUMBER_MAX);
}

/* Without its comment. The text of an error does not name the line yet. */
static int parse_line(struct text_rest *rest, int line, size_t most, struct rank_list *out,
                      struct error *err)
{
    const char *word = NULL;
    int64_t rank = 0;
    size_t length = text_take_word(rest, '=', &word);
    if (!is_word(word, length, "rank"))
        return error_usage(err, "expected 'rank N=HOST slot=CPUS'");
    if (take_number(rest, most, &rank, err) < 0)
        return -1;
    if (!text_take_byte(rest, '='))
        return error_usage(err, "expected =HOST after the rank");
    if ((size_t)rank < out->count && out->items[rank].line > 0)
        return error_usage(err, "rank %lld has a line already, line %d; expected each rank once",
                           (long long)rank, out->items[rank].line);
    length = text_take_word(rest, '=', &word);
    int host = 0;
    if (read_host(out, word, length, &host, err) < 0)
        return -1;
    struct rank_place *place = place_at(out, (size_t)rank);
    *place = (struct rank_place){.host = host, .line = line};
    return take_cpus(rest, &place->cpus, err);
}

static int check_gaps(const struct rank_list *list, struct error *err)
{
    size_t gap = 0;
    while (gap < list->count && list->items[gap].line > 0)
        gap++;
    if (gap == list->count)
        return 0;
    return error_usage(err,
                       "%s: no line for rank %zu, but line %d has rank %zu; expected ranks from 0 "
                       "on without a gap",
                       list->source, gap, list->items[list->count - 1].line, list->count - 1);
}

int rankfile_parse(const char *bytes, size_t length, const char *file, struct rank_list *out,
                   struct error *err)
{
    const char *end = bytes + length, *at = bytes;
    out->source = mem_strdup(file);
    if (length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
        at += 3; /* editors on other systems write a byte order mark */
    if (length > 0 && memchr(bytes, '\0', length) != NULL)
        return error_usage(err,
                           "%s is not a text file: it holds a NUL byte; expected lines as in 'rank "
                           "0=node1 slot=0-3'",
                           file);
    const char *line = NULL;
    size_t left = 0;
    for (int number = 1; text_next_line(&at, end, &line, &left); number++) {
        text_trim_comment(&line, &left);
        struct text_rest rest = text_rest_of(line, left);
        if (left > 0 && parse_line(&rest, number, length / SHORTEST_LINE + 1, out, err) < 0)
            return error_wrap(err, "%s:%d: '%s'", file, number, plain_show(line, left).text);
    }
    if (out->count > 0)
        return check_gaps(out, err);
    return error_usage(err, "%s names no rank; expected lines as in 'rank 0=node1 slot=0-3'", file);
}
