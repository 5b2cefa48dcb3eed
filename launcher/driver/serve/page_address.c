/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/serve/page_address.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define NAME_ROOM 256

char *page_address_new(const char *url, const char *token)
{
    static const char *const all[] = {"http://0.0.0.0:", "http://[::]:"};
    char name[NAME_ROOM] = "";
    char *own AUTO_FREE = NULL;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        size_t length = strlen(all[i]);
        if (strncmp(url, all[i], length) == 0 && gethostname(name, sizeof(name) - 1) == 0)
            own = mem_printf("http://%s:%s", name, url + length);
    }
    return mem_printf("%s/%s%s", own == NULL ? url : own,
                      token == NULL ? "" : "?token=", token == NULL ? "" : token);
}
