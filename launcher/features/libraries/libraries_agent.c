/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the workers of this node have loaded. Of a worker and the processes below it, the first one
 * counts that has such a library: a shell that runs Python has none.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

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

struct look {
    Hvdrun__Libraries message;
    struct descendants_table *processes;
    int64_t deadline_ms;
    struct buf maps;
};

static size_t read_memory(void *context, uint64_t address, void *out, size_t length)
{
    const int *fd = context;
    ssize_t got = address > INT64_MAX ? -1 : fd_pread(*fd, out, length, (off_t)address);
    return got > 0 ? (size_t)got : 0;
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
    char *path AUTO_FREE = mem_printf("/proc/%d/mem", (int)pid);
    int fd AUTO_FD = fd_open(path, O_RDONLY | O_CLOEXEC, 0);
    const struct loaded_memory memory = {read_memory, &fd};
    hvdrun__rank_libraries__init(rank);
    rank->seat = seat;
    rank->worker = (uint32_t)worker;
    rank->pid = (uint32_t)pid;
    rank->files = mem_array(count, sizeof(*rank->files));
    rank->n_files = count;
    for (size_t i = 0; i < count; i++) {
        uint32_t machine = 0;
        char *id = fd < 0 ? mem_strdup("") : loaded_identity(&libraries_take[i], &memory, &machine);
        rank->files[i] = put_file(message, &libraries_take[i], id, machine);
    }
    message->ranks = mem_resize_array(message->ranks, message->n_ranks + 1, sizeof(rank));
    message->ranks[message->n_ranks++] = rank;
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
