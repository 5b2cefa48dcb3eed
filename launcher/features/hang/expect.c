/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/expect.h"

#include <ctype.h>
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/parse.h"

/*
 * A regular expression that says whether a line matches, at a cost that is linear in the length of
 * the line. Pure. expect.h says what it accepts.
 */

#define EXPECT_REPEATS_MAX 1000

/* The library keeps a state for each set of places in the pattern that it comes across. A new
 * start after so many bytes bounds that memory. */
#define FRESH_BYTES 65536

struct expect_pattern {
    char *whole;
    regex_t compiled;
    bool usable;    /* memory may have run out for another start */
    size_t matched; /* bytes, since it was compiled */
};

/* Behind a bracket expression that begins at `at`, as in "[^]a[:digit:]-]". */
static const char *skip_bracket(const char *at)
{
    at += at[1] == '^' ? 2 : 1;
    at += *at == ']' ? 1 : 0;
    while (*at != '\0' && *at != ']') {
        bool named = *at == '[' && at[1] != '\0' && strchr(":.=", at[1]) != NULL;
        const char end[] = {at[1], ']', '\0'};
        const char *after = named ? strstr(at + 2, end) : NULL;
        at = after != NULL ? after + 2 : at + 1;
    }
    return *at == '\0' ? at : at + 1;
}

/* The larger number of "{3}", "{3,}" or "{3,5}"; 1: it is something else. */
static long repeats(const char *at)
{
    long most = 1;
    for (at++; isdigit((unsigned char)*at) || *at == ','; at++) {
        if (!isdigit((unsigned char)*at))
            continue;
        char *end;
        long value = strtol(at, &end, 10);
        most = value > most ? value : most;
        at = end - 1;
    }
    return *at == '}' ? most : 1;
}

static int check(const char *text, struct error *err)
{
    long total = 1, depth = 0;
    if (strlen(text) > EXPECT_PATTERN_MAX)
        return error_set(err, "it is longer than %d bytes", EXPECT_PATTERN_MAX);
    for (const char *at = text; *at != '\0';) {
        if (*at == '\\' && isdigit((unsigned char)at[1]))
            return error_set(err,
                             "references such as \\%c are not supported, because they can be "
                             "slow",
                             at[1]);
        depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
        if (depth < 0)
            return error_set(err, "a ')' has no '('; a backslash makes it an ordinary character");
        if (*at == '{') {
            long factor = repeats(at);
            total = factor > EXPECT_REPEATS_MAX ? factor : total * factor;
        }
        if (total > EXPECT_REPEATS_MAX)
            return error_set(err, "its repetitions {N} multiply to more than %d",
                             EXPECT_REPEATS_MAX);
        at = *at == '[' ? skip_bracket(at) : at[0] == '\\' && at[1] != '\0' ? at + 2 : at + 1;
    }
    return 0;
}

static int compile(const char *text, regex_t *out, struct error *err)
{
    char why[128];
    int code = regcomp(out, text, REG_EXTENDED | REG_NOSUB);
    if (code == 0)
        return 0;
    regerror(code, NULL, why, sizeof(why));
    return error_set(err, "%s", why);
}

/* -1: it is not a regular expression, or one that can be slow; `err` says why. */
static int pattern_init(struct expect_pattern *pattern, const char *text, struct error *err)
{
    regex_t alone;
    if (check(text, err) < 0 || compile(text, &alone, err) < 0)
        return -1;
    regfree(&alone);
    /* At one place only, the library needs one pass through the line. Otherwise it tries a match at
     * each byte. */
    pattern->whole = mem_printf("^.*(%s)", text);
    pattern->usable = compile(pattern->whole, &pattern->compiled, err) == 0;
    return pattern->usable ? 0 : -1;
}

static void start_again(struct expect_pattern *pattern)
{
    struct error err = ERROR_INIT;
    if (pattern->usable)
        regfree(&pattern->compiled);
    pattern->usable = compile(pattern->whole, &pattern->compiled, &err) == 0;
    pattern->matched = 0;
}

/* `line[length]` is a NUL; there may be others before it. */
static bool pattern_matches(struct expect_pattern *pattern, const char *line, size_t length)
{
    regmatch_t range = {.rm_so = 0, .rm_eo = (regoff_t)length};
    if (!pattern->usable || pattern->matched > FRESH_BYTES)
        start_again(pattern);
    pattern->matched += length;
    return pattern->usable && regexec(&pattern->compiled, line, 0, &range, REG_STARTEND) == 0;
}

/* The expectations. */

#define STREAMS 2

struct item {
    struct expect is;
    char *text; /* is.pattern */
    struct expect_pattern pattern;
    int64_t since_ms;
    bool armed;
};

/* The line that has begun on a stream. */
struct started {
    char *bytes; /* EXPECT_LINE_MAX; NULL: none yet */
    size_t length;
};

struct expects {
    struct item items[EXPECT_MAX];
    int count;
    struct started *lines; /* STREAMS for each seat up to the highest that has written */
    size_t line_count;
    char text[EXPECT_LINE_MAX + 1]; /* the line that is being matched, and a NUL */
};

static int wrong(struct error *err, const char *place, const char *text, const char *why)
{
    return error_usage(err, "%s: '%s': %s", place, text, why);
}

/* "step [0-9]+:10m" */
static int add(struct expects *expects, const char *place, const char *text, struct error *err)
{
    const char *colon = strrchr(text, ':');
    struct item *item = &expects->items[expects->count];
    struct error why = ERROR_INIT;
    if (expects->count == EXPECT_MAX)
        return error_usage(err, "%s: at most %d of these are allowed", place, EXPECT_MAX);
    if (colon == NULL || colon == text ||
        parse_duration_ms(colon + 1, &item->is.limit_ms, &why) < 0 || item->is.limit_ms == 0)
        return wrong(err, place, text, "expected REGEX:TIME, as in 'step [0-9]+:10m'");
    item->is.pattern = item->text = mem_strndup(text, (size_t)(colon - text));
    expects->count++;
    if (pattern_init(&item->pattern, item->text, &why) < 0)
        return wrong(err, place, item->text, why.text);
    if (pattern_matches(&item->pattern, "", 0))
        return wrong(err, place, item->text, "every line matches it, even an empty one");
    return 0;
}

int expects_create(const struct strv *texts, const char *place, struct expects **out,
                   struct error *err)
{
    *out = NULL;
    if (texts->count == 0)
        return 0;
    struct expects *expects = mem_alloc(sizeof(*expects));
    for (size_t i = 0; i < texts->count; i++) {
        if (add(expects, place, texts->items[i], err) < 0) {
            expects_destroy(expects);
            return -1;
        }
    }
    *out = expects;
    return 0;
}

void expects_destroy(struct expects *expects)
{
    if (expects == NULL)
        return;
    for (int i = 0; i < expects->count; i++) {
        struct item *item = &expects->items[i];
        if (item->pattern.usable)
            regfree(&item->pattern.compiled);
        free(item->pattern.whole);
        free(item->text);
    }
    for (size_t i = 0; i < expects->line_count; i++)
        free(expects->lines[i].bytes);
    free(expects->lines);
    free(expects);
}

static int count_of(const struct expects *expects)
{
    return expects == NULL ? 0 : expects->count;
}

int64_t expects_shortest_ms(const struct expects *expects)
{
    int64_t shortest = 0;
    for (int i = 0; i < count_of(expects); i++) {
        int64_t limit = expects->items[i].is.limit_ms;
        shortest = shortest == 0 || limit < shortest ? limit : shortest;
    }
    return shortest;
}

static struct started *line_of(struct expects *expects, int seat, int stream)
{
    size_t needed = ((size_t)seat + 1) * STREAMS;
    expects->lines =
        mem_reach(expects->lines, &expects->line_count, needed, sizeof(*expects->lines));
    return &expects->lines[needed - STREAMS + (size_t)stream];
}

static void take_line(struct expects *expects, const char *line, size_t length, int64_t now_ms)
{
    memcpy(expects->text, line, length);
    expects->text[length] = '\0';
    for (int i = 0; i < expects->count; i++) {
        struct item *item = &expects->items[i];
        if (!pattern_matches(&item->pattern, expects->text, length))
            continue;
        item->armed = item->is.met = true;
        item->is.last_ms = item->since_ms = now_ms;
    }
}

static void keep(struct started *line, const char *bytes, size_t length)
{
    if (line->bytes == NULL)
        line->bytes = mem_alloc(EXPECT_LINE_MAX);
    size_t room = EXPECT_LINE_MAX - line->length;
    size_t kept = length < room ? length : room;
    memcpy(line->bytes + line->length, bytes, kept);
    line->length += kept;
}

static size_t line_length(const char *bytes, size_t length)
{
    const char *newline = memchr(bytes, '\n', length);
    size_t until = newline != NULL ? (size_t)(newline - bytes) : length;
    const char *other = memchr(bytes, '\r', until);
    return other != NULL ? (size_t)(other - bytes) : until;
}

void expects_bytes(struct expects *expects, int seat, int stream, const void *bytes, size_t length,
                   int64_t now_ms)
{
    struct started *line = line_of(expects, seat, stream);
    const char *at = bytes;
    while (length > 0) {
        size_t part = line_length(at, length);
        bool whole = part < length;
        if (!whole || line->length > 0)
            keep(line, at, part);
        if (whole && line->length > 0)
            take_line(expects, line->bytes, line->length, now_ms);
        else if (whole && part > 0)
            take_line(expects, at, part < EXPECT_LINE_MAX ? part : EXPECT_LINE_MAX, now_ms);
        line->length = whole ? 0 : line->length;
        at += part + whole;
        length -= part + whole;
    }
}

void expects_disarm(struct expects *expects)
{
    for (int i = 0; i < count_of(expects); i++)
        expects->items[i].armed = false;
}

void expects_restart(struct expects *expects, int64_t now_ms)
{
    for (int i = 0; i < count_of(expects); i++)
        expects->items[i].since_ms = now_ms;
}

bool expects_is_overdue(const struct expects *expects, int which, int64_t seen_ms)
{
    const struct item *item = &expects->items[which];
    return item->armed && seen_ms - item->since_ms >= item->is.limit_ms;
}

int expects_overdue(const struct expects *expects, int64_t seen_ms)
{
    for (int i = 0; i < count_of(expects); i++) {
        if (expects_is_overdue(expects, i, seen_ms))
            return i;
    }
    return -1;
}

const struct expect *expects_at(const struct expects *expects, int which)
{
    return which < count_of(expects) ? &expects->items[which].is : NULL;
}
