/* SPDX-License-Identifier: Apache-2.0 */
#include "output/labels.h"

#include <stdlib.h>

#include "base/mem.h"
#include "output/label.h"

#define LABEL_BYTES_MAX (1024 * 1024)

bool labels_wanted(const struct output_config *config)
{
    return !config->no_label || config->timestamp;
}

int labels_init(struct labels *labels, const struct output_config *config, struct error *err)
{
    buf_init(&labels->scratch, LABEL_BYTES_MAX);
    if (!config->no_label) {
        const char *template = config->label != NULL ? config->label : LABEL_DEFAULT;
        labels->label = label_compile(template, err);
        if (labels->label == NULL)
            return error_wrap(err, "--label");
    }
    labels->timestamp = config->timestamp;
    labels->timed = config->timestamp ||
                    (labels->label != NULL && (label_keys(labels->label) & LABEL_TIME) != 0);
    return 0;
}

void labels_clear(struct labels *labels)
{
    label_destroy(labels->label);
    buf_destroy(&labels->scratch);
}

static void render(struct labels *labels, const struct seat_stream *own, bool color)
{
    static const char *const colors[] = {"36", "33", "35", "32", "34",
                                         "96", "93", "95", "92", "94"};
    struct label_facts facts = seat_facts(own);
    struct buf *out = &labels->scratch;
    buf_clear(out);
    if (labels->timestamp)
        label_timestamp(facts.wall_ns, out);
    if (labels->label == NULL) {
        buf_puts(out, labels->timestamp ? " " : "");
        return;
    }
    if (color)
        buf_printf(out, "\033[%sm",
                   colors[(size_t)facts.rank % (sizeof(colors) / sizeof(*colors))]);
    label_render(labels->label, &facts, out);
    buf_puts(out, color ? "\033[0m" : "");
}

void labels_select(struct labels *labels, struct seat_stream *own, bool color)
{
    if (labels->timed || own->label == NULL) {
        render(labels, own, color);
        labels->text = buf_text(&labels->scratch);
        labels->length = labels->scratch.length;
        if (labels->timed)
            return;
        own->label = mem_dup(labels->text, labels->length + 1);
        own->label_length = labels->length;
    }
    labels->text = own->label;
    labels->length = own->label_length;
}

/* Seats to ranks: the same bits in a static job, and most of the time in others. */
static void append_group_ranks(const struct seats *seats, const uint64_t *said, struct buf *out)
{
    int ranks = 0;
    for (int i = 0; i < seats->count; i++)
        if (seats->all[i]->rank >= ranks)
            ranks = seats->all[i]->rank + 1;
    uint64_t *set AUTO_FREE = mem_array(((size_t)ranks + 63) / 64, sizeof(*set));
    for (int i = 0; i < seats->count; i++) {
        int rank = seats->all[i]->rank;
        if ((said[i / 64] >> (i % 64) & 1) != 0)
            set[rank / 64] |= (uint64_t)1 << (rank % 64);
    }
    collapse_ranks(set, ranks, out);
}

void labels_select_group(struct labels *labels, const struct seats *seats,
                         const struct collapse_line *line)
{
    struct buf *out = &labels->scratch;
    buf_clear(out);
    if (labels->timestamp)
        label_timestamp(seats->all[line->first_rank]->streams[line->stream].wall_ns, out);
    if (labels->label != NULL) {
        buf_putc(out, '[');
        append_group_ranks(seats, line->ranks, out);
        buf_putc(out, ']');
    }
    if (out->length > 0)
        buf_puts(out, labels->label != NULL ? ": " : " ");
    labels->text = buf_text(out);
    labels->length = out->length;
}
