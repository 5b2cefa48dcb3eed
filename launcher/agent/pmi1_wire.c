/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/mpi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "pmi1/request.h"

#define UNSENT_MAX ((size_t)1 << 20)
#define REFUSED_ENDS_MS 10000 /* a library writes a request at one go */
#define READ_BYTES 8192
#define TOLD_MAX 8 /* reasons */

struct line {
    struct pmi1_wire *wire;
    int rank;
    int fd; /* ours; -1: closed */
    struct loop_fd *watch;
    struct buf unsent;
    struct loop_timer *refused; /* runs since something in a request was refused; NULL: never */
    struct strv told;           /* why, each reason once */
};

struct pmi1_wire {
    struct mpi_world *world;
    struct pmi1_engine *engine;
    struct line *lines; /* by local rank */
    int count;
    struct pmi1_ops ops; /* of the engine; their context is the world */
};

static const struct log *log_of(const struct pmi1_wire *wire)
{
    return &wire->world->job.post->log;
}

static void line_close(struct line *line)
{
    loop_fd_destroy(line->watch);
    line->watch = NULL;
    loop_timer_destroy(line->refused);
    line->refused = NULL;
    fd_close(&line->fd);
    buf_destroy(&line->unsent);
}

/* The rank would wait for its answer for ever, or (MPICH) ask again and again, and the others for
 * it: the job is ended. */
static void line_give_up(const struct line *line, int errnum)
{
    struct pmi1_wire *wire = line->wire;
    char why[96];
    shutdown(line->fd, SHUT_WR);
    if (errnum == EPIPE || errnum == ECONNRESET)
        return; /* it has gone */
    snprintf(why, sizeof(why), "cannot answer its PMI requests: %s", strerrordesc_np(errnum));
    wire->ops.abort(wire->world, line->rank, STATUS_LAUNCHER, why);
}

/* A worker that has gone is noticed by its exit, not here. */
static void line_flush(struct line *line)
{
    while (line->unsent.length > 0) {
        ssize_t put = fd_write(line->fd, buf_text(&line->unsent), line->unsent.length);
        if (put < 0 && errno == EAGAIN)
            break;
        if (put < 0) {
            line_give_up(line, errno);
            buf_clear(&line->unsent);
            break;
        }
        buf_consume(&line->unsent, (size_t)put);
    }
    loop_fd_watch(line->watch, LOOP_READ | (line->unsent.length > 0 ? LOOP_WRITE : 0));
}

/* It has broken the protocol. */
static void line_break_off(const struct line *line, bool finalized, const struct error *err)
{
    struct pmi1_wire *wire = line->wire;
    shutdown(line->fd, SHUT_WR); /* it waits for no answer */
    if (finalized)               /* no rank waits for it: a child of its own, or a second program */
        log_error(log_of(wire), "%s", err->text);
    else
        wire->ops.abort(wire->world, line->rank, STATUS_LAUNCHER, err->text);
}

/* false: nothing more is there now. */
static bool line_read(struct line *line)
{
    char bytes[READ_BYTES];
    struct error err = ERROR_INIT;
    ssize_t got = fd_read(line->fd, bytes, sizeof(bytes));
    if (got < 0 && errno == EAGAIN)
        return false;
    if (got <= 0) {
        line_close(line);
        return false;
    }
    struct pmi1_wire *wire = line->wire;
    bool finalized = pmi1_rank_state(wire->engine, line->rank) == PMI1_FINALIZED;
    if (pmi1_receive(wire->engine, line->rank, bytes, (size_t)got, &err) < 0)
        line_break_off(line, finalized, &err);
    return line->fd >= 0;
}

static void line_ready(void *context, int what)
{
    struct line *line = context;
    if ((what & LOOP_WRITE) != 0)
        line_flush(line);
    if ((what & LOOP_READ) != 0)
        line_read(line);
}

/* This process may have been stopped meanwhile, so that the end is there and unread. */
static void refused_for_long(void *context)
{
    struct line *line = context;
    struct error err = ERROR_INIT;
    for (size_t i = 0; i <= PMI1_SPAWN_BYTES_MAX / READ_BYTES && line_read(line); i++)
        ;
    if (line->fd >= 0 && pmi1_spawn_unended(line->wire->engine, line->rank, &err) < 0)
        line_break_off(line, false, &err);
}

static int compare_ranks(const void *rank, const void *line)
{
    int one = *(const int *)rank, other = ((const struct line *)line)->rank;
    return (one > other) - (one < other);
}

/* The engine speaks of the ranks that it was given only. */
static struct line *find_line(const struct pmi1_wire *wire, int rank)
{
    return bsearch(&rank, wire->lines, (size_t)wire->count, sizeof(*wire->lines), compare_ranks);
}

static void engine_send(void *context, int rank, const char *bytes, size_t length)
{
    const struct mpi_world *world = context;
    struct line *line = find_line(world->pmi1, rank);
    if (line->fd < 0)
        return;
    if (buf_append(&line->unsent, bytes, length) < 0)
        log_error(log_of(world->pmi1), "rank %d does not read the answers to its PMI requests",
                  rank);
    line_flush(line);
}

static void tell_refusal(struct line *line, const char *what)
{
    const struct pmi1_wire *wire = line->wire;
    if (line->told.count == TOLD_MAX || strv_has(&line->told, what))
        return;
    strv_add(&line->told, what);
    log_warning(log_of(wire), "rank %d cannot spawn ranks: its MPI library sends %s%s", line->rank,
                what,
                wire->world->job.prepare->size == 1
                    ? ""
                    : "; with MPICH, ranks that asked with it may wait for ever");
}

static void engine_spawn_refused(void *context, int rank, const char *what)
{
    const struct mpi_world *world = context;
    struct line *line = find_line(world->pmi1, rank);
    tell_refusal(line, what);
    if (line->refused == NULL)
        line->refused = loop_timer_create(world->loop, refused_for_long, line);
    loop_timer_set(line->refused, REFUSED_ENDS_MS);
}

struct pmi1_wire *pmi1_wire_create(struct mpi_world *world, const struct pmi1_ops *ops)
{
    const struct mpi_job *job = &world->job;
    const Hvdrun__Prepare *prepare = job->prepare;
    char *kvsname AUTO_FREE = mem_printf("%s_%u", job->job_id, job->post->epoch);
    size_t count = prepare->n_workers;
    struct pmi1_wire *wire =
        MEM_NEW((struct pmi1_wire){.world = world,
                                   .lines = mem_array(count, sizeof(struct line)),
                                   .count = (int)count,
                                   .ops = *ops});
    wire->ops.send = engine_send;
    wire->ops.spawn_refused = engine_spawn_refused;
    int *ranks AUTO_FREE = mem_array(count, sizeof(*ranks));
    int *apps AUTO_FREE = mem_array(count, sizeof(*apps));
    for (size_t i = 0; i < count; i++) {
        ranks[i] = (int)prepare->workers[i]->rank;
        apps[i] = (int)prepare->workers[i]->app;
        wire->lines[i] =
            (struct line){.wire = wire, .rank = ranks[i], .fd = -1, .unsent = BUF_INIT(UNSENT_MAX)};
    }
    struct pmi1_config config = {.kvsname = kvsname,
                                 .size = (int)prepare->size,
                                 .universe_size = (int)prepare->universe_size,
                                 .spawned = prepare->parent_epoch != 0,
                                 .preput = prepare->preput,
                                 .preput_count = prepare->n_preput,
                                 .local_ranks = ranks,
                                 .local_count = (int)count,
                                 .local_apps = apps,
                                 .node_of = job->places->node_of,
                                 .node_count = (int)prepare->n_host_ranks};
    wire->engine = pmi1_engine_create(&config, &wire->ops, world);
    return wire;
}

void pmi1_wire_destroy(struct pmi1_wire *wire)
{
    if (wire == NULL)
        return;
    for (int i = 0; i < wire->count; i++) {
        line_close(&wire->lines[i]);
        strv_destroy(&wire->lines[i].told);
    }
    pmi1_engine_destroy(wire->engine);
    free(wire->lines);
    free(wire);
}

struct pmi1_engine *pmi1_wire_engine(const struct pmi1_wire *wire)
{
    return wire->engine;
}

int pmi1_wire_worker(struct pmi1_wire *wire, int local_rank, struct strv *env, int *worker_fd,
                     struct error *err)
{
    int ends[2];
    struct line *line = &wire->lines[local_rank];
    if (fd_socketpair(ends) < 0)
        return error_errno(err, errno, "cannot create the PMI connection of rank %d", line->rank);
    fd_nonblock(ends[0]);
    line->fd = ends[0];
    line->watch = loop_fd_create(wire->world->loop, line->fd, line_ready, line);
    loop_fd_watch(line->watch, LOOP_READ);
    *worker_fd = ends[1];
    pmi1_worker_env(wire->engine, line->rank, ends[1], env);
    return 0;
}

enum pmi1_state pmi1_wire_state(const struct pmi1_wire *wire, int local_rank)
{
    return pmi1_rank_state(wire->engine, wire->lines[local_rank].rank);
}

void pmi1_wire_collect(struct pmi1_wire *wire, int local_rank)
{
    struct line *line = &wire->lines[local_rank];
    bool more = line->fd >= 0;
    while (more)
        more = line_read(line);
}
