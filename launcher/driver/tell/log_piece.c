/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/log_piece.h"

#include <ctype.h>
#include <string.h>

#include "driver/tell/recent.h"

#define MS_MAX (INT64_MAX / 100)

void log_head_append(const struct log_head *head, struct buf *out)
{
    char stream = head->is_stderr ? 'e' : 'o';
    if (head->goes_on)
        stream = (char)toupper(stream);
    buf_printf(out, "%lld ", (long long)head->wall_ms);
    if (head->rank == RECENT_LAUNCHER)
        buf_putc(out, '-');
    else
        buf_printf(out, "%d", head->rank);
    buf_printf(out, " %c %zu\n", stream, head->length);
}

/* A number at `*at`, which moves behind it. -1: there is none, or it is too large. */
static int64_t take_number(const char **at, const char *end, int64_t most)
{
    int64_t number = 0;
    const char *first = *at;
    while (*at < end && isdigit((unsigned char)**at)) {
        number = number * 10 + (**at - '0');
        if (number > most)
            return -1;
        (*at)++;
    }
    return *at == first ? -1 : number;
}

static bool take(const char **at, const char *end, char wanted)
{
    if (*at == end || **at != wanted)
        return false;
    (*at)++;
    return true;
}

bool log_head_parse(const char *bytes, size_t length, struct log_head *out)
{
    const char *at = bytes, *end = bytes + length;
    int64_t wall_ms = take_number(&at, end, MS_MAX);
    if (wall_ms < 0 || !take(&at, end, ' '))
        return false;
    bool is_launcher = take(&at, end, '-');
    int64_t rank = is_launcher ? RECENT_LAUNCHER : take_number(&at, end, INT32_MAX);
    if ((rank < 0 && !is_launcher) || !take(&at, end, ' ') || at == end)
        return false;
    char stream = *at++;
    if (stream == '\0' || strchr("oOeE", stream) == NULL || !take(&at, end, ' '))
        return false;
    int64_t bytes_after = take_number(&at, end, (int64_t)LOG_PIECE_MAX);
    if (bytes_after < 0 || at != end)
        return false;
    *out = (struct log_head){.wall_ms = wall_ms,
                             .rank = (int)rank,
                             .is_stderr = tolower(stream) == 'e',
                             .goes_on = isupper((unsigned char)stream) != 0,
                             .length = (size_t)bytes_after};
    return true;
}
