/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/rankfile.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/plain.h"
#include "base/status.h"
#include "base/text.h"

#define CPUS_MAX 4096       /* bytes of one list */
#define SHORTEST_LINE 9     /* bytes of "rank 0=a\n" */
#define CPU_NUMBER_DIGITS 6 /* of a core or package */

/* The rest of a line. */
struct rest {
    const char *at, *end;
};

static void skip_blanks(struct rest *rest)
{
    while (rest->at < rest->end && blank_is(*rest->at))
        rest->at++;
}

/* The bytes up to a blank or `=`. */
static size_t take_word(struct rest *rest, const char **word)
{
    skip_blanks(rest);
    *word = rest->at;
    while (rest->at < rest->end && !blank_is(*rest->at) && *rest->at != '=')
        rest->at++;
    return (size_t)(rest->at - *word);
}

static bool take_equals(struct rest *rest)
{
    skip_blanks(rest);
    bool there = rest->at < rest->end && *rest->at == '=';
    rest->at += there;
    return there;
}

static bool is_word(const char *word, size_t length, const char *wanted)
{
    return length == strlen(wanted) && strncasecmp(word, wanted, length) == 0;
}

/* -1: none, or one that is too long. */
static long take_cpu(const char **at)
{
    long number = 0;
    const char *start = *at;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        if (*at - start < CPU_NUMBER_DIGITS)
            number = number * 10 + (**at - '0');
        else
            number = -1;
    }
    return *at == start ? -1 : number;
}

/* `0-3`, `4`, `*`, each with a package in front or not. */
static bool skip_item(const char **at)
{
    const char *package = *at;
    if (take_cpu(&package) >= 0 && *package == ':')
        *at = package + 1;
    if (**at == '*') {
        (*at)++;
        return true;
    }
    long first = take_cpu(at);
    if (first < 0 || **at != '-')
        return first >= 0;
    (*at)++;
    return take_cpu(at) >= first;
}

static int check_cpus(const char *text, struct error *err)
{
    const char *at = text;
    bool good = skip_item(&at);
    while (good && (*at == ',' || *at == ';')) {
        at++;
        good = skip_item(&at);
    }
    if (good && *at == '\0')
        return 0;
    return error_status(err, STATUS_USAGE,
                        "'%s' is not a list of CPUs; expected one as in 0-3,8 or 1:0-2 (package 1, "
                        "cores 0 to 2)",
                        plain_show(text, strlen(text)).text);
}

static int take_number(struct rest *rest, size_t most, int64_t *out, struct error *err)
{
    const char *word = NULL;
    size_t length = take_word(rest, &word);
    char digits[16] = "";
    if (length < sizeof(digits))
        memcpy(digits, word, length);
    if (digits[0] < '0' || digits[0] > '9' || parse_int(digits, 0, INT32_MAX, out, NULL) < 0)
        return error_status(err, STATUS_USAGE,
                            "'%s' is not a rank; expected a whole number, 0 or more",
                            plain_show(word, length).text);
    if ((size_t)*out < most)
        return 0;
    return error_status(err, STATUS_USAGE,
                        "rank %lld, but the file is too short to name all ranks below it; expected "
                        "ranks from 0 on without a gap",
                        (long long)*out);
}

static int take_cpus(struct rest *rest, char **out, struct error *err)
{
    const char *word = NULL;
    skip_blanks(rest);
    if (rest->at == rest->end)
        return 0;
    size_t length = take_word(rest, &word);
    if (!(is_word(word, length, "slot") || is_word(word, length, "slots")) || !take_equals(rest))
        return error_status(err, STATUS_USAGE, "'%s' is unknown here; expected slot=CPUS",
                            plain_show(word, length).text);
    length = take_word(rest, &word);
    skip_blanks(rest);
    if (rest->at < rest->end || length == 0 || length > CPUS_MAX)
        return error_status(err, STATUS_USAGE,
                            "expected one list of CPUs without blanks at the end of the line, as "
                            "in slot=0-3,8");
    *out = mem_strndup(word, length);
    return check_cpus(*out, err);
}

/* Without its comment. The text of an error does not name the line yet. */
static int parse_line(struct rest *rest, int line, size_t most, struct rank_list *out,
                      struct error *err)
{
    const char *word = NULL;
    int64_t rank = 0;
    size_t length = take_word(rest, &word);
    if (!is_word(word, length, "rank"))
        return error_status(err, STATUS_USAGE, "expected 'rank N=HOST slot=CPUS'");
    if (take_number(rest, most, &rank, err) < 0)
        return -1;
    if (!take_equals(rest))
        return error_status(err, STATUS_USAGE, "expected =HOST after the rank");
    if ((size_t)rank < out->count && out->items[rank].line > 0)
        return error_status(err, STATUS_USAGE,
                            "rank %lld has a line already, line %d; expected each rank once",
                            (long long)rank, out->items[rank].line);
    length = take_word(rest, &word);
    int host = 0;
    if (rank_list_host(out, word, length, &host, err) < 0)
        return -1;
    struct rank_place *place = rank_list_at(out, (size_t)rank);
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
    return error_status(err, STATUS_USAGE,
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
        return error_status(err, STATUS_USAGE,
                            "%s is not a text file: it holds a NUL byte; expected lines as in "
                            "'rank 0=node1 slot=0-3'",
                            file);
    for (int number = 1; at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *next = stop == NULL ? end : stop + 1;
        const char *line_end = stop == NULL ? end : stop;
        const char *comment = memchr(at, '#', (size_t)(line_end - at));
        struct rest rest = {at, comment == NULL ? line_end : comment};
        skip_blanks(&rest);
        struct plain_shown shown = plain_show(rest.at, (size_t)(rest.end - rest.at));
        if (rest.at < rest.end &&
            parse_line(&rest, number, length / SHORTEST_LINE + 1, out, err) < 0)
            return error_wrap(err, "%s:%d: '%s'", file, number, shown.text);
        at = next;
    }
    if (out->count > 0)
        return check_gaps(out, err);
    return error_status(err, STATUS_USAGE,
                        "%s names no rank; expected lines as in 'rank 0=node1 slot=0-3'", file);
}
