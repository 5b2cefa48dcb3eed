/* SPDX-License-Identifier: Apache-2.0 */
#include "model/env/secret.h"

#include <string.h>
#include <strings.h>

static bool contains(const char *name, size_t length, const char *word)
{
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= length; i++) {
        if (strncasecmp(name + i, word, size) == 0)
            return true;
    }
    return false;
}

bool secret_is_name(const char *name, size_t length)
{
    static const char *const words[] = {"TOKEN", "PASSWORD",   "PASSWD", "SECRET",
                                        "KEY",   "CREDENTIAL", "AUTH",   "COOKIE"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (contains(name, length, words[i]))
            return true;
    }
    return false;
}

void secret_mask(const char *pair, struct buf *out)
{
    size_t name = strcspn(pair, "=");
    if (pair[name] == '=' && secret_is_name(pair, name))
        buf_printf(out, "%.*s=(hidden, %zu bytes)", (int)name, pair, strlen(pair + name + 1));
    else
        buf_puts(out, pair);
}
