/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/ras_json.h"

#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

static bool ends_value(char byte)
{
    return isalnum((unsigned char)byte) || byte == '"' || byte == '}' || byte == ']';
}

/* A string can follow a value only behind a comma. */
static void put_commas(const char *text, size_t length, struct buf *out)
{
    bool inside = false;
    char last = '{';
    for (size_t i = 0; i < length; i++) {
        char byte = text[i];
        if (!inside && byte == '"' && ends_value(last))
            buf_putc(out, ',');
        if (inside && byte == '\\' && i + 1 < length) {
            buf_putc(out, byte);
            byte = text[++i];
        } else if (byte == '"') {
            inside = !inside;
        }
        buf_putc(out, byte);
        last = isspace((unsigned char)byte) ? last : byte;
    }
}

static void take_counts(const json_t *counts, struct ras_place *out)
{
    static const char *const keys[] = {
#define RAS_KEY(name, key, plural) key,
        RAS_OPERATION_LIST(RAS_KEY)
#undef RAS_KEY
    };
    for (size_t i = 0; i < RAS_OPERATIONS; i++) {
        json_int_t count = json_integer_value(json_object_get(counts, keys[i]));
        out->counts[i] = count > 0 ? count : 0;
    }
}

/* A number like "0x58860ee4db018a99". */
static uint64_t hash_of(const json_t *comm, const char *key)
{
    const char *text = json_string_value(json_object_get(comm, key));
    return text != NULL ? strtoull(text, NULL, 16) : 0;
}

static void take_rank(const json_t *rank, uint64_t comm, struct ras_report *out)
{
    const json_t *counts = json_object_get(rank, "collective_counts");
    const char *host = json_string_value(json_object_get(rank, "host"));
    if (!json_is_object(counts) || host == NULL || out->count == RAS_ENTRIES_MAX)
        return;
    out->entries = mem_resize_array(out->entries, out->count + 1, sizeof(*out->entries));
    struct ras_entry *entry = &out->entries[out->count++];
    *entry = (struct ras_entry){.place.comm = comm,
                                .pid = json_integer_value(json_object_get(rank, "pid"))};
    if (strlen(host) < sizeof(entry->host))
        memcpy(entry->host, host, strlen(host));
    take_counts(counts, &entry->place);
}

int ras_json_read(const char *text, size_t length, struct ras_report *out, struct error *err)
{
    struct buf repaired AUTO_BUF = BUF_INIT(2 * RAS_JSON_MAX);
    const char *begin = memchr(text, '{', length);
    json_error_t why;
    *out = (struct ras_report){.count = 0};
    if (begin == NULL || length > RAS_JSON_MAX)
        return error_set(err, "the answer of NCCL's RAS is not JSON");
    put_commas(begin, length - (size_t)(begin - text), &repaired);
    json_t *root = json_loadb(buf_text(&repaired), repaired.length, JSON_DISABLE_EOF_CHECK, &why);
    if (root == NULL && json_error_code(&why) == json_error_out_of_memory)
        mem_exhausted();
    const json_t *comms = json_object_get(root, "communicators");
    bool right = json_is_array(comms);
    for (size_t i = 0; i < json_array_size(comms); i++) {
        const json_t *comm = json_array_get(comms, i), *ranks = json_object_get(comm, "ranks");
        uint64_t hash = hash_of(comm, "hash") * 0x100000001b3 ^ hash_of(comm, "secondary_hash");
        for (size_t j = 0; j < json_array_size(ranks); j++)
            take_rank(json_array_get(ranks, j), hash, out);
    }
    json_decref(root);
    return right ? 0 : error_set(err, "the answer of NCCL's RAS has no communicators");
}

void ras_report_clear(struct ras_report *report)
{
    free(report->entries);
    *report = (struct ras_report){.count = 0};
}
