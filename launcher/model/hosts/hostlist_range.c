/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hosts/hostlist_range.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 255
#define DIGITS_MAX 12

struct expansion {
    char name[NAME_MAX_BYTES + 1]; /* what is built so far */
    size_t length;
    const char *end; /* of the text */
    bool ranged;
    size_t *budget;
    int (*each)(void *context, const char *name, struct error *err);
    void *context;
    struct error *err;
};

struct number_range {
    int64_t first, last;
    int width; /* 0: as many digits as the number needs */
};

static int expand_from(struct expansion *x, const char *at);

static int malformed(struct expansion *x)
{
    return error_usage(x->err,
                       "a malformed range; expected numbers in brackets, as in node[01-16,20]");
}

static int append(struct expansion *x, const char *bytes, size_t length)
{
    if (length > NAME_MAX_BYTES - x->length)
        return error_usage(x->err,
                           "longer than the %d bytes of a host name; expected a shorter one",
                           NAME_MAX_BYTES);
    memcpy(x->name + x->length, bytes, length);
    x->length += length;
    x->name[x->length] = '\0';
    return 0;
}

static int emit(struct expansion *x)
{
    if (x->ranged) {
        if (*x->budget == 0)
            return error_usage(x->err, "the ranges expand to too many hosts; expected fewer");
        (*x->budget)--;
    }
    return x->each(x->context, x->name, x->err);
}

/* Digits at `at`; returns where they end, NULL when there are none or too many. */
static const char *read_number(const char *at, const char *end, int64_t *out)
{
    const char *start = at;
    int64_t value = 0;
    while (at < end && *at >= '0' && *at <= '9' && at - start < DIGITS_MAX)
        value = value * 10 + (*at++ - '0');
    bool more = at < end && *at >= '0' && *at <= '9';
    if (at == start || more)
        return NULL;
    *out = value;
    return at;
}

/* `01-16` or `7` at `at`; returns where it ends, NULL when it is malformed. */
static const char *read_range(const char *at, const char *end, struct number_range *out)
{
    struct number_range range = {0};
    const char *stop = read_number(at, end, &range.first);
    if (stop == NULL)
        return NULL;
    bool padded = *at == '0' && stop - at > 1;
    range.width = padded ? (int)(stop - at) : 0;
    range.last = range.first;
    if (stop < end && *stop == '-') {
        const char *second = stop + 1;
        const char *after = read_number(second, end, &range.last);
        if (after == NULL || range.last < range.first)
            return NULL;
        /* [1-016] says two widths at once: refuse to guess */
        if (*second == '0' && after - second > 1 && after - second != stop - at)
            return NULL;
        stop = after;
    }
    *out = range;
    return stop;
}

static int expand_range(struct expansion *x, const struct number_range *range, const char *rest)
{
    size_t before = x->length;
    for (int64_t value = range->first; value <= range->last; value++) {
        char digits[32];
        int length = snprintf(digits, sizeof(digits), "%0*lld", range->width, (long long)value);
        if (append(x, digits, (size_t)length) < 0 || expand_from(x, rest) < 0)
            return -1;
        x->length = before;
    }
    return 0;
}

/* Depth is bounded by the name's length, since each set adds a digit at least. */
static int expand_from(struct expansion *x, const char *at)
{
    size_t left = (size_t)(x->end - at);
    const char *open = memchr(at, '[', left);
    if (append(x, at, open == NULL ? left : (size_t)(open - at)) < 0)
        return -1;
    if (open == NULL)
        return emit(x);
    x->ranged = true;
    const char *close = memchr(open, ']', (size_t)(x->end - open));
    if (close == NULL)
        return error_usage(x->err, "a bracket is not closed; expected a range as in node[01-16]");
    size_t before = x->length;
    const char *item = open + 1;
    for (;;) {
        struct number_range range;
        item = read_range(item, close, &range);
        if (item == NULL || (item < close && *item != ','))
            return malformed(x);
        if (expand_range(x, &range, close + 1) < 0)
            return -1;
        x->length = before;
        if (item == close)
            return 0;
        item++;
    }
}

int hostlist_expand(const char *text, size_t length, size_t *budget,
                    int (*each)(void *context, const char *name, struct error *err), void *context,
                    struct error *err)
{
    struct expansion x = {
        .end = text + length,
        .budget = budget,
        .each = each,
        .context = context,
        .err = err,
    };
    return expand_from(&x, text);
}
