/* SPDX-License-Identifier: Apache-2.0 */
#include "line/address.h"

#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"

#define PREFIX (offsetof(struct sockaddr_un, sun_path) + 1) /* the NUL of an abstract name */

int line_address_get(const char *text, struct sockaddr_un *name, socklen_t *length,
                     struct error *err)
{
    size_t bytes = strlen(text);
    if (bytes < 2 || text[0] != '@' || bytes > sizeof(name->sun_path) ||
        !name_is_safe(text + 1, bytes - 1))
        return error_set(err, "'%.40s' is not the address of a line", text);
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(name->sun_path + 1, text + 1, bytes - 1);
    *length = (socklen_t)(PREFIX + bytes - 1);
    return 0;
}

char *line_address_text(const struct sockaddr_un *name, socklen_t length)
{
    if (length <= PREFIX || name->sun_path[0] != '\0' ||
        !name_is_safe(name->sun_path + 1, length - PREFIX))
        return NULL;
    return mem_printf("@%.*s", (int)(length - PREFIX), name->sun_path + 1);
}
