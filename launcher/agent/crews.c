/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/crews.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/threads.h"
#include "node/facts.h"
#include "node/usage.h"

#define SPAWNERS_FROM 16 /* workers: fewer start as fast without threads */
#define SPAWNERS_MAX 8
#define CPUS_PER_SPAWNER 2
#define DESCRIPTORS_PER_WORKER 4 /* two streams, its end, its connection to the MPI server */
#define DESCRIPTORS_BESIDE 128   /* the agent's own, and those of the starts under way */
#define DEPTH_MAX 64             /* of a worker's tree of processes */

struct crews {
    struct loop *loop;
    struct crew **list; /* oldest first */
    size_t count;
    struct spawners *spawners; /* NULL: none were needed, or had */
    bool paused;
    bool succeeded, failed; /* a worker has, in this epoch of the job */
    void (*finished)(void *context);
    void *context;
};

struct crews *crews_create(struct loop *loop, void (*finished)(void *context), void *context)
{
    return MEM_NEW((struct crews){.loop = loop, .finished = finished, .context = context});
}

void crews_destroy(struct crews *crews)
{
    if (crews == NULL)
        return;
    crews_clear(crews);
    spawners_destroy(crews->spawners);
    free(crews->list);
    free(crews);
}

static void drop(struct crews *crews, size_t index)
{
    struct crew *crew = crews->list[index];
    crews->count--;
    for (size_t i = index; i < crews->count; i++)
        crews->list[i] = crews->list[i + 1];
    crew_destroy(crew);
}

void crews_clear(struct crews *crews)
{
    while (crews->count > 0)
        drop(crews, crews->count - 1);
    crews_new_epoch(crews);
}

void crews_new_epoch(struct crews *crews)
{
    crews->succeeded = crews->failed = false;
}

/* Others may still be connected with the worlds of a static job: the driver says when one goes. */
static bool may_go(const struct crew *crew)
{
    return crew_is_elastic(crew) && crew_is_over(crew);
}

size_t crews_make_way(struct crews *crews)
{
    for (size_t i = crews->count; i-- > 0;) {
        if (!crew_is_started(crews->list[i]) || may_go(crews->list[i]))
            drop(crews, i);
    }
    return crews->count;
}

/* Those that are over, but not the newest. */
static void sweep(void *context)
{
    struct crews *crews = context;
    for (size_t i = crews->count; i-- > 0;) {
        if (i + 1 < crews->count && may_go(crews->list[i]))
            drop(crews, i);
    }
}

static void crew_finished(void *context)
{
    struct crews *crews = context;
    if (crews->count > 1) /* not from inside the crew that calls */
        loop_defer(crews->loop, sweep, crews);
    crews->finished(crews->context);
}

/* With few CPUs, the programs that start need them all, and threads would gain nothing. Starts side
 * by side need some descriptors more. */
static void prepare_start(struct crews *crews, struct crew_config *config, size_t workers)
{
    int threads = node_facts_cpus(config->facts) / CPUS_PER_SPAWNER;
    size_t descriptors = workers * DESCRIPTORS_PER_WORKER + DESCRIPTORS_BESIDE;
    if (workers < SPAWNERS_FROM || threads < 2 || !fd_reserve(descriptors))
        return;
    if (crews->spawners == NULL)
        crews->spawners = spawners_create(threads < SPAWNERS_MAX ? threads : SPAWNERS_MAX);
    config->spawners = crews->spawners;
}

struct crew *crews_add(struct crews *crews, struct crew_config *config, Hvdrun__Prepare *prepare)
{
    config->finished = crew_finished;
    config->context = crews;
    prepare_start(crews, config, prepare->n_workers);
    struct crew *crew = crew_create(config, prepare);
    crew_pause(crew, crews->paused);
    crews->succeeded = false; /* a newcomer may take that seat: the driver forgets who had it */
    MEM_ADD(crews->list, crews->count) = crew;
    return crew;
}

void crews_cancel(struct crews *crews, uint32_t epoch)
{
    for (size_t i = crews->count; i-- > 0;) {
        struct crew *crew = crews->list[i];
        if (crew_epoch(crew) == epoch && (!crew_is_started(crew) || crew_is_over(crew)))
            drop(crews, i);
    }
}

struct crew *crews_find(const struct crews *crews, uint32_t epoch)
{
    for (size_t i = 0; i < crews->count; i++) {
        if (crew_epoch(crews->list[i]) == epoch)
            return crews->list[i];
    }
    return NULL;
}

bool crews_is_newer(const struct crews *crews, uint32_t epoch)
{
    return crews->count == 0 || epoch > crew_epoch(crews->list[crews->count - 1]);
}

/* A worker closes its connections before it can be waited for. A peer may notice that in between,
 * and end before it. So both have the time of the first one: nobody can tell which began.
 *
 * That matters for the first failure of an epoch, and for the first success before that. Of two
 * successes, the driver takes none for the cause. So a look at all workers is rare, however many
 * end at once. */
static void note_end(struct crews *crews, bool *before, int64_t when_ns)
{
    bool first = !crews->failed && !*before;
    *before = true;
    for (size_t i = 0; i < crews->count && first; i++)
        crew_note_ends(crews->list[i], when_ns);
}

bool crews_exited(struct crews *crews, const struct reaper_exit *exit)
{
    enum crew_end end = CREW_END_NONE;
    for (size_t i = 0; i < crews->count && end == CREW_END_NONE; i++)
        end = crew_exited(crews->list[i], exit, crews->failed);
    if (end == CREW_END_SUCCESS)
        note_end(crews, &crews->succeeded, exit->when_ns);
    else if (end == CREW_END_FAILURE)
        note_end(crews, &crews->failed, exit->when_ns);
    return end != CREW_END_NONE;
}

void crews_stop(struct crews *crews)
{
    for (size_t i = 0; i < crews->count; i++)
        crew_stop(crews->list[i]);
}

void crews_signal(struct crews *crews, int signal)
{
    for (size_t i = 0; i < crews->count; i++)
        crew_signal(crews->list[i], signal);
}

bool crews_release(struct crews *crews, int64_t seat, bool continues)
{
    bool held = false;
    for (size_t i = 0; i < crews->count; i++)
        held = crew_release(crews->list[i], seat, continues) || held;
    return held;
}

void crews_pause(struct crews *crews, bool paused)
{
    crews->paused = paused;
    for (size_t i = 0; i < crews->count; i++)
        crew_pause(crews->list[i], paused);
}

void crews_resize(struct crews *crews, int rows, int columns)
{
    for (size_t i = 0; i < crews->count; i++)
        crew_resize(crews->list[i], rows, columns);
}

void crews_cut(struct crews *crews)
{
    for (size_t i = 0; i < crews->count; i++)
        crew_cut(crews->list[i]);
}

void crews_walk_folders(const struct crews *crews, void (*each)(void *context, const char *folder),
                        void *context)
{
    for (size_t i = 0; i < crews->count; i++) {
        if (crew_folder(crews->list[i]) != NULL)
            each(context, crew_folder(crews->list[i]));
    }
}

/* In the first line: "...; libhvd has completed 12 operations" */
static void add_progress(const struct worker_lines *lines, struct crew_states *states)
{
    uint64_t operations = 0;
    for (size_t i = 0; lines != NULL && i < states->texts.count; i++) {
        char **text = &states->texts.items[i];
        if (states->pids[i] == 0 || !worker_lines_progress(lines, states->seats[i], &operations))
            continue;
        int line = (int)strcspn(*text, "\n");
        char *longer = mem_printf("%.*s; libhvd has completed %" PRIu64 " operation%s%s", line,
                                  *text, operations, operations == 1 ? "" : "s", *text + line);
        free(*text);
        *text = longer;
    }
}

void crews_states(const struct crews *crews, const struct worker_lines *lines,
                  const struct descendants_table *processes, struct crew_states *out)
{
    *out = (struct crew_states){NULL, NULL, STRV_INIT};
    /* Seats of older crews whose workers have ended may be others' now. */
    for (size_t i = 0; i < crews->count; i++)
        crew_states(crews->list[i], i + 1 == crews->count, processes, out);
    add_progress(lines, out);
}

void crew_states_destroy(struct crew_states *states)
{
    free(states->seats);
    free(states->pids);
    strv_destroy(&states->texts);
}

void crews_walk_live(const struct crews *crews,
                     void (*each)(void *context, uint32_t seat, pid_t pid), void *context)
{
    for (size_t i = 0; i < crews->count; i++)
        crew_walk_live(crews->list[i], each, context);
}

int crews_live(const struct crews *crews)
{
    int live = 0;
    for (size_t i = 0; i < crews->count; i++)
        live += crew_live(crews->list[i]);
    return live;
}

bool crews_is_finished(const struct crews *crews)
{
    bool finished = true;
    for (size_t i = 0; i < crews->count; i++)
        finished = finished && crew_is_finished(crews->list[i]);
    return finished;
}

void crews_leave_folders(struct crews *crews)
{
    for (size_t i = 0; i < crews->count; i++) {
        if (crew_is_over(crews->list[i]))
            crew_leave_folders(crews->list[i]);
    }
}

bool crews_seat_of(const struct crews *crews, pid_t session, uint32_t *seat)
{
    bool found = false;
    for (size_t i = 0; i < crews->count && !found; i++)
        found = crew_seat_of(crews->list[i], session, seat);
    return found;
}

/* A worker leads a session of its own, under its pid. */
bool crews_seat_below(const struct crews *crews, pid_t pid, struct buf *scratch, uint32_t *seat)
{
    struct process_usage found;
    for (int depth = 0; pid > 1 && depth < DEPTH_MAX; depth++) {
        if (crews_seat_of(crews, pid, seat))
            return true;
        if (!process_usage_read(pid, scratch, &found))
            return false;
        if (crews_seat_of(crews, (pid_t)found.stat.session, seat))
            return true;
        pid = (pid_t)found.stat.parent;
    }
    return false;
}
