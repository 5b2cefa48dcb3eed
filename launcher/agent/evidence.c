/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/evidence.h"

#include <stdlib.h>
#include <string.h>

#include "agent/flight_dumps.h"
#include "agent/gpu_health.h"
#include "agent/ras_address.h"
#include "agent/ras_client.h"
#include "agent/ras_json.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/plain.h"
#include "base/strv.h"
#include "io/proc.h"
#include "model/env/secret.h"
#include "node/evidence.h"
#include "wire/control.pb-c.h"

#define ADVANCE_MS 50
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

/* One worker after the other. */
struct walk {
    struct strv environment; /* of the first one */
    size_t workers;
    struct flight_item *flights; /* of those that have a FIFO */
    size_t count;
};

static void keep_environment(const struct buf *text, struct strv *out)
{
    const char *bytes = buf_text(text), *end = bytes + text->length;
    for (const char *pair = bytes; pair < end; pair += strlen(pair) + 1) {
        struct buf masked AUTO_BUF = BUF_INIT(VALUE_MAX);
        if (strchr(pair, '=') == NULL || strlen(pair) > VALUE_MAX / 2)
            continue;
        secret_mask(pair, &masked);
        char *shown = mem_strdup(buf_text(&masked));
        plain_text(shown);
        strv_add_take(out, shown);
    }
}

/* The process may have changed its environment since, which nobody can see. */
static void take_worker(void *context, uint32_t seat, pid_t pid)
{
    struct walk *walk = context;
    struct buf text AUTO_BUF = BUF_INIT(ENVIRON_MAX);
    struct flight_item item = {.seat = seat};
    if (!proc_read(pid, 0, "environ", &text))
        return;
    if (walk->workers++ == 0)
        keep_environment(&text, &walk->environment);
    if (flight_recorder_places(buf_text(&text), text.length, &item.places) < 0)
        return;
    walk->flights = mem_resize_array(walk->flights, walk->count + 1, sizeof(*walk->flights));
    walk->flights[walk->count++] = item;
}

struct evidence_desk {
    struct loop *loop;
    struct helpers *helpers;
    const char *program;
    struct loop_timer *timer;
    struct flight_dumps *dumps;       /* NULL: none are to come */
    struct ras_client *ras;           /* likewise */
    struct gpu_health_question *gpus; /* likewise */
    struct asked asked;
    size_t to_come; /* files */
};

static void send_file(struct evidence_desk *desk, enum evidence_file_kind kind, uint32_t seat,
                      const char *bytes, size_t length, const char *missing)
{
    Hvdrun__Evidence message = HVDRUN__EVIDENCE__INIT;
    Hvdrun__EvidenceFile file = HVDRUN__EVIDENCE_FILE__INIT;
    file.kind = kind;
    file.seat = seat;
    file.data = (ProtobufCBinaryData){.len = length, .data = (uint8_t *)bytes};
    file.missing = (char *)(missing == NULL ? "" : missing);
    message.file = &file;
    desk->to_come--;
    asked_piece(&desk->asked, &message.base, desk->to_come > 0);
}

static void send_dump(void *context, const struct flight_item *item)
{
    send_file(context, EVIDENCE_FILE_FLIGHT, item->seat, item->bytes, item->length, item->missing);
}

static void look_for_dumps(void *context)
{
    struct evidence_desk *desk = context;
    if (!flight_dumps_advance(desk->dumps, send_dump, desk)) {
        loop_timer_set(desk->timer, ADVANCE_MS);
        return;
    }
    flight_dumps_destroy(desk->dumps);
    desk->dumps = NULL;
}

/* The JSON as NCCL has written it, if it is that. */
static void take_ras(void *context, const char *text, size_t length)
{
    struct evidence_desk *desk = context;
    struct ras_report report = {.count = 0};
    const char *begin = text == NULL ? NULL : memchr(text, '{', length);
    size_t rest = begin == NULL ? 0 : length - (size_t)(begin - text);
    bool right = begin != NULL && ras_json_read(text, length, &report, NULL) == 0;
    ras_report_clear(&report);
    if (right && rest <= FLIGHT_FILE_MAX)
        send_file(desk, EVIDENCE_FILE_RAS, 0, begin, rest, NULL);
    else
        send_file(desk, EVIDENCE_FILE_RAS, 0, NULL, 0, right ? "it has more than 4 MiB" : NULL);
    ras_client_destroy(desk->ras);
    desk->ras = NULL;
}

static void take_gpus(void *context, const char *bytes, size_t length, const char *missing)
{
    struct evidence_desk *desk = context;
    send_file(desk, EVIDENCE_FILE_GPUS, 0, bytes, length, missing);
    gpu_health_cancel(desk->gpus);
    desk->gpus = NULL;
}

struct evidence_desk *evidence_desk_create(struct loop *loop, struct helpers *helpers,
                                           const char *program)
{
    struct evidence_desk *desk = mem_alloc(sizeof(*desk));
    *desk = (struct evidence_desk){.loop = loop, .helpers = helpers, .program = program};
    desk->timer = loop_timer_create(loop, look_for_dumps, desk);
    return desk;
}

static void forget(struct evidence_desk *desk)
{
    loop_timer_clear(desk->timer);
    flight_dumps_destroy(desk->dumps);
    ras_client_destroy(desk->ras);
    gpu_health_cancel(desk->gpus);
    desk->dumps = NULL;
    desk->ras = NULL;
    desk->gpus = NULL;
}

void evidence_desk_destroy(struct evidence_desk *desk)
{
    if (desk == NULL)
        return;
    forget(desk);
    loop_timer_destroy(desk->timer);
    free(desk);
}

static void begin_files(struct evidence_desk *desk, const struct crews *crews,
                        struct walk *walk_take, uint64_t room)
{
    char *address AUTO_FREE = ras_address_of(crews);
    if (walk_take->count > 0) {
        desk->dumps = flight_dumps_create(walk_take->flights, walk_take->count, (size_t)room);
        loop_timer_set(desk->timer, ADVANCE_MS);
    }
    if (address != NULL)
        desk->ras = ras_client_create(desk->loop, address, take_ras, desk);
    desk->gpus = gpu_health_ask(desk->loop, desk->helpers, desk->program, GPU_HEALTH_LIMIT_MS,
                                take_gpus, desk);
    desk->to_come = walk_take->count + 1 + (desk->ras != NULL ? 1 : 0);
}

static void free_items(const Hvdrun__Evidence *message)
{
    for (size_t i = 0; i < message->n_items; i++) {
        free(message->items[i]->name);
        free(message->items[i]->text);
        free(message->items[i]);
    }
    free(message->items);
}

void evidence_desk_ask(struct evidence_desk *desk, const struct crews *crews,
                       const struct asked *asked, uint64_t file_bytes)
{
    Hvdrun__Evidence message = HVDRUN__EVIDENCE__INIT;
    struct walk walk = {.environment = STRV_INIT};
    forget(desk);
    desk->asked = *asked;
    evidence_collect("", add_item, &message);
    crews_walk_live(crews, take_worker, &walk);
    message.environment = walk.environment.items;
    message.n_environment = walk.environment.count;
    asked_piece(asked, &message.base, true);
    begin_files(desk, crews, &walk, file_bytes);
    free_items(&message);
    strv_destroy(&walk.environment);
}
