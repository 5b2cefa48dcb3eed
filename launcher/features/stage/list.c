/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "features/stage/stage.h"

#define NAME_MAX_BYTES 3500 /* with the store in front of it, it stays below PATH_MAX */
#define FILE_MAX ((uint64_t)1 << 60)
#define NANOSECONDS_MAX 999999999

int stage_list_put(struct buf *out, const struct stage_file *file)
{
    size_t target = file->kind == 'l' ? strlen(file->target) + 1 : 0;
    char hash[SHA256_TEXT_ROOM];
    if (out->length + strlen(file->name) + target + 200 > STAGE_LIST_MAX)
        return -1;
    buf_putc(out, file->kind);
    if (stage_file_is_plain(file)) {
        text_hex(file->hash, SHA256_SIZE, hash);
        buf_printf(out, " %" PRIu64 " %" PRId64 " %u %s", file->size, file->seconds,
                   file->nanoseconds, hash);
    } else {
        buf_puts(out, " -");
    }
    buf_putc(out, ' ');
    buf_append(out, file->name, strlen(file->name) + 1);
    if (target > 0)
        buf_append(out, file->target, target);
    return 0;
}

/* What is left of the text. */
struct reading {
    const char *at, *end;
};

static bool take_number(struct reading *in, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;
    const char *begin = in->at;
    while (in->at < in->end && *in->at >= '0' && *in->at <= '9') {
        uint64_t digit = (uint64_t)(*in->at++ - '0');
        if (value > (max - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (in->at == begin)
        return false;
    bool is_short = in->at - begin == 1 || *begin != '0'; /* one way to write a number */
    bool ends = is_short && in->at < in->end && *in->at == ' ';
    in->at += ends;
    *out = value;
    return ends;
}

static int digit_of(char letter)
{
    if (letter >= '0' && letter <= '9')
        return letter - '0';
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

static bool take_hash(struct reading *in, uint8_t out[SHA256_SIZE])
{
    if ((size_t)(in->end - in->at) <= (size_t)2 * SHA256_SIZE || in->at[2 * SHA256_SIZE] != ' ')
        return false;
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        int high = digit_of(in->at[2 * i]), low = digit_of(in->at[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    in->at += 2 * SHA256_SIZE + 1;
    return true;
}

static const char *take_text(struct reading *in)
{
    const char *text = in->at;
    const char *end = memchr(text, '\0', (size_t)(in->end - text));
    if (end == NULL || end == text || end - text > NAME_MAX_BYTES)
        return NULL;
    in->at = end + 1;
    return text;
}

/* 1970 and later: what is older counts as 1970. */
static bool take_file(struct reading *in, struct stage_file *file)
{
    uint64_t seconds, nanoseconds;
    if (!take_number(in, FILE_MAX, &file->size) || !take_number(in, INT64_MAX / 4, &seconds) ||
        !take_number(in, NANOSECONDS_MAX, &nanoseconds) || !take_hash(in, file->hash))
        return false;
    file->seconds = (int64_t)seconds;
    file->nanoseconds = (uint32_t)nanoseconds;
    return true;
}

static bool take_record(struct reading *in, struct stage_file *file)
{
    *file = (struct stage_file){.kind = *in->at++};
    if (in->at == in->end || *in->at != ' ')
        return false;
    in->at++;
    if (stage_file_is_plain(file)) {
        if (!take_file(in, file))
            return false;
    } else {
        bool empty = in->end - in->at > 2 && in->at[0] == '-' && in->at[1] == ' ';
        if (!empty || (file->kind != 'd' && file->kind != 'l'))
            return false;
        in->at += 2;
    }
    file->name = take_text(in);
    file->target = file->name != NULL && file->kind == 'l' ? take_text(in) : NULL;
    return file->name != NULL && (file->kind != 'l' || file->target != NULL);
}

/* No part of it is empty, "." or "..". */
static bool name_is_good(const char *name)
{
    while (true) {
        size_t length = strcspn(name, "/");
        if (length == 0 || length > NAME_MAX || (length == 1 && name[0] == '.') ||
            (length == 2 && name[0] == '.' && name[1] == '.'))
            return false;
        if (name[length] == '\0')
            return true;
        name += length + 1;
    }
}

/* `folders` has those that came. The map's own values are never NULL: the names. */
static bool place_is_good(struct map *names, struct map *folders, const struct stage_file *file,
                          bool is_root)
{
    const char *slash = strrchr(file->name, '/');
    if (!name_is_good(file->name) || is_root != (slash == NULL))
        return false;
    if (slash != NULL &&
        map_get(folders, map_bytes(file->name, (size_t)(slash - file->name))) == NULL)
        return false;
    if (file->kind == 'd')
        map_put(folders, map_text(file->name), (void *)(uintptr_t)file->name);
    return map_put(names, map_text(file->name), (void *)(uintptr_t)file->name) == NULL;
}

static bool place_contents(struct stage_list *list)
{
    bool good = true;
    list->contents = mem_array(list->count, sizeof(*list->contents));
    for (size_t i = 0; good && i < list->count; i++) {
        struct stage_file *file = &list->files[i];
        file->at = list->stream;
        list->stream += file->size;
        if (file->size > 0)
            list->contents[list->content_count++] = i;
        good = list->stream <= FILE_MAX;
    }
    return good;
}

static bool read_records(struct stage_list *list)
{
    struct reading in = {list->text, list->text + list->length};
    struct map names = {.count = 0}, folders = {.count = 0};
    bool good = list->length > 0;
    size_t room = 0;
    while (good && in.at < in.end) {
        struct stage_file file;
        good = take_record(&in, &file) && place_is_good(&names, &folders, &file, list->count == 0);
        MEM_ADD_ROOM(list->files, list->count, room) = file;
    }
    map_clear(&names, NULL);
    map_clear(&folders, NULL);
    return good && place_contents(list);
}

int stage_list_read(char *text, size_t length, struct stage_list *out, struct error *err)
{
    *out = (struct stage_list){.text = text, .length = length};
    if (length <= STAGE_LIST_MAX && read_records(out))
        return 0;
    stage_list_destroy(out);
    return error_set(err, "the list of files cannot be read");
}

void stage_list_destroy(struct stage_list *list)
{
    free(list->text);
    free(list->files);
    free(list->contents);
    *list = (struct stage_list){.text = NULL};
}

/* Half of the hash: paths are short in the lines that name an interpreter. */
void stage_list_id(const struct stage_list *list, char out[STAGE_ID_ROOM])
{
    char all[SHA256_TEXT_ROOM];
    sha256_text(list->text, list->length, all);
    memcpy(out, all, STAGE_ID_ROOM - 1);
    out[STAGE_ID_ROOM - 1] = '\0';
}

const struct stage_file *stage_list_entry(const struct stage_list *list, const char *below)
{
    size_t root = strlen(list->files[0].name);
    for (size_t i = 0; i < list->count; i++) {
        const struct stage_file *file = &list->files[i];
        const char *name = file->name + root, *at = below;
        while (*name != '\0' && *name == *at)
            name++, at++;
        if (*name == '\0' && (*at == '\0' || (*at == '/' && file->kind == 'l')))
            return file;
    }
    return NULL;
}

uint64_t stage_list_chunks(const struct stage_list *list)
{
    return (list->stream + STAGE_CHUNK - 1) / STAGE_CHUNK;
}

size_t stage_chunk_size(uint64_t stream, uint64_t chunk)
{
    if (chunk >= (stream + STAGE_CHUNK - 1) / STAGE_CHUNK)
        return 0;
    uint64_t rest = stream - chunk * STAGE_CHUNK;
    return rest < STAGE_CHUNK ? (size_t)rest : STAGE_CHUNK;
}

size_t stage_list_find(const struct stage_list *list, uint64_t at)
{
    size_t low = 0, high = list->content_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct stage_file *file = &list->files[list->contents[middle]];
        if (file->at + file->size <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
