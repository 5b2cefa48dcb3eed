/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/evidence.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/strv.h"
#include "model/env/secret.h"
#include "node/evidence.h"
#include "wire/control.pb-c.h"

#define ENVIRON_MAX ((size_t)256 << 10) /* bytes of an environment */
#define VALUE_MAX ((size_t)4096)

static void add_item(void *context, const char *name, const char *text)
{
    Hvdrun__Evidence *message = context;
    Hvdrun__EvidenceItem *item = mem_alloc(sizeof(*item));
    hvdrun__evidence_item__init(item);
    item->name = mem_strdup(name);
    item->text = mem_strdup(text);
    message->items =
        mem_resize_array(message->items, message->n_items + 1, sizeof(Hvdrun__EvidenceItem *));
    message->items[message->n_items++] = item;
}

struct first {
    pid_t pid; /* of a worker that runs; 0: none yet */
};

static void take_first(void *context, uint32_t seat, pid_t pid)
{
    struct first *first = context;
    (void)seat;
    if (first->pid == 0)
        first->pid = pid;
}

/* The process may have changed its environment since, which nobody can see. */
static void read_environment(pid_t pid, struct strv *out)
{
    struct buf text AUTO_BUF = BUF_INIT(ENVIRON_MAX);
    char *path AUTO_FREE = mem_printf("/proc/%d/environ", (int)pid);
    struct error err = ERROR_INIT;
    if (pid == 0 || fd_read_file(path, &text, &err) < 0)
        return;
    const char *bytes = buf_text(&text), *end = bytes + text.length;
    for (const char *pair = bytes; pair < end; pair += strlen(pair) + 1) {
        struct buf masked AUTO_BUF = BUF_INIT(VALUE_MAX);
        if (strchr(pair, '=') == NULL || strlen(pair) > VALUE_MAX / 2)
            continue;
        secret_mask(pair, &masked);
        char *shown = mem_strdup(buf_text(&masked));
        log_make_plain(shown);
        strv_add_take(out, shown);
    }
}

void evidence_report(const struct crews *crews, uint32_t round, const struct post *post)
{
    Hvdrun__Evidence message = HVDRUN__EVIDENCE__INIT;
    struct strv environment AUTO_STRV = STRV_INIT;
    struct first first = {.pid = 0};
    message.round = round;
    evidence_collect("", add_item, &message);
    crews_walk_live(crews, take_first, &first);
    read_environment(first.pid, &environment);
    message.environment = environment.items;
    message.n_environment = environment.count;
    post_message(post, FRAME_EVIDENCE, &message.base);
    for (size_t i = 0; i < message.n_items; i++) {
        free(message.items[i]->name);
        free(message.items[i]->text);
        free(message.items[i]);
    }
    free(message.items);
}
