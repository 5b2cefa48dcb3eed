/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/stall_text.h"

#include <string.h>

#define DIGITS_MAX 7

static bool contains(const char *line, size_t length, const char *text)
{
    return memmem(line, length, text, strlen(text)) != NULL;
}

static bool begins_with(const char *line, size_t length, const char *text)
{
    return length >= strlen(text) && memcmp(line, text, strlen(text)) == 0;
}

static void keep_name(struct stall_text *text, const char *from, size_t length)
{
    size_t kept = length < STALL_TEXT_NAME ? length : STALL_TEXT_NAME;
    const char *end = memchr(from, ',', kept);
    end = end != NULL ? end : memchr(from, ']', kept);
    kept = end != NULL ? (size_t)(end - from) : kept;
    memcpy(text->name, from, kept);
    text->name[kept] = '\0';
}

/* "2: [grad.1, grad.2]", in ascending order. */
static bool take_rank(struct stall_text *text, const char *line, size_t length)
{
    int rank = 0;
    size_t digits = 0;
    for (; digits < length && digits < DIGITS_MAX && line[digits] >= '0' && line[digits] <= '9';
         digits++)
        rank = rank * 10 + (line[digits] - '0');
    if (digits == 0 || !begins_with(line + digits, length - digits, ": ["))
        return false;
    if (text->count == 0)
        keep_name(text, line + digits + 3, length - digits - 3);
    bool follows = text->count == 0 || text->missing[text->count - 1] < rank;
    if (follows && text->count < STALL_TEXT_RANKS)
        text->missing[text->count++] = rank;
    return true;
}

bool stall_text_line(struct stall_text *text, const char *line, size_t length)
{
    if (length == 0)
        return text->inside; /* the second byte of "\r\n" */
    if (contains(line, length, "tensors were submitted to be reduced, gathered or broadcasted")) {
        *text = (struct stall_text){.inside = true,
                                    .listing = contains(line, length, "Missing ranks:")};
    } else if (text->inside && contains(line, length, "Missing ranks:")) {
        text->listing = true;
    } else if (!text->listing || !take_rank(text, line, length)) {
        text->listing = false;
        text->inside = begins_with(line, length, "libhvd: warning: rank") &&
                       contains(line, length, " for rank");
    }
    return text->inside;
}
