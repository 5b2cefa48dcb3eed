/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the workers of this node have loaded. Of a worker and the processes below it, the first one
 * counts that has such a library: a shell that runs Python has none.
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
#include "features/libraries/loaded.h"
#include "io/proc.h"
#include "node/descendants.h"
#include "wire/control.pb-c.h"

#define MAPS_MAX ((size_t)8 << 20)
#define PROCESSES_MAX 16 /* of a worker */
#define LOOK_MS 200      /* the other workers are left out */
#define ASKED_THREADS 1000
#define PAGES_MAX 32 /* of one piece */

struct look {
    Hvdrun__Libraries message;
    struct descendants_table *processes;
    int64_t deadline_ms;
    struct buf maps;
};

/* A process as its memory is read. */
struct source {
    int memory, pages; /* /proc/PID/mem and pagemap; -1: it may not be read */
    bool on_disk;      /* the present file is on a device of this machine */
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
    if (address > INT64_MAX - length || length == 0 ||
        (!source->on_disk && !is_present(source, address, length)))
        return 0;
    ssize_t got = fd_pread(source->memory, out, length, (off_t)address);
    return got > 0 ? (size_t)got : 0;
}

static int open_file(pid_t pid, const char *name)
{
    char *path AUTO_FREE = mem_printf("/proc/%d/%s", (int)pid, name);
    return fd_open(path, O_RDONLY | O_CLOEXEC, 0);
}

/* The index in the answer of what was found; the path is taken over. */
static uint32_t put_file(Hvdrun__Libraries *message, struct loaded_library *library, char *id_take,
                         uint32_t machine)
{
    char *id AUTO_FREE = id_take;
    for (size_t i = 0; i < message->n_files; i++) {
        const Hvdrun__Library *known = message->files[i];
        if (known->kind == (uint32_t)library->kind && known->machine == machine &&
            known->deleted == library->deleted && strcmp(known->id, id) == 0 &&
            strcmp(known->path, library->path) == 0) {
            free(library->path);
            return (uint32_t)i;
        }
    }
    Hvdrun__Library *file = mem_alloc(sizeof(*file));
    hvdrun__library__init(file);
    file->kind = (uint32_t)library->kind;
    file->path = library->path;
    file->id = mem_strdup(id);
    file->machine = machine;
    file->deleted = library->deleted;
    message->files = mem_resize_array(message->files, message->n_files + 1, sizeof(file));
    message->files[message->n_files] = file;
    return (uint32_t)message->n_files++;
}

static void put_rank(struct look *look, uint32_t seat, pid_t worker, pid_t pid,
                     struct loaded_library *libraries_take, size_t count)
{
    Hvdrun__Libraries *message = &look->message;
    Hvdrun__RankLibraries *rank = mem_alloc(sizeof(*rank));
    struct source source = {open_file(pid, "mem"), open_file(pid, "pagemap"), false};
    const struct loaded_memory memory = {read_memory, &source};
    hvdrun__rank_libraries__init(rank);
    rank->seat = seat;
    rank->worker = (uint32_t)worker;
    rank->pid = (uint32_t)pid;
    rank->files = mem_array(count, sizeof(*rank->files));
    rank->n_files = count;
    for (size_t i = 0; i < count; i++) {
        uint32_t machine = 0;
        source.on_disk = libraries_take[i].on_disk;
        char *id = loaded_identity(&libraries_take[i], &memory, &machine);
        rank->files[i] = put_file(message, &libraries_take[i], id, machine);
    }
    message->ranks = mem_resize_array(message->ranks, message->n_ranks + 1, sizeof(rank));
    message->ranks[message->n_ranks++] = rank;
    fd_close(&source.memory);
    fd_close(&source.pages);
}

/* false: it has none, or cannot be looked at. */
static bool look_at(struct look *look, uint32_t seat, pid_t worker, pid_t pid)
{
    struct loaded_library found[LOADED_MAX];
    (void)proc_read(pid, 0, "maps", &look->maps); /* what was read counts */
    size_t count = loaded_read(buf_text(&look->maps), found);
    if (count > 0)
        put_rank(look, seat, worker, pid, found, count);
    return count > 0;
}

static void look_at_worker(void *context, uint32_t seat, pid_t pid)
{
    struct look *look = context;
    pid_t *below AUTO_FREE = NULL;
    if (clock_mono_ms() > look->deadline_ms || look_at(look, seat, pid, pid))
        return;
    size_t count = descendants_in(look->processes, pid, &below);
    for (size_t i = 0; i < count && i < PROCESSES_MAX; i++) {
        if (look_at(look, seat, pid, below[i]))
            return;
    }
}

static void clear(Hvdrun__Libraries *message)
{
    for (size_t i = 0; i < message->n_files; i++) {
        free(message->files[i]->path);
        free(message->files[i]->id);
        free(message->files[i]);
    }
    for (size_t i = 0; i < message->n_ranks; i++) {
        free(message->ranks[i]->files);
        free(message->ranks[i]);
    }
    free(message->files);
    free(message->ranks);
}

static void answer(struct agent *agent, const struct asked *asked, const ProtobufCMessage *request)
{
    struct look look = {.message = HVDRUN__LIBRARIES__INIT,
                        .processes = descendants_table_read(ASKED_THREADS),
                        .deadline_ms = clock_mono_ms() + LOOK_MS,
                        .maps = BUF_INIT(MAPS_MAX)};
    (void)request;
    crews_walk_live(agent->crews, look_at_worker, &look);
    asked_answer(asked, &look.message.base);
    clear(&look.message);
    buf_destroy(&look.maps);
    descendants_table_destroy(look.processes);
}

static const struct ask_rule topics[] = {{&topic_libraries, answer}, {.topic = NULL}};
const struct agent_part libraries_agent_part = {.name = "libraries", .topics = topics};
