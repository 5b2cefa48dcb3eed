/* SPDX-License-Identifier: Apache-2.0 */
#include "mutate.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"

#define DICTIONARY_MAX ((size_t)1 << 20)
#define CHANGES_MAX 5

static size_t below(struct mutate_corpus *corpus, size_t limit)
{
    uint64_t x = corpus->state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    corpus->state = x;
    return limit == 0 ? 0 : (size_t)((x >> 11) % limit);
}

static void add(struct mutate_input **list, size_t *count, const void *bytes, size_t length)
{
    *list = mem_resize_array(*list, *count + 1, sizeof(**list));
    uint8_t *copy = mem_alloc(length + 1);
    memcpy(copy, bytes, length);
    (*list)[(*count)++] = (struct mutate_input){copy, length};
}

void mutate_add(struct mutate_corpus *corpus, const void *bytes, size_t length)
{
    add(&corpus->inputs, &corpus->count, bytes, length);
}

static int hex(char digit)
{
    const char *digits = "0123456789abcdef";
    const char *at = digit == '\0' ? NULL : strchr(digits, digit | 0x20);
    return at == NULL ? -1 : (int)(at - digits);
}

/* What stands between the quotes of a line; the result is no longer than the line. -1: there are no
 * quotes. */
static ssize_t unquote(const char *line, size_t length, uint8_t *out)
{
    const char *from = memchr(line, '"', length);
    const char *end = line + length;
    size_t made = 0;
    if (from == NULL)
        return -1;
    for (from++; from < end && *from != '"'; from++) {
        if (*from == '\\' && end - from > 3 && from[1] == 'x' && hex(from[2]) >= 0 &&
            hex(from[3]) >= 0) {
            out[made++] = (uint8_t)(hex(from[2]) << 4 | hex(from[3]));
            from += 3;
            continue;
        }
        from += *from == '\\' && end - from > 1;
        out[made++] = (uint8_t)*from;
    }
    return from < end ? (ssize_t)made : -1;
}

int mutate_read_words(struct mutate_corpus *corpus, const char *path, struct error *err)
{
    AUTO_BUF struct buf text = BUF_INIT(DICTIONARY_MAX);
    if (fd_read_file(path, &text, err) < 0)
        return -1;
    for (const char *line = buf_text(&text); *line != '\0'; line += *line == '\n') {
        size_t length = strcspn(line, "\n");
        uint8_t *word AUTO_FREE = mem_alloc(length + 1);
        ssize_t made = *line == '#' ? 0 : unquote(line, length, word);
        if (made < 0 && length > 0)
            return error_set(err, "%s: no word in quotes: %.*s", path, (int)length, line);
        if (made > 0)
            add(&corpus->words, &corpus->word_count, word, (size_t)made);
        line += length;
    }
    return 0;
}

/* Replaces `old` bytes at `at` by these. */
static void replace(struct mutate_input *input, size_t at, size_t old, const uint8_t *bytes,
                    size_t length)
{
    if (input->length - old + length > MUTATE_SIZE_MAX)
        return;
    memmove(input->bytes + at + length, input->bytes + at + old, input->length - at - old);
    if (length > 0)
        memcpy(input->bytes + at, bytes, length);
    input->length = input->length - old + length;
}

static void change_byte(struct mutate_corpus *corpus, struct mutate_input *input, size_t at)
{
    static const uint8_t borders[] = {0, 1, 0x7f, 0x80, 0xff, '\n', ' ', '-', ',', '0', '9'};
    if (at >= input->length)
        return;
    switch (below(corpus, 3)) {
    case 0: input->bytes[at] ^= (uint8_t)(1u << below(corpus, 8)); break;
    case 1: input->bytes[at] = borders[below(corpus, sizeof(borders))]; break;
    default: input->bytes[at] = (uint8_t)below(corpus, 256); break;
    }
}

static void change(struct mutate_corpus *corpus, struct mutate_input *input)
{
    size_t at = below(corpus, input->length + 1);
    size_t rest = input->length - at;
    size_t length = below(corpus, rest < 32 ? rest + 1 : 32);
    uint8_t copy[32];
    switch (below(corpus, 7)) {
    case 0:
    case 1: change_byte(corpus, input, at); break;
    case 2: replace(input, at, length, NULL, 0); break;
    case 3:
        memcpy(copy, input->bytes + at, length);
        replace(input, below(corpus, input->length + 1), 0, copy, length);
        break;
    case 4:
        copy[0] = (uint8_t)below(corpus, 256);
        replace(input, at, 0, copy, 1);
        break;
    case 5:
        if (corpus->word_count > 0) {
            const struct mutate_input *word = &corpus->words[below(corpus, corpus->word_count)];
            bool over = below(corpus, 2) == 0 && word->length <= rest;
            replace(input, at, over ? word->length : 0, word->bytes, word->length);
        }
        break;
    default: /* the end of another one */
        if (corpus->count > 1) {
            const struct mutate_input *other = &corpus->inputs[below(corpus, corpus->count)];
            size_t from = below(corpus, other->length + 1);
            replace(input, at, rest, other->bytes + from, other->length - from);
        }
        break;
    }
}

void mutate_next(struct mutate_corpus *corpus, struct mutate_input *out)
{
    out->length = 0;
    if (corpus->count > 0) {
        const struct mutate_input *base = &corpus->inputs[below(corpus, corpus->count)];
        memcpy(out->bytes, base->bytes, base->length);
        out->length = base->length;
    }
    for (size_t i = below(corpus, CHANGES_MAX); i < CHANGES_MAX; i++)
        change(corpus, out);
}

void mutate_destroy(struct mutate_corpus *corpus)
{
    for (size_t i = 0; i < corpus->count; i++)
        free(corpus->inputs[i].bytes);
    for (size_t i = 0; i < corpus->word_count; i++)
        free(corpus->words[i].bytes);
    free(corpus->inputs);
    free(corpus->words);
}
