/* SPDX-License-Identifier: Apache-2.0 */
#include "core/settings.h"

#include <string.h>

#include "base/mem.h"

enum { TEXT_MAX = 1 << 20, VALUE_SHOWN = 200 };

void settings_init(struct settings *settings)
{
    buf_init(&settings->bytes, CORE_MESSAGE_MAX);
}

void settings_destroy(struct settings *settings)
{
    buf_destroy(&settings->bytes);
}

void settings_add(struct settings *settings, const char *name, const char *value)
{
    put_text(&settings->bytes, name);
    put_text(&settings->bytes, value);
}

static int compare_next(struct reader *own, struct reader *other, int rank, struct error *err)
{
    char *name AUTO_FREE = get_text(own, TEXT_MAX), *value AUTO_FREE = get_text(own, TEXT_MAX);
    char *its_name AUTO_FREE = get_text(other, TEXT_MAX);
    char *its_value AUTO_FREE = get_text(other, TEXT_MAX);
    if (other->bad || own->bad || strcmp(name, its_name) != 0)
        return error_set(err, "rank %d has another version of libhvd than rank 0", rank);
    if (strcmp(value, its_value) == 0)
        return 0;
    return error_set(err,
                     "%s is '%.*s' on rank 0, and '%.*s' on rank %d: it must be the same on all "
                     "ranks",
                     name, VALUE_SHOWN, value, VALUE_SHOWN, its_value, rank);
}

int settings_compare(const struct settings *own, int rank, const void *bytes, size_t length,
                     struct error *err)
{
    struct reader in = {(const unsigned char *)buf_text(&own->bytes), own->bytes.length, false};
    struct reader other = {bytes, length, false};
    while (in.left > 0)
        if (compare_next(&in, &other, rank, err) != 0)
            return -1;
    return other.left == 0
               ? 0
               : error_set(err, "rank %d has another version of libhvd than rank 0", rank);
}
