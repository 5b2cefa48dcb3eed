/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the workers of this node have loaded. Of a worker and the processes below it, the first one
 * counts that has such a library: a shell that runs Python has none.
 *
 * A thread looks, and the agent waits for it for LOOK_MS: so the answer is there before the next
 * order, which may be to end the workers. The kernel lets nobody read the maps of a process that is
 * in mmap(), and that may take for as long as a file system does not answer.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "agent/agent_state.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "features/libraries/libraries.h"
#include "io/proc.h"
#include "io/threads.h"
#include "node/descendants.h"
#include "wire/control.pb-c.h"

#define MAPS_MAX ((size_t)8 << 20)
#define PROCESSES_MAX 16 /* of a worker */
#define LOOK_MS 200      /* the other workers are left out */
#define HELD_MAX 4       /* threads */
#define ASKED_THREADS 1000
#define PAGES_MAX 32 /* of one piece */

/* A worker, and the processes below it. */
struct item {
    pid_t *pids; /* the worker is the first */
    size_t count;
};

/* Shared with the thread; the last one frees it. */
struct work {
    struct thread_share share;
    struct item *items;
    Hvdrun__Libraries *message; /* its ranks are in the order of the items */
    size_t count, next;         /* where the next look begins */
    int64_t deadline_ms;
    struct buf maps; /* the thread's */
};

/* A process as its memory is read. */
struct source {
    int memory, pages; /* /proc/PID/mem and pagemap; -1: it may not be read */
};

/* The kernel would read a page that is not in memory from the file first. On a server that does not
 * answer, this agent would wait for it. */
static bool is_present(const struct source *source, uint64_t address, size_t length)
{
    uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE), entries[PAGES_MAX];
    uint64_t first = address / size, count = (address + length - 1) / size - first + 1;
    size_t bytes = (size_t)count * sizeof(entries[0]);
    if (count > PAGES_MAX || fd_pread(source->pages, entries, bytes,
                                      (off_t)(first * sizeof(entries[0]))) != (ssize_t)bytes)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (entries[i] >> 63 == 0)
            return false;
    }
    return true;
}

static size_t read_memory(void *context, uint64_t address, void *out, size_t length)
{
    const struct source *source = context;
    if (address > INT64_MAX - length || length == 0 || !is_present(source, address, length))
        return 0;
    ssize_t got = fd_pread(source->memory, out, length, (off_t)address);
    return got > 0 ? (size_t)got : 0;
}

static int open_file(pid_t pid, const char *name)
{
    char *path AUTO_FREE = mem_printf("/proc/%d/%s", (int)pid, name);
    return fd_open(path, O_RDONLY | O_CLOEXEC, 0);
}

static void put_libraries(struct work *work, size_t number, pid_t pid,
                          struct loaded_library *libraries_take, size_t count)
{
    struct source source = {open_file(pid, "mem"), open_file(pid, "pagemap")};
    const struct elf_source memory = {.read = read_memory, .context = &source};
    Hvdrun__Library **list = mem_array(count, sizeof(Hvdrun__Library *));
    for (size_t i = 0; i < count; i++) {
        list[i] = mem_alloc(sizeof(*list[i]));
        hvdrun__library__init(list[i]);
        list[i]->kind = (uint32_t)libraries_take[i].kind;
        list[i]->path = libraries_take[i].path;
        list[i]->deleted = libraries_take[i].deleted;
        list[i]->id = loaded_identity(&libraries_take[i], &memory, &list[i]->machine);
    }
    fd_close(&source.memory);
    fd_close(&source.pages);
    thread_share_lock(&work->share);
    work->message->ranks[number]->libraries = list;
    work->message->ranks[number]->n_libraries = count;
    thread_share_unlock(&work->share);
}

/* false: it has none, or cannot be looked at. */
static bool look_at(struct work *work, size_t number, pid_t pid)
{
    struct loaded_library found[LOADED_MAX];
    (void)proc_read(pid, 0, "maps", &work->maps); /* what was read counts */
    size_t count = loaded_read(buf_text(&work->maps), found);
    if (count > 0)
        put_libraries(work, number, pid, found, count);
    return count > 0;
}

static void free_work(struct thread_share *all)
{
    struct work *work = (struct work *)all;
    for (size_t i = 0; i < work->count; i++)
        free(work->items[i].pids);
    free(work->items);
    hvdrun__libraries__free_unpacked(work->message, NULL);
    buf_destroy(&work->maps);
    free(work);
}

static void look_at_worker(struct work *work, size_t number)
{
    const struct item *item = &work->items[number];
    size_t looked = 0;
    bool found = false;
    while (looked < item->count && !found && clock_mono_ms() < work->deadline_ms)
        found = look_at(work, number, item->pids[looked++]);
    thread_share_lock(&work->share);
    work->message->ranks[number]->missing = !found && looked < item->count;
    thread_share_unlock(&work->share);
}

static void look(struct thread_share *share)
{
    struct work *work = (struct work *)share;
    size_t first = work->next;
    for (size_t i = 0; i < work->count && clock_mono_ms() < work->deadline_ms; i++) {
        size_t number = (first + i) % work->count;
        thread_share_lock(&work->share);
        work->next = number + 1; /* this one may hold us */
        thread_share_unlock(&work->share);
        look_at_worker(work, number);
    }
}

struct walk {
    struct work *work;
    struct descendants_table *processes;
};

static void add_worker(void *context, uint32_t seat, pid_t pid)
{
    const struct walk *walk = context;
    struct work *work = walk->work;
    pid_t *below AUTO_FREE = NULL;
    size_t count = descendants_in(walk->processes, pid, &below);
    count = count < PROCESSES_MAX ? count : PROCESSES_MAX;
    Hvdrun__RankLibraries *rank = mem_alloc(sizeof(*rank)), ***ranks = &work->message->ranks;
    hvdrun__rank_libraries__init(rank);
    rank->seat = seat;
    rank->worker = (uint32_t)pid;
    rank->missing = true;
    *ranks = mem_resize_array(*ranks, work->count + 1, sizeof(rank));
    (*ranks)[work->message->n_ranks++] = rank;
    struct item *item = &MEM_ADD(work->items, work->count);
    *item = (struct item){mem_array(count + 1, sizeof(*item->pids)), count + 1};
    item->pids[0] = pid;
    for (size_t i = 0; i < count; i++)
        item->pids[i + 1] = below[i];
}

static struct work *work_create(const struct crews *crews, size_t first)
{
    struct work *work = mem_alloc(sizeof(*work));
    struct walk walk = {work, descendants_table_read(ASKED_THREADS)};
    *work = (struct work){.next = first,
                          .deadline_ms = clock_mono_ms() + LOOK_MS,
                          .message = mem_alloc(sizeof(*work->message)),
                          .maps = BUF_INIT(MAPS_MAX)};
    hvdrun__libraries__init(work->message);
    crews_walk_live(crews, add_worker, &walk);
    descendants_table_destroy(walk.processes);
    return work;
}

struct libraries {
    struct work *held[HELD_MAX]; /* whose threads did not come back; NULL: none */
    size_t next; /* where the next look begins, so that one worker does not hide the others */
};

/* For one more thread that may be held. NULL: there are too many. */
static struct work **free_place(struct libraries *own)
{
    struct work **place = NULL;
    for (int i = 0; i < HELD_MAX; i++) {
        struct work *held = own->held[i];
        if (held != NULL && thread_share_is_over(&held->share, 0)) {
            thread_share_leave(&held->share);
            own->held[i] = NULL;
        }
        place = own->held[i] == NULL ? &own->held[i] : place;
    }
    return place;
}

static void answer(struct agent *agent, const struct asked *asked, const ProtobufCMessage *request)
{
    (void)request;
    if (agent_own(agent, libraries) == NULL)
        agent->own[AGENT_PART_libraries] = mem_array(1, sizeof(struct libraries));
    struct libraries *own = agent_own(agent, libraries);
    struct work *work = work_create(agent->crews, own->next);
    struct work **place = free_place(own);
    if (place == NULL || work->count == 0) {
        asked_answer(asked, &work->message->base);
        free_work(&work->share);
        return;
    }
    (void)thread_share_start(&work->share, "libraries", look, free_work); /* else all is missing */
    bool over = thread_share_is_over(&work->share, clock_mono_ms() + 2 * LOOK_MS);
    thread_share_lock(&work->share);
    asked_answer(asked, &work->message->base);
    own->next = work->next;
    thread_share_unlock(&work->share);
    if (over)
        thread_share_leave(&work->share);
    else
        *place = work;
}

static void close_part(struct agent *agent)
{
    struct libraries *own = agent_own(agent, libraries);
    for (int i = 0; i < HELD_MAX; i++) {
        if (own->held[i] != NULL)
            thread_share_leave(&own->held[i]->share);
    }
    free(own);
}

static const struct ask_rule topics[] = {{&topic_libraries, answer}, {.topic = NULL}};
const struct agent_part libraries_agent_part = {
    .name = "libraries", .topics = topics, .close = close_part};
