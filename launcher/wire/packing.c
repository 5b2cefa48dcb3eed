/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/packing.h"

#define ZLIB_CONST /* its input is only read */
#include <stdlib.h>
#include <zlib.h>

#include "base/mem.h"

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
