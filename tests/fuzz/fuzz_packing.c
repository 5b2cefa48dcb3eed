/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that were made smaller: two bytes with the size that is announced, then the bytes. What
 * expands is made smaller again, and expands to the same. */
#include <string.h>

#include "base/mem.h"
#include "fuzz.h"
#include "wire/packing.h"

#define LIMIT 50000

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    size_t announced = fuzz_u8(&bytes);
    announced = announced << 8 | fuzz_u8(&bytes);
    uint8_t *whole AUTO_FREE = packing_expand(bytes.at, bytes.left, announced, LIMIT);
    if (whole == NULL)
        return 0;
    FUZZ_CHECK(announced > 0 && announced <= LIMIT);
    AUTO_BUF struct buf small = BUF_INIT(announced);
    if (!packing_shrink(whole, announced, &small))
        return 0;
    FUZZ_CHECK(small.length < announced);
    void *again AUTO_FREE = packing_expand(buf_text(&small), small.length, announced, LIMIT);
    FUZZ_CHECK(again != NULL && memcmp(again, whole, announced) == 0);
    return 0;
}
