/* SPDX-License-Identifier: Apache-2.0 */
#include "model/settings/suggest.h"

#include <stdio.h>
#include <string.h>

void suggest_init(struct suggest *suggest, const char *typed, size_t length)
{
    *suggest = (struct suggest){.distance = OPTION_NAME_MAX};
    if (length >= OPTION_NAME_MAX)
        length = OPTION_NAME_MAX - 1;
    memcpy(suggest->typed, typed, length);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Rows of the usual table of distances. Swapped neighbours need the two rows before the current. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t rows[3][OPTION_NAME_MAX + 1];
    size_t a_length = strlen(a), b_length = strlen(b);
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3], *before = rows[(i - 1) % 3], *two_before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t change = before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = least(change, 1 + least(before[j], row[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], two_before[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

void suggest_offer(struct suggest *suggest, const char *known)
{
    size_t typed = strlen(suggest->typed);
    size_t letters = strspn(suggest->typed, "-");
    bool beginning = typed >= letters + 3 && strncmp(known, suggest->typed, typed) == 0;
    if (strlen(known) >= OPTION_NAME_MAX)
        return;
    size_t distance = edit_distance(suggest->typed, known);
    if (beginning)
        distance = least(distance, 1);
    bool shorter = beginning && strlen(known) < strlen(suggest->best);
    if (distance < suggest->distance || (distance == suggest->distance && shorter)) {
        suggest->distance = distance;
        snprintf(suggest->best, sizeof(suggest->best), "%s", known);
    }
}

const char *suggest_best(const struct suggest *suggest)
{
    size_t letters = strlen(suggest->typed) - strspn(suggest->typed, "-");
    size_t allowed = letters < 3 ? 0 : letters < 6 ? 1 : letters / 3;
    return suggest->best[0] != '\0' && suggest->distance <= allowed ? suggest->best : NULL;
}

void suggest_append(const struct suggest *suggest, struct buf *out)
{
    const char *best = suggest_best(suggest);
    if (best != NULL)
        buf_printf(out, ": did you mean '%s'?", best);
}
