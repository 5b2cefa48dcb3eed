/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/ras_address_agent.h"

#include <stdlib.h>

#include "base/mem.h"
#include "features/hang/ras_client.h"
#include "io/proc.h"

#define ENVIRONMENT_MAX ((size_t)4 << 20)

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
    return proc_read(pid, 0, "environ", &text) ? mem_strdup(proc_variable(&text, "NCCL_RAS_ADDR"))
                                               : NULL;
}

char *ras_address_of(const struct crews *crews)
{
    pid_t first = 0;
    crews_walk_live(crews, take_first, &first);
    char *address = first == 0 ? NULL : address_of(first);
    return address != NULL || first == 0 ? address : mem_strdup(RAS_USUAL_ADDRESS);
}
