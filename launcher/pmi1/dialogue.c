/* SPDX-License-Identifier: Apache-2.0 */
#include "pmi1/dialogue.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define ANSWER_MAX ((size_t)2 * PMI1_LINE_MAX) /* a stored value and the words around it */

struct kvs *pmi1_space(struct pmi1_engine *engine, const char *name)
{
    for (int i = 0; name != NULL && i < PMI1_SPACES_MAX; i++)
        if (engine->spaces[i].name != NULL && strcmp(engine->spaces[i].name, name) == 0)
            return engine->spaces[i].kvs;
    return NULL;
}

void pmi1_answer(struct pmi1_engine *engine, const struct member *member, const char *format, ...)
{
    struct buf line AUTO_BUF = BUF_INIT(ANSWER_MAX);
    va_list args;
    va_start(args, format);
    buf_vprintf(&line, format, args);
    va_end(args);
    buf_putc(&line, '\n');
    engine->ops.send(engine->context, member->rank, buf_text(&line), line.length);
}

void pmi1_release_barrier(struct pmi1_engine *engine)
{
    engine->waiting = 0;
    for (int i = 0; i < engine->local_count; i++)
        if (engine->members[i].state == PMI1_BARRIER)
            engine->members[i].state = PMI1_RUNNING;
    for (int i = 0; i < engine->local_count; i++)
        if (engine->members[i].state == PMI1_RUNNING)
            pmi1_answer(engine, &engine->members[i], "cmd=barrier_out");
}

int pmi1_enter_barrier(struct pmi1_engine *engine, struct member *member, struct error *err)
{
    if (member->state == PMI1_BARRIER)
        return error_set(err, "a second barrier_in inside the barrier");
    member->state = PMI1_BARRIER;
    if (++engine->waiting < engine->local_count)
        return 0;
    if (engine->node_count <= 1) {
        pmi1_release_barrier(engine);
        return 0;
    }
    size_t length = engine->pending.length;
    char *pairs AUTO_FREE = buf_take(&engine->pending);
    engine->ops.barrier_in(engine->context, pairs, length);
    return 0;
}
