/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/packing.h"

#define ZLIB_CONST /* its input is only read */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/parse.h"

#define LEVEL 1
/* No byte of zlib's becomes more than this; so the peer cannot make much memory of few bytes. */
#define GROWTH_MAX 1032

static void *take(void *context, unsigned count, unsigned size)
{
    (void)context;
    return mem_array(count, size);
}

static void give(void *context, void *block)
{
    (void)context;
    free(block);
}

bool packing_shrink(const void *bytes, size_t length, struct buf *out)
{
    size_t room = length - length / 8;
    z_stream stream = {.zalloc = take, .zfree = give};
    if (length == 0 || length > PACKING_MAX || deflateInit(&stream, LEVEL) != Z_OK)
        return false;
    stream.next_in = (const Bytef *)bytes;
    stream.avail_in = (uInt)length;
    stream.next_out = buf_reserve(out, room);
    stream.avail_out = (uInt)room;
    bool smaller = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    if (smaller)
        buf_commit(out, stream.total_out);
    deflateEnd(&stream);
    return smaller;
}

void *packing_expand(const void *bytes, size_t length, size_t size, size_t limit)
{
    z_stream stream = {.zalloc = take, .zfree = give};
    if (size == 0 || size > limit || length > limit || size / GROWTH_MAX > length ||
        inflateInit(&stream) != Z_OK)
        return NULL;
    uint8_t *all = mem_alloc(size);
    stream.next_in = (const Bytef *)bytes;
    stream.avail_in = (uInt)length;
    stream.next_out = all;
    stream.avail_out = (uInt)size;
    bool whole = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_in == 0 &&
                 stream.total_out == size;
    inflateEnd(&stream);
    if (whole)
        return all;
    free(all);
    return NULL;
}

#define RUN_TEXT_MAX 256 /* of an entry that counts: it may stand for many */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Adds 1 to the number that ends at `text + end`. A number of nines gets one digit more, for which
 * there is room. Returns the length of the text; 0: no number ends there. */
static size_t count_up(char *text, size_t length, size_t end)
{
    size_t at = end;
    while (at > 0 && text[at - 1] == '9')
        text[--at] = '0';
    if (at > 0 && is_digit(text[at - 1])) {
        text[at - 1]++;
        return length;
    }
    if (at == end)
        return 0;
    memmove(text + at + 1, text + at, length - at + 1);
    text[at] = '1';
    return length + 1;
}

/* How many bytes both end with. When a text counts to the next, the last digit differs: what is
 * equal after it is the tail. */
static size_t common_end(const char *one, size_t one_length, const char *two, size_t two_length)
{
    size_t tail = 0;
    while (tail < one_length && tail < two_length &&
           one[one_length - 1 - tail] == two[two_length - 1 - tail])
        tail++;
    return tail;
}

/* How many texts are equal to the first, itself too. */
static size_t equal_length(char *const *texts, size_t count)
{
    size_t run = 1;
    while (run < count && strcmp(texts[run], texts[0]) == 0)
        run++;
    return run;
}

/* How many of at least two texts count up from the first, itself too. */
static size_t counting_length(char *const *texts, size_t count, size_t *tail)
{
    char text[RUN_TEXT_MAX];
    size_t length = strlen(texts[0]), run = 1;
    memcpy(text, texts[0], length + 1);
    *tail = common_end(text, length, texts[1], strlen(texts[1]));
    while (run < count && length < sizeof(text) - 1) {
        length = count_up(text, length, length - *tail);
        if (length == 0 || strcmp(text, texts[run]) != 0)
            break;
        run++;
    }
    return run;
}

void text_runs_pack(char *const *texts, size_t count, struct strv *out)
{
    size_t run;
    for (size_t i = 0; i < count; i += run) {
        size_t tail = 0;
        bool fits = strlen(texts[i]) < RUN_TEXT_MAX - 1;
        run = fits ? equal_length(texts + i, count - i) : 1;
        if (run > 1) {
            strv_printf(out, "%s\t%zu", texts[i], run);
            continue;
        }
        if (fits && i + 1 < count)
            run = counting_length(texts + i, count - i, &tail);
        if (run > 1)
            strv_printf(out, "%s\t%zu\t%zu", texts[i], run, tail);
        else
            strv_add(out, texts[i]);
    }
}

size_t number_runs_pack(const uint32_t *numbers, size_t count, uint32_t *pairs)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (used == 0 || pairs[used - 2] != numbers[i]) {
            pairs[used++] = numbers[i];
            pairs[used++] = 0;
        }
        pairs[used - 1]++;
    }
    return used;
}

/* Appends the entries of one packed text. false: it is none, or has more than `max`. */
static bool expand_text(const char *packed, size_t max, struct strv *out)
{
    AUTO_STRV struct strv parts = STRV_INIT;
    for (const char *at = packed; at != NULL; at = *at == '\0' ? NULL : at + 1) {
        size_t length = strcspn(at, "\t");
        strv_add_n(&parts, at, length);
        at += length;
    }
    if (parts.count == 1) {
        strv_add(out, packed);
        return max > 0;
    }
    char text[RUN_TEXT_MAX + 1];
    size_t length = strlen(parts.items[0]);
    int64_t count, tail = 0;
    struct error err = ERROR_INIT;
    if (parts.count > 3 || length >= RUN_TEXT_MAX ||
        parse_int(parts.items[1], 2, (int64_t)max, &count, &err) < 0 ||
        (parts.count == 3 && parse_int(parts.items[2], 0, (int64_t)length, &tail, &err) < 0))
        return false;
    memcpy(text, parts.items[0], length + 1);
    for (int64_t i = 0; i < count; i++) {
        if (i > 0 && parts.count == 3)
            length = count_up(text, length, length - (size_t)tail);
        if (length >= RUN_TEXT_MAX || (length == 0 && parts.count == 3))
            return false;
        strv_add(out, text);
    }
    return true;
}

int text_runs_expand(char ***texts, size_t *count, size_t max)
{
    struct strv all = STRV_INIT;
    for (size_t i = 0; i < *count; i++)
        if (!expand_text((*texts)[i], max - all.count, &all)) {
            strv_destroy(&all);
            return -1;
        }
    for (size_t i = 0; i < *count; i++)
        free((*texts)[i]);
    free(*texts);
    *texts = all.items;
    *count = all.count;
    return 0;
}

int number_runs_expand(uint32_t **numbers, size_t *count, size_t max)
{
    size_t wanted = 0;
    for (size_t i = 1; i < *count; i += 2) {
        if ((*numbers)[i] == 0 || (*numbers)[i] > max - wanted)
            return -1;
        wanted += (*numbers)[i];
    }
    if (*count % 2 != 0)
        return -1;
    uint32_t *all = wanted == 0 ? NULL : mem_array(wanted, sizeof(*all));
    size_t used = 0;
    for (size_t i = 0; i < *count; i += 2)
        for (uint32_t n = 0; n < (*numbers)[i + 1]; n++)
            all[used++] = (*numbers)[i];
    free(*numbers);
    *numbers = all;
    *count = wanted;
    return 0;
}
