/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

int parse_int(const char *text, int64_t min, int64_t max, int64_t *out, struct error *err)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    bool whole = end != text && *end == '\0' && !isspace((unsigned char)text[0]);
    if (!whole)
        return error_set(err, "'%s' is not a whole number", text);
    if (errno == ERANGE || value < min || value > max)
        return error_set(err, "%s is out of range: expected %lld to %lld", text, (long long)min,
                         (long long)max);
    *out = value;
    return 0;
}

int parse_double(const char *text, double min, double max, double *out, struct error *err)
{
    char *end = NULL;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || isspace((unsigned char)text[0]) || !isfinite(value))
        return error_set(err, "'%s' is not a number", text);
    if (errno == ERANGE || value < min || value > max)
        return error_set(err, "%s is out of range: expected %g to %g", text, min, max);
    *out = value;
    return 0;
}

int parse_bool(const char *text, bool *out, struct error *err)
{
    static const char *const yes[] = {"1", "yes", "true", "on"};
    static const char *const no[] = {"0", "no", "false", "off"};
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
            *out = strcasecmp(text, yes[i]) == 0;
            return 0;
        }
    }
    return error_set(err, "'%s' is neither yes nor no", text);
}

/* A number followed by one of `units` ("" allowed); out = number * factor, rounded. */
static int parse_scaled(const char *text, const char *const *units, const double *factors,
                        size_t count, double *out)
{
    char *end = NULL;
    double value = strtod(text, &end);
    bool digits = isdigit((unsigned char)text[0]) || text[0] == '.';
    if (!digits || end == text || !isfinite(value) || strpbrk(text, "xXpP") != NULL)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(end, units[i]) == 0) {
            *out = value * factors[i];
            return 0;
        }
    }
    return -1;
}

/* Rounds a number that is not negative. llround() would be the only reason to load libm. */
static int64_t nearest(double value)
{
    int64_t whole = (int64_t)value;
    return value - (double)whole >= 0.5 ? whole + 1 : whole;
}

int parse_duration_ms(const char *text, int64_t *out, struct error *err)
{
    static const char *const units[] = {"", "ms", "s", "m", "h", "d"};
    static const double factors[] = {1e3, 1, 1e3, 6e4, 3.6e6, 8.64e7};
    double value = 0;
    if (parse_scaled(text, units, factors, 6, &value) < 0)
        return error_set(err, "'%s' is not a duration (examples: 30, 1.5s, 250ms, 5m, 2h)", text);
    if (value > 3.2e12) /* a hundred years */
        return error_set(err, "'%s' is longer than a hundred years", text);
    *out = nearest(value);
    return 0;
}

int parse_ranks(const char *text, int64_t max, void (*each)(void *context, int64_t rank),
                void *context, struct error *err)
{
    const char *at = text;
    do {
        char *end = NULL;
        if (!isdigit((unsigned char)*at))
            return error_set(err, "'%s' is not a list of ranks (example: 0,4-7)", text);
        errno = 0;
        long long first = strtoll(at, &end, 10);
        long long last = first;
        if (*end == '-' && isdigit((unsigned char)end[1]))
            last = strtoll(end + 1, &end, 10);
        if (errno == ERANGE || last < first || last > max)
            return error_set(err, "'%s': ranks go from 0 to %lld, in rising order", text,
                             (long long)max);
        for (long long rank = first; each != NULL && rank <= last; rank++)
            each(context, rank);
        at = end;
        if (*at == '\0')
            return 0;
    } while (*at++ == ',');
    return error_set(err, "'%s' is not a list of ranks (example: 0,4-7)", text);
}

bool name_is_safe(const char *name, size_t length)
{
    if (length == 0 || length > 255 || name[0] == '-')
        return false;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (c == '\0' || strchr("._:%-", c) == NULL))
            return false;
    }
    return true;
}

/* strptime() alone would take "2026-1-2", too. */
int parse_utc(const char *text, int64_t *out)
{
    static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%MZ", "%Y-%m-%dT%H:%M:%SZ"};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm when = {.tm_year = 0};
        char again[UTC_TEXT_SIZE];
        if (strptime(text, forms[i], &when) == NULL || when.tm_year < 70 ||
            strftime(again, sizeof(again), forms[i], &when) == 0 || strcmp(again, text) != 0)
            continue;
        *out = timegm(&when);
        return 0;
    }
    return -1;
}

void utc_text(int64_t when_s, char out[UTC_TEXT_SIZE])
{
    time_t seconds = (time_t)when_s;
    struct tm when = {.tm_year = 0};
    gmtime_r(&seconds, &when);
    if (strftime(out, UTC_TEXT_SIZE, "%FT%TZ", &when) == 0)
        out[0] = '\0'; /* a year of six digits */
}
