/* SPDX-License-Identifier: Apache-2.0 */
#include "features/torchrun/console.h"

#include <stdlib.h>
#include <string.h>

#define BOTH 3

/* A number below `limit`. Returns the text behind it, NULL: there is none. */
static const char *read_number(const char *at, int limit, int *out)
{
    int value = 0;
    if (*at < '0' || *at > '9')
        return NULL;
    for (; *at >= '0' && *at <= '9' && value < limit; at++)
        value = value * 10 + (*at - '0');
    *out = value;
    return value < limit ? at : NULL;
}

static void name_rank(struct streams *streams, int rank, int value)
{
    for (int i = streams->named; i <= rank; i++)
        streams->of[i] = streams->rest;
    if (rank >= streams->named)
        streams->named = rank + 1;
    streams->of[rank] = (unsigned char)value;
}

int streams_read(const char *text, struct streams *out)
{
    int value = 0, rank = 0;
    memset(out, 0, sizeof(*out));
    const char *at = text == NULL ? "0" : text, *end = read_number(at, BOTH + 1, &value);
    if (end != NULL && *end == '\0') {
        out->rest = (unsigned char)value;
        return 0;
    }
    while (*at != '\0') {
        at = read_number(at, CONSOLE_RANKS, &rank);
        at = at != NULL && *at == ':' ? read_number(at + 1, BOTH + 1, &value) : NULL;
        if (at == NULL || (*at != ',' && *at != '\0'))
            return -1;
        name_rank(out, rank, value);
        at += *at == ',';
    }
    return out->named > 0 ? 0 : -1;
}

int streams_read_filter(const char *text, struct streams *out)
{
    int rank = 0;
    memset(out, 0, sizeof(*out));
    out->rest = text == NULL ? BOTH : 0;
    for (const char *at = text == NULL ? "" : text; *at != '\0';) {
        at = read_number(at, CONSOLE_RANKS, &rank);
        if (at == NULL || (*at != ',' && *at != '\0'))
            return -1;
        name_rank(out, rank, BOTH);
        at += *at == ',';
    }
    return text != NULL && out->named == 0 ? -1 : 0;
}

bool streams_any(const struct streams *streams)
{
    bool any = streams->rest != 0;
    for (int i = 0; i < streams->named; i++)
        any = any || streams->of[i] != 0;
    return any;
}

static unsigned of(const struct streams *streams, int rank)
{
    return rank < streams->named ? streams->of[rank] : streams->rest;
}

static void put(unsigned shown, int rank, const char *range, struct buf *out)
{
    static const char *const streams[] = {"", ":stdout", ":stderr", ""};
    if (shown != 0)
        buf_printf(out, "%sl%d%s%s", out->length > 0 ? "," : "", rank, range, streams[shown]);
}

void console_ranks(const struct streams *redirected, const struct streams *tee,
                   const struct streams *filter, struct buf *out)
{
    int named = filter->named;
    bool all = true;
    named = redirected->named > named ? redirected->named : named;
    named = tee->named > named ? tee->named : named;
    for (int rank = 0; rank <= named; rank++) {
        unsigned shown = of(filter, rank) & ~(of(redirected, rank) & ~of(tee, rank));
        all = all && shown == BOTH;
        put(shown, rank, rank < named ? "" : "-", out);
    }
    if (all)
        buf_clear(out);
    else if (out->length == 0)
        buf_puts(out, "none");
}
