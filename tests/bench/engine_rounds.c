/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_rounds.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

struct side {
    const struct worker *worker;
    struct engine_comm *comm;
    bare_allreduce *bare;
    void *context;
};

static void run_engine(const struct side *side, float *data, size_t count)
{
    struct error err = ERROR_INIT;
    worker_check(
        side->worker->engine->allreduce(side->comm, data, count, HVD_FLOAT32, HVD_SUM, &err), &err,
        "allreduce");
}

/* Small buffers many times, so that the clock does not matter. */
static double microseconds(const struct side *side, bool engine, float *data, size_t count)
{
    struct error err = ERROR_INIT;
    int times = count < 100000 ? 100 : 1;
    worker_check(worker_barrier(side->worker, side->comm, &err), &err, "barrier");
    int64_t start = clock_mono_ns();
    for (int i = 0; i < times; i++) {
        if (engine)
            run_engine(side, data, count);
        else
            side->bare(side->context, data, count);
    }
    return (double)(clock_mono_ns() - start) / 1000 / times;
}

void engine_rounds(const struct worker *worker, struct engine_comm *comm, bare_allreduce *bare,
                   void *context, const size_t *sizes, int rounds)
{
    const struct side side = {worker, comm, bare, context};
    for (; *sizes > 0; sizes++) {
        size_t count = *sizes / sizeof(float);
        float *data AUTO_FREE = mem_array(count, sizeof *data);
        for (int i = -1; i < rounds; i++) { /* the first round warms up */
            bool engine_first = i % 2 == 0;
            double first = microseconds(&side, engine_first, data, count);
            double second = microseconds(&side, !engine_first, data, count);
            if (i >= 0 && worker->place.rank == 0)
                printf("%zu %.1f %.1f\n", *sizes, engine_first ? second : first,
                       engine_first ? first : second);
        }
    }
}
