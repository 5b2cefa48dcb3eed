/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers about the topic "evidence". The first piece comes at once: what this host knows after a
 * failure (features/evidence/host_evidence.h), and the environment of one of its workers, without
 * secrets. Files follow: the dumps of PyTorch's flight recorder, what NCCL says (RAS), and what
 * NVIDIA's library knows of the GPUs.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_state.h"
#include "agent/gpu_health.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/plain.h"
#include "base/strv.h"
#include "features/evidence/evidence_agent_test.h"
#include "features/evidence/host_evidence.h"
#include "features/hang/pulse_agent.h"
#include "features/hang/ras.h"
#include "features/hang/ras_client.h"
#include "io/proc.h"
#include "io/threads.h"
#include "model/env/flight_recorder.h"
#include "model/env/scrub.h"
#include "wire/control.pb-c.h"

#define PICKLE_STOP '.'

/* A link, a FIFO or a file of somebody else is not what the rank has written. */
static int open_own(const char *path, int flags, mode_t kind, struct stat *info)
{
    int fd = fd_open(path, flags | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (fstat(fd, info) == 0 && (info->st_mode & S_IFMT) == kind && info->st_uid == geteuid())
        return fd;
    fd_close(&fd);
    return -1;
}

int flight_dump_ask(struct flight_dump *dump, const char *pipe, const char *path)
{
    struct stat info;
    *dump = (struct flight_dump){.before = {.size = 0}};
    int file AUTO_FD = open_own(path, O_RDONLY, S_IFREG, &info);
    if (file >= 0)
        dump->before = file_stamp_of_stat(&info);
    int fd AUTO_FD = open_own(pipe, O_WRONLY, S_IFIFO, &info);
    return fd >= 0 && fd_write(fd, "1", 1) == 1 ? 0 : -1;
}

enum flight_state flight_dump_look(struct flight_dump *dump, const char *path, struct buf *out)
{
    struct stat info;
    int fd AUTO_FD = open_own(path, O_RDONLY, S_IFREG, &info);
    if (fd < 0 || info.st_size == 0)
        return FLIGHT_WAITS;
    struct file_stamp now = file_stamp_of_stat(&info);
    bool still = file_stamp_equal(&now, &dump->last);
    dump->last = now;
    if (file_stamp_equal(&now, &dump->before))
        return FLIGHT_WAITS;
    if (!still)
        return FLIGHT_WAITS;
    if ((uint64_t)info.st_size > out->limit)
        return FLIGHT_TOO_LARGE;
    buf_clear(out);
    if (fd_read_rest(fd, out) == 0 && out->length > 0 &&
        buf_text(out)[out->length - 1] == PICKLE_STOP)
        return FLIGHT_TAKEN;
    return FLIGHT_WAITS;
}

/*
 * The dumps of PyTorch's flight recorder of all workers here. A thread asks for them and waits, so
 * a folder that does not answer does not hold the agent up. The thread ends soon after the
 * deadline, unless the kernel holds it.
 */

#define FLIGHT_WAIT_MS 10000
#define FLIGHT_FILE_MAX ((size_t)4 << 20)

#define LATE_MS 500 /* the thread notices the deadline before we give it up */

/* Shared with the thread; the last one frees it. */
struct flight_dumps {
    struct thread_share share;
    struct flight_item *items;
    size_t count, room;
    int64_t deadline_ms;
};

static void free_dumps(struct thread_share *all)
{
    struct flight_dumps *dumps = (struct flight_dumps *)all;
    for (size_t i = 0; i < dumps->count; i++) {
        flight_places_clear(&dumps->items[i].places);
        free(dumps->items[i].bytes);
    }
    free(dumps->items);
    free(dumps);
}

static void end_item(struct flight_dumps *dumps, struct flight_item *item, const char *missing)
{
    thread_share_lock(&dumps->share);
    item->missing = missing;
    item->ended = true;
    thread_share_unlock(&dumps->share);
}

static void take_bytes(struct flight_dumps *dumps, struct flight_item *item, const struct buf *text)
{
    if (text->length > dumps->room) {
        end_item(dumps, item, "the dumps of this host are too large in total");
        return;
    }
    dumps->room -= text->length;
    item->bytes = mem_alloc(text->length);
    memcpy(item->bytes, buf_text(text), text->length);
    item->length = text->length;
    end_item(dumps, item, NULL);
}

static void look_at(struct flight_dumps *dumps, struct flight_item *item, struct flight_dump *dump)
{
    struct buf text AUTO_BUF = BUF_INIT(FLIGHT_FILE_MAX);
    enum flight_state state = flight_dump_look(dump, item->places.dump, &text);
    if (state == FLIGHT_TAKEN)
        take_bytes(dumps, item, &text);
    else if (state == FLIGHT_TOO_LARGE)
        end_item(dumps, item, "it has more than 4 MiB");
}

/* Until it is time to look again. false: it is too late for that. */
static bool wait_a_while(struct flight_dumps *dumps)
{
    int64_t until_ms = clock_mono_ms() + FLIGHT_PAUSE_MS;
    thread_share_lock(&dumps->share);
    while (!thread_share_is_left(&dumps->share) && thread_share_wait(&dumps->share, until_ms)) {
    }
    bool goes_on = !thread_share_is_left(&dumps->share) && clock_mono_ms() <= dumps->deadline_ms;
    thread_share_unlock(&dumps->share);
    return goes_on;
}

/* Only this thread writes to items that have not ended, so it reads them without the mutex. */
static void collect(struct thread_share *share)
{
    struct flight_dumps *dumps = (struct flight_dumps *)share;
    struct flight_dump *looks AUTO_FREE = mem_array(dumps->count + 1, sizeof(*looks));
    size_t open = 0;
    for (size_t i = 0; i < dumps->count; i++) {
        struct flight_item *item = &dumps->items[i];
        if (flight_dump_ask(&looks[i], item->places.pipe, item->places.dump) < 0)
            end_item(dumps, item, NULL);
        else
            open++;
    }
    while (open > 0 && wait_a_while(dumps)) {
        open = 0;
        for (size_t i = 0; i < dumps->count; i++) {
            if (!dumps->items[i].ended)
                look_at(dumps, &dumps->items[i], &looks[i]);
            open += !dumps->items[i].ended;
        }
    }
    for (size_t i = 0; i < dumps->count; i++) {
        if (!dumps->items[i].ended)
            end_item(dumps, &dumps->items[i], "it did not come in time");
    }
}

struct flight_dumps *flight_dumps_create(struct flight_item *items_take, size_t count, size_t room)
{
    struct flight_dumps *dumps =
        MEM_NEW((struct flight_dumps){.items = items_take,
                                      .count = count,
                                      .room = room,
                                      .deadline_ms = clock_mono_ms() + FLIGHT_WAIT_MS});
    if (thread_share_start(&dumps->share, "evidence", collect, free_dumps) != 0)
        dumps->deadline_ms = 0; /* all is missing */
    return dumps;
}

bool flight_dumps_advance(struct flight_dumps *dumps,
                          void (*each)(void *context, const struct flight_item *item),
                          void *context)
{
    size_t open = 0;
    thread_share_lock(&dumps->share);
    bool late = clock_mono_ms() > dumps->deadline_ms + LATE_MS;
    for (size_t i = 0; i < dumps->count; i++) {
        struct flight_item *item = &dumps->items[i];
        struct flight_item none = {.seat = item->seat, .missing = "its folder does not answer"};
        if (!item->told && (item->ended || late)) {
            each(context, item->ended ? item : &none);
            item->told = true;
        }
        open += !item->told;
    }
    thread_share_unlock(&dumps->share);
    return open == 0;
}

void flight_dumps_destroy(struct flight_dumps *dumps)
{
    if (dumps == NULL)
        return;
    thread_share_leave(&dumps->share);
}

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
    MEM_ADD(message->items, message->n_items) = item;
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
    MEM_ADD(walk->flights, walk->count) = item;
}

struct evidence_desk {
    struct loop *loop;
    struct helpers *helpers;
    const char *program;
    struct loop_timer *timer;
    struct flight_dumps *dumps; /* NULL: none are to come */
    struct ras_client *ras;     /* likewise */
    struct program *gpus;       /* likewise */
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

static void take_gpus(void *context, const struct program_result *result)
{
    struct evidence_desk *desk = context;
    desk->gpus = NULL;
    send_file(desk, EVIDENCE_FILE_GPUS, 0, result->text, result->length,
              gpu_health_missing(result));
}

static void forget(struct evidence_desk *desk)
{
    loop_timer_clear(desk->timer);
    flight_dumps_destroy(desk->dumps);
    ras_client_destroy(desk->ras);
    program_cancel(desk->gpus);
    desk->dumps = NULL;
    desk->ras = NULL;
    desk->gpus = NULL;
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
    desk->gpus = gpu_health_ask(desk->loop, desk->helpers, desk->program, GPU_HEALTH_NOW,
                                GPU_HEALTH_LIMIT_MS, take_gpus, desk);
    desk->to_come = walk_take->count + 1 + (desk->ras != NULL ? 1 : 0);
}

static struct evidence_desk *desk_of(struct agent *agent)
{
    struct evidence_desk *desk = agent_own(agent, evidence_desk);
    if (desk != NULL)
        return desk;
    desk = MEM_NEW((struct evidence_desk){
        .loop = agent->loop, .helpers = agent->helpers, .program = agent->helper_program});
    desk->timer = loop_timer_create(desk->loop, look_for_dumps, desk);
    agent->own[AGENT_PART_evidence_desk] = desk;
    return desk;
}

/* A question that comes while files of an earlier one are collected takes its place. */
static void answer(struct agent *agent, const struct asked *asked, const ProtobufCMessage *request)
{
    struct evidence_desk *desk = desk_of(agent);
    Hvdrun__Evidence *message = mem_alloc(sizeof(*message));
    struct walk walk = {.environment = STRV_INIT};
    hvdrun__evidence__init(message);
    forget(desk);
    desk->asked = *asked;
    evidence_collect("", add_item, message);
    crews_walk_live(agent->crews, take_worker, &walk);
    message->environment = walk.environment.items;
    message->n_environment = walk.environment.count;
    asked_piece(asked, &message->base, true);
    begin_files(desk, agent->crews, &walk, ((const Hvdrun__EvidenceRequest *)request)->file_bytes);
    hvdrun__evidence__free_unpacked(message, NULL); /* with the environment */
}

static void close_part(struct agent *agent)
{
    struct evidence_desk *desk = agent_own(agent, evidence_desk);
    forget(desk);
    loop_timer_destroy(desk->timer);
    free(desk);
}

static const struct ask_rule topics[] = {{&topic_evidence, answer}, {.topic = NULL}};
const struct agent_part evidence_desk_agent_part = {
    .name = "evidence_desk", .topics = topics, .close = close_part};
