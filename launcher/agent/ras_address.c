/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ras_address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ras_client.h"
#include "base/fd.h"
#include "base/mem.h"

#define ENVIRONMENT_MAX ((size_t)4 << 20)
#define ADDRESS_NAME "NCCL_RAS_ADDR="

static void take_first(void *context, uint32_t seat, pid_t pid)
{
    pid_t *first = context;
    (void)seat;
    if (*first == 0)
        *first = pid;
}

/* NULL: it has none. */
static char *address_of(pid_t pid)
{
    struct buf text AUTO_BUF = BUF_INIT(ENVIRONMENT_MAX);
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    if (fd_read_file(path, &text, NULL) < 0)
        return NULL;
    const char *at = buf_text(&text), *end = at + text.length;
    for (; at < end; at += strlen(at) + 1) {
        if (strncmp(at, ADDRESS_NAME, strlen(ADDRESS_NAME)) == 0)
            return mem_strdup(at + strlen(ADDRESS_NAME));
    }
    return NULL;
}

char *ras_address_of(const struct crews *crews)
{
    pid_t first = 0;
    crews_walk_live(crews, take_first, &first);
    char *address = first == 0 ? NULL : address_of(first);
    return address != NULL || first == 0 ? address : mem_strdup(RAS_USUAL_ADDRESS);
}
