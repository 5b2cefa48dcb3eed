/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/load.h"
#include "engine/setup.h"

void worker_fail(const char *format, ...)
{
    va_list args;
    fprintf(stderr, "FAILED: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    _exit(1);
}

void worker_check(enum hvd_status status, const struct error *err, const char *what)
{
    if (status != HVD_OK)
        worker_fail("%s: status %d: %s", what, status, err->text);
}

void worker_open(struct worker *worker)
{
    struct engine_setup setup;
    struct error err = ERROR_INIT;
    const char *name = getenv("HVD_ENGINE"), *folder = getenv("HVD_MODULES");
    if (name == NULL || folder == NULL)
        worker_fail("HVD_ENGINE and HVD_MODULES must be set");
    worker_check(setup_read(&setup, getenv, &err), &err, "setup");
    const char *piece = getenv("HVD_PIECE");
    if (piece != NULL)
        setup.piece = strtoul(piece, NULL, 10);
    worker_check(engine_load(folder, name, &worker->engine, &err), &err, "load");
    worker_check(worker->engine->open(&setup, &worker->world, &worker->place, &err), &err, "open");
}

void worker_close(struct worker *worker)
{
    worker->engine->close(worker->world);
}

struct engine_comm *worker_comm(const struct worker *worker, uint64_t id)
{
    int count = worker->place.size;
    int *ranks AUTO_FREE = mem_array((size_t)count, sizeof *ranks);
    for (int i = 0; i < count; i++)
        ranks[i] = i;
    struct error err = ERROR_INIT;
    struct engine_comm *comm = NULL;
    worker_check(worker->engine->comm_create(worker->world, id, ranks, count, &comm, &err), &err,
                 "comm_create");
    return comm;
}

struct message_set worker_set(const struct worker *worker, struct engine_comm *comm)
{
    return (struct message_set){worker->engine, comm, worker->place.rank, worker->place.size,
                                20000};
}

enum hvd_status worker_barrier(const struct worker *worker, struct engine_comm *comm,
                               struct error *err)
{
    struct message_set set = worker_set(worker, comm);
    int failed;
    set.timeout_ms = 0; /* with mpi, only abort() can wake it */
    return messages_agree(&set, "", &failed, err);
}
