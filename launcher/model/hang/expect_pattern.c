/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hang/expect_pattern.h"

#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The library keeps a state for each set of places in the pattern that it comes across. A new
 * start after so many bytes bounds that memory. */
#define FRESH_BYTES 65536

struct expect_pattern {
    char *text, *whole;
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

struct expect_pattern *expect_pattern_create(const char *text, struct error *err)
{
    regex_t alone;
    if (check(text, err) < 0 || compile(text, &alone, err) < 0)
        return NULL;
    regfree(&alone);
    struct expect_pattern *pattern = mem_alloc(sizeof(*pattern));
    pattern->text = mem_strdup(text);
    /* At one place only, the library needs one pass through the line. Otherwise it tries a match at
     * each byte. */
    pattern->whole = mem_printf("^.*(%s)", text);
    pattern->usable = compile(pattern->whole, &pattern->compiled, err) == 0;
    if (pattern->usable)
        return pattern;
    expect_pattern_destroy(pattern);
    return NULL;
}

void expect_pattern_destroy(struct expect_pattern *pattern)
{
    if (pattern == NULL)
        return;
    if (pattern->usable)
        regfree(&pattern->compiled);
    free(pattern->text);
    free(pattern->whole);
    free(pattern);
}

const char *expect_pattern_text(const struct expect_pattern *pattern)
{
    return pattern->text;
}

static void start_again(struct expect_pattern *pattern)
{
    struct error err = ERROR_INIT;
    if (pattern->usable)
        regfree(&pattern->compiled);
    pattern->usable = compile(pattern->whole, &pattern->compiled, &err) == 0;
    pattern->matched = 0;
}

bool expect_pattern_matches(struct expect_pattern *pattern, const char *line, size_t length)
{
    regmatch_t range = {.rm_so = 0, .rm_eo = (regoff_t)length};
    if (!pattern->usable || pattern->matched > FRESH_BYTES)
        start_again(pattern);
    pattern->matched += length;
    return pattern->usable && regexec(&pattern->compiled, line, 0, &range, REG_STARTEND) == 0;
}
