/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/worker_pids.h"

#include <stdlib.h>

#include "base/mem.h"

#define SIZE_LEAST 16 /* a power of two */

void worker_pids_init(struct worker_pids *pids, struct worker *workers, size_t count)
{
    *pids = (struct worker_pids){.workers = workers, .size = SIZE_LEAST};
    while (pids->size < 2 * count)
        pids->size *= 2;
    pids->table = mem_array(pids->size, sizeof(*pids->table));
}

void worker_pids_clear(struct worker_pids *pids)
{
    free(pids->table);
    *pids = (struct worker_pids){.size = 0};
}

void worker_pids_add(struct worker_pids *pids, int index)
{
    size_t at = (size_t)pids->workers[index].pid & (pids->size - 1);
    while (pids->table[at] != 0)
        at = (at + 1) & (pids->size - 1);
    pids->table[at] = index + 1;
}

struct worker *worker_pids_find(const struct worker_pids *pids, pid_t pid)
{
    size_t at = (size_t)pid & (pids->size - 1);
    for (; pids->table[at] != 0; at = (at + 1) & (pids->size - 1)) {
        struct worker *worker = &pids->workers[pids->table[at] - 1];
        if (worker->pid == pid && worker->state == WORKER_RUNNING)
            return worker;
    }
    return NULL;
}
