/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/pattern.h"

#include <ctype.h>
#include <string.h>

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static bool pattern_matches(const char *pattern, size_t length, const char *name)
{
    const char *end = pattern + length, *star = NULL, *retry = NULL;

    while (*name) {
        if (pattern < end && *pattern == '*') {
            star = ++pattern;
            retry = name;
        } else if (pattern < end && (*pattern == '?' || same(*pattern, *name))) {
            pattern++;
            name++;
        } else if (star) { /* the last star swallows one byte more */
            pattern = star;
            name = ++retry;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}

bool pattern_list_matches(const char *list, size_t length, const char *name)
{
    const char *end = list + length;
    bool matched = false;

    while (list < end) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        const char *stop = comma ? comma : end;
        bool negated = *list == '!';

        if (negated)
            list++;
        if (stop > list && pattern_matches(list, (size_t)(stop - list), name)) {
            if (negated)
                return false;
            matched = true;
        }
        list = comma ? comma + 1 : end;
    }
    return matched;
}
