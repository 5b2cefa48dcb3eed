/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/runner.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/adasum.h"

#define HUGE_PAGE ((size_t)2 << 20)

static bool keeps(const struct runner *runner)
{
    return runner->failed && runner->engine->keeps_buffers;
}

enum hvd_status runner_called(struct runner *runner, enum hvd_status status)
{
    runner->failed = runner->failed || status != HVD_OK;
    return status;
}

void runner_free(const struct runner *runner, void *memory)
{
    if (!keeps(runner))
        free(memory);
}

void runner_destroy(struct runner *runner)
{
    if (keeps(runner))
        return;
    free(runner->buffer);
    runner->buffer = NULL;
    runner->room = 0;
}

/* Huge pages, if the kernel has them: an engine that lets the kernel copy between processes pins
 * each page. */
static void *buffer_new(size_t bytes)
{
    if (bytes < HUGE_PAGE)
        return malloc(bytes);
    void *buffer = aligned_alloc(HUGE_PAGE, bytes);
    if (buffer != NULL)
        madvise(buffer, bytes, MADV_HUGEPAGE); /* only advice */
    return buffer;
}

enum hvd_status runner_reserve(struct runner *runner, size_t bytes, struct error *err)
{
    if (bytes <= runner->room)
        return HVD_OK;
    if (bytes > HUGE_PAGE && bytes <= SIZE_MAX - HUGE_PAGE)
        bytes = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    free(runner->buffer);
    runner->room = 0;
    runner->buffer = buffer_new(bytes);
    if (runner->buffer == NULL) {
        error_set(err, "there is not enough memory for a fusion buffer of %zu bytes", bytes);
        return HVD_ERR_MEMORY;
    }
    runner->room = bytes;
    return HVD_OK;
}

void runner_trace(const struct runner *runner, enum trace_kind kind, const struct request *request,
                  const char *what)
{
    if (!trace_is_on(runner->trace))
        return;
    trace_send(runner->trace, &(struct trace_event){.kind = kind,
                                                    .set = runner->set,
                                                    .tensor = request_name(request),
                                                    .what = what,
                                                    .rank = -1,
                                                    .type = kind == TRACE_OPERATION_END
                                                                ? hvd_type_name((int)request->type)
                                                                : NULL,
                                                    .shape = request->shape,
                                                    .dims = request->dims,
                                                    .time_ns = clock_mono_ns()});
}

void runner_trace_all(const struct runner *runner, enum trace_kind kind, const struct part *parts,
                      size_t count, const char *what)
{
    for (size_t i = 0; i < count && trace_is_on(runner->trace); i++)
        runner_trace(runner, kind, &parts[i].request, what);
}

void runner_activity(const struct runner *runner, enum trace_kind kind, const struct part *parts,
                     size_t count, const char *operation)
{
    char what[64];
    if (!trace_is_on(runner->trace))
        return;
    snprintf(what, sizeof what, "%s_%s", runner->engine->name, operation);
    for (char *at = what; *at != '\0'; at++)
        *at = (char)toupper((unsigned char)*at);
    runner_trace_all(runner, kind, parts, count, what);
}

int runner_root(const struct runner *runner, const struct request *request)
{
    int root = 0;
    while (root < runner->size - 1 && runner->ranks[root] != request->root)
        root++; /* it was checked when it was submitted */
    return root;
}

enum hvd_op runner_reduction(const struct request *request)
{
    return request->op == HVD_AVERAGE ? HVD_SUM : request->op;
}

double runner_postscale(const struct runner *runner, const struct request *request)
{
    return request->op == HVD_AVERAGE ? request->postscale / runner->size : request->postscale;
}

enum hvd_status runner_adasum(struct runner *runner, const struct part *parts, size_t count,
                              void *data, struct error *err)
{
    const struct adasum_job job = {.engine = runner->engine,
                                   .comm = runner->comm,
                                   .rank = runner->rank,
                                   .size = runner->size,
                                   .type = parts[0].request.type};
    size_t *counts AUTO_FREE = mem_array(count, sizeof *counts);
    for (size_t i = 0; i < count; i++)
        counts[i] = request_elements(&parts[i].request);
    return adasum_run(&job, data, counts, count, err);
}
