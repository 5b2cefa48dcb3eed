/* SPDX-License-Identifier: Apache-2.0 */
#include "features/warm/warm_agent.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/mem.h"
#include "features/warm/holder.h"

void warm_kept_destroy(struct warm_kept *kept)
{
    warm_kind_destroy(&kept->kind);
    free(kept->modules);
    *kept = (struct warm_kept){.socket = -1};
}

void warm_holder_add(struct warm_holder *holder, struct warm_kept *kept)
{
    MEM_ADD(holder->list, holder->count) = *kept;
    size_t i = holder->count - 1;
    for (; i > 0 && holder->list[i - 1].used_ms > kept->used_ms; i--)
        holder->list[i] = holder->list[i - 1];
    holder->list[i] = *kept;
}

struct warm_kept warm_holder_take(struct warm_holder *holder, size_t i)
{
    struct warm_kept kept = holder->list[i];
    holder->count--;
    memmove(holder->list + i, holder->list + i + 1, (holder->count - i) * sizeof(kept));
    return kept;
}

static void end(struct warm_holder *holder, size_t i)
{
    struct warm_kept kept = warm_holder_take(holder, i);
    if (waitpid(kept.pid, NULL, WNOHANG) == 0)
        kill(-kept.pid, SIGKILL); /* her session; ranks have their own */
    fd_close(&kept.socket);
    warm_kept_destroy(&kept);
}

/* She says nothing unless she is asked. */
static bool waits(const struct warm_kept *kept)
{
    char byte;
    return recv(kept->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

int64_t warm_holder_bound(struct warm_holder *holder, int64_t now_ms)
{
    int64_t bytes = 0, next_ms = -1;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue; /* first: the socket of one whose number is free again says so */
    for (size_t i = holder->count; i-- > 0;) { /* the newest first */
        const struct warm_kept *kept = &holder->list[i];
        int64_t left_ms = kept->used_ms + holder->idle_ms - now_ms;
        int64_t all = bytes + warm_bytes(kept->pid);
        if (!waits(kept) || left_ms <= 0 || all > holder->bytes ||
            holder->count - i > WARM_MOTHERS_MAX) {
            end(holder, i);
            continue;
        }
        bytes = all;
        if (next_ms < 0 || left_ms < next_ms)
            next_ms = left_ms;
    }
    return next_ms;
}

void warm_holder_clear(struct warm_holder *holder)
{
    while (holder->count > 0) {
        struct warm_kept kept = warm_holder_take(holder, holder->count - 1);
        fd_close(&kept.socket);
        warm_kept_destroy(&kept);
    }
    free(holder->list);
    holder->list = NULL;
}

void warm_holder_write(const struct warm_holder *holder, struct buf *out)
{
    fields_put_number(out, (uint64_t)holder->idle_ms);
    fields_put_number(out, (uint64_t)holder->bytes);
    fields_put_number(out, holder->count);
    for (size_t i = 0; i < holder->count; i++) {
        const struct warm_kept *kept = &holder->list[i];
        fields_put_number(out, (uint64_t)kept->pid);
        fields_put_number(out, (uint64_t)kept->socket);
        fields_put_number(out, (uint64_t)kept->born_ms);
        fields_put_number(out, (uint64_t)kept->used_ms);
        fields_put(out, kept->modules);
        warm_kind_write(&kept->kind, out);
    }
}

void warm_holder_read(struct field_reader *fields, struct warm_holder *out)
{
    *out = (struct warm_holder){.idle_ms = fields_next_number(fields),
                                .bytes = fields_next_number(fields)};
    int64_t count = fields_next_number(fields);
    for (int64_t i = 0; i < count && fields->at < fields->end; i++) {
        struct warm_kept kept = {.pid = (pid_t)fields_next_number(fields),
                                 .socket = (int)fields_next_number(fields),
                                 .born_ms = fields_next_number(fields),
                                 .used_ms = fields_next_number(fields),
                                 .modules = mem_strdup(fields_next(fields))};
        warm_kind_take(fields, &kept.kind);
        warm_holder_add(out, &kept);
    }
}
