/* SPDX-License-Identifier: Apache-2.0 */
#include "core/message.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"

enum { FLAGS_END = 8, REQUEST_BYTES_MIN = 7 };
#define CYCLE_NS_END ((uint64_t)1 << 40) /* some minutes: sums with it do not overflow */

void report_begin(struct buf *out, unsigned flags, uint64_t seen, const struct bits *ids,
                  size_t count)
{
    put_number(out, flags);
    put_number(out, seen);
    put_bits(out, ids);
    put_number(out, count);
}

/* So many things of at least `bytes` bytes may follow. */
static size_t get_count(struct reader *in, size_t bytes)
{
    return (size_t)get_number_below(in, in->left / bytes + 1);
}

int report_read(const void *bytes, size_t length, const struct message_limits *limits,
                struct report *out)
{
    struct reader in = {bytes, length, false};
    *out = (struct report){.flags = (unsigned)get_number_below(&in, FLAGS_END)};
    out->seen = get_number(&in);
    get_bits(&in, limits->ids, &out->ids);
    size_t count = get_count(&in, REQUEST_BYTES_MIN);
    out->requests = mem_array(count, sizeof *out->requests);
    while (out->count < count && !in.bad)
        if (request_read(&in, limits->ranks, &out->requests[out->count]) == 0)
            out->count++;
    if (!in.bad && in.left == 0)
        return 0;
    report_destroy(out);
    return -1;
}

void report_destroy(struct report *report)
{
    for (size_t i = 0; i < report->count; i++)
        request_destroy(&report->requests[i]);
    free(report->requests);
    bits_destroy(&report->ids);
    *report = (struct report){0};
}

/* What each kind of item has. */
enum item_field {
    HAS_IDS = 1,
    HAS_PARTS = 2,
    HAS_KEY = 4,
    HAS_STATUS = 8,
    HAS_RANK = 16,
    HAS_TUNING = 32
};

static unsigned fields_of(enum item_kind kind)
{
    switch (kind) {
    case ITEM_RUN: return HAS_IDS | HAS_PARTS;
    case ITEM_ERROR: return HAS_KEY | HAS_STATUS;
    case ITEM_FORGET:
    case ITEM_GROUP: return HAS_IDS;
    case ITEM_JOINED: return HAS_RANK;
    case ITEM_TUNE: return HAS_TUNING;
    case ITEM_END: return HAS_STATUS;
    default: return 0;
    }
}

static void put_point(struct buf *out, const struct tune_point *point)
{
    put_number(out, point->threshold);
    put_number(out, (uint64_t)point->cycle_ns);
}

static void put_tuning(struct buf *out, const struct tuning *tuning)
{
    put_point(out, &tuning->tried);
    put_point(out, &tuning->next);
    put_real(out, tuning->score);
    put_real(out, tuning->best_score);
    put_number(out, tuning->settled);
}

static struct tune_point get_point(struct reader *in)
{
    struct tune_point point = {.threshold = (size_t)get_number(in)};
    point.cycle_ns = (int64_t)get_number_below(in, CYCLE_NS_END);
    return point;
}

static struct tuning get_tuning(struct reader *in)
{
    struct tuning tuning = {.tried = get_point(in)};
    tuning.next = get_point(in);
    tuning.score = get_real(in);
    tuning.best_score = get_real(in);
    tuning.settled = get_number_below(in, 2) != 0;
    return tuning;
}

void item_write(const struct item *item, struct buf *out)
{
    unsigned fields = fields_of(item->kind);
    put_number(out, item->kind);
    if (fields & HAS_IDS)
        put_bits(out, &item->ids);
    if (fields & HAS_PARTS)
        put_number(out, item->count);
    for (size_t i = 0; (fields & HAS_PARTS) && i < item->count; i++) {
        put_number(out, item->parts[i].id + 1); /* 0: none */
        request_write(&item->parts[i].request, out);
    }
    if (fields & HAS_KEY)
        put_text(out, item->key);
    if (fields & HAS_STATUS) {
        put_signed(out, item->status);
        put_text(out, item->text);
    }
    if (fields & HAS_RANK)
        put_number(out, (uint64_t)item->rank);
    if (fields & HAS_TUNING)
        put_tuning(out, &item->tuning);
}

static void read_parts(struct reader *in, const struct message_limits *limits, struct item *out)
{
    size_t count = get_count(in, REQUEST_BYTES_MIN);
    out->parts = mem_array(count, sizeof *out->parts);
    while (out->count < count && !in->bad) {
        struct item_part *part = &out->parts[out->count];
        part->id = (size_t)get_number_below(in, (uint64_t)limits->ids + 1) - 1;
        if (request_read(in, limits->ranks, &part->request) == 0)
            out->count++;
    }
}

static bool is_failure(int64_t status)
{
#define STATUS_IS(name, value, text) || status == (value)
    return status < 0 && (false HVD_STATUS_LIST(STATUS_IS));
#undef STATUS_IS
}

bool item_read(struct reader *in, const struct message_limits *limits, struct item *out)
{
    *out = (struct item){0};
    if (in->bad || in->left == 0)
        return false;
    out->kind = (enum item_kind)get_number_below(in, ITEMS);
    unsigned fields = fields_of(out->kind);
    if (fields & HAS_IDS)
        get_bits(in, limits->ids, &out->ids);
    if (fields & HAS_PARTS)
        read_parts(in, limits, out);
    if (fields & HAS_KEY)
        out->key = get_text(in, HVD_NAME_MAX + 1);
    if (fields & HAS_STATUS) {
        int64_t status = get_signed(in);
        in->bad = in->bad || !is_failure(status);
        out->status = in->bad ? HVD_ERR_ENGINE : (enum hvd_status)status;
        out->text = get_text(in, ERROR_TEXT_MAX - 1);
    }
    if (fields & HAS_RANK)
        out->rank = (int32_t)get_number_below(in, limits->ranks);
    if (fields & HAS_TUNING)
        out->tuning = get_tuning(in);
    return !in->bad;
}

void item_destroy(struct item *item)
{
    for (size_t i = 0; i < item->count; i++)
        request_destroy(&item->parts[i].request);
    free(item->parts);
    free(item->key);
    free(item->text);
    bits_destroy(&item->ids);
    *item = (struct item){0};
}
