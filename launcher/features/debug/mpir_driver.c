/* SPDX-License-Identifier: Apache-2.0 */
#include "features/debug/debug_driver.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strv.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "io/child.h"

/* Names and types are those of the interface, which tools know; hvdrun has nothing else to say
 * about them. The linker keeps them in a program that is stripped (launcher/CMakeLists.txt). */
#define EXPORT __attribute__((visibility("default"), used))

/* NOLINTBEGIN: the interface wants variables that a tool reads and writes. */
typedef struct {
    char *host_name;
    char *executable_name;
    int pid;
} MPIR_PROCDESC;

enum { MPIR_NULL, MPIR_DEBUG_SPAWNED, MPIR_DEBUG_ABORTING };

void MPIR_Breakpoint(void);

EXPORT MPIR_PROCDESC *MPIR_proctable;
EXPORT int MPIR_proctable_size;
EXPORT volatile int MPIR_being_debugged;
EXPORT volatile int MPIR_debug_state;
EXPORT const char *MPIR_debug_abort_string;
EXPORT int MPIR_i_am_starter;      /* it is no rank itself */
EXPORT int MPIR_partial_attach_ok; /* we let those go on to which the tool does not attach */
EXPORT int MPIR_force_to_main;     /* ranks are before main() */

/* A tool has a breakpoint here. */
EXPORT __attribute__((noinline)) void MPIR_Breakpoint(void)
{
    __asm__ volatile("");
}
/* NOLINTEND */

struct mpir {
    struct strv programs; /* of the apps: paths where they are known */
};

bool mpir_is_debugged(void)
{
    return MPIR_being_debugged != 0;
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    if (!job->kind->has_workers || job->kind->many_epochs)
        return 0;
    job->own[PART_mpir] = MEM_NEW((struct mpir){.programs = STRV_INIT});
    return 0;
}

static void close_part(struct job *job)
{
    struct mpir *mpir = job_part(job, mpir);
    free(MPIR_proctable);
    MPIR_proctable = NULL;
    MPIR_proctable_size = 0;
    strv_destroy(&mpir->programs);
    free(mpir);
}

/* The path on this machine, as a tool reads the program here; else as it was given. */
static void find_programs(const struct job *job, struct strv *programs)
{
    const struct app_list *apps = job->request->apps;
    for (size_t i = 0; i < apps->count; i++) {
        const char *name = apps->items[i].argv.items[0];
        char *path = child_find(name, getenv("PATH"), NULL, NULL);
        strv_add_take(programs, path != NULL ? path : mem_strdup(name));
    }
}

/* Once all ranks have started, the table has them in their order; a rank is its seat. Those that
 * others spawn later, with programs of their own, are not in it. */
static void ranks_changed(struct job *job)
{
    struct mpir *mpir = job_part(job, mpir);
    const struct rank_record *record = job->ranks.records;
    int size = 0;
    if (mpir == NULL || MPIR_proctable != NULL)
        return;
    while (size < job->ranks.size && record[size].world == 0 && record[size].pid != 0)
        size++;
    if (size == 0 || (size < job->ranks.size && record[size].world == 0))
        return;
    find_programs(job, &mpir->programs);
    MPIR_proctable = mem_array((size_t)size, sizeof(*MPIR_proctable));
    for (int rank = 0; rank < size; rank++, record++)
        MPIR_proctable[rank] = (MPIR_PROCDESC){.host_name = job->nodes[record->node]->host,
                                               .executable_name = mpir->programs.items[record->app],
                                               .pid = record->pid};
    MPIR_proctable_size = size;
}

void mpir_spawned(void)
{
    if (MPIR_proctable == NULL)
        return; /* a rank could not be executed: the job ends, and the tool has nothing to attach to
                 */
    MPIR_debug_state = MPIR_DEBUG_SPAWNED;
    MPIR_Breakpoint();
}

/* A tool should look at the ranks before they are ended. */
static void ending(struct job *job)
{
    if (!mpir_is_debugged() || MPIR_debug_state != MPIR_DEBUG_SPAWNED ||
        job->ranks.finished == job->plan->size)
        return;
    MPIR_debug_abort_string = "hvdrun ends the job";
    MPIR_debug_state = MPIR_DEBUG_ABORTING;
    MPIR_Breakpoint();
}

const struct driver_part mpir_part = {.name = "mpir",
                                      .open = open_part,
                                      .close = close_part,
                                      .ranks_changed = ranks_changed,
                                      .ending = ending};
