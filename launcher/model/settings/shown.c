/* SPDX-License-Identifier: Apache-2.0 */
#include "model/settings/shown.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BOTH 3 /* a bit for each stream */

struct entry {
    bool local;
    long long first, last;
    unsigned streams;
};

/* Returns the text behind the entry. NULL: it is wrong. */
static const char *read_entry(const char *at, struct entry *out)
{
    static const char *const words[] = {":stdout", ":stderr"};
    char *end = NULL;
    *out = (struct entry){.local = *at == 'l', .streams = BOTH};
    at += out->local;
    if (!isdigit((unsigned char)*at))
        return NULL;
    errno = 0;
    out->first = out->last = strtoll(at, &end, 10);
    if (end[0] == '-' && isdigit((unsigned char)end[1])) {
        out->last = strtoll(end + 1, &end, 10);
    } else if (end[0] == '-') {
        out->last = INT64_MAX;
        end++;
    }
    for (unsigned i = 0; i < 2; i++) {
        size_t length = strlen(words[i]);
        if (strncmp(end, words[i], length) == 0) {
            out->streams = 1U << i;
            end += length;
            break;
        }
    }
    bool ends = *end == ',' || *end == '\0';
    return ends && errno != ERANGE ? end : NULL;
}

int shown_check(const char *text, int64_t max, struct error *err)
{
    struct entry entry;
    if (strcmp(text, "none") == 0)
        return 0;
    for (const char *at = text;; at++) {
        at = read_entry(at, &entry);
        if (at == NULL)
            return error_set(err, "'%s' is not a list of ranks (example: 0,4-7)", text);
        bool open = entry.last == INT64_MAX;
        if (entry.last < entry.first || (open ? entry.first : entry.last) > max)
            return error_set(err, "'%s': ranks go from 0 to %lld, in rising order", text,
                             (long long)max);
        if (*at == '\0')
            return 0;
    }
}

bool shown_has(const char *text, int rank, int local_rank, int stream)
{
    struct entry entry;
    if (text == NULL)
        return true;
    for (const char *at = text; strcmp(text, "none") != 0; at++) {
        at = read_entry(at, &entry);
        int number = entry.local ? local_rank : rank;
        if (at != NULL && number >= entry.first && number <= entry.last &&
            (entry.streams & (1U << stream)) != 0)
            return true;
        if (at == NULL || *at == '\0')
            return false;
    }
    return false;
}
