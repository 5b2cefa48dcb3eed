/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --stage on a host: takes lists and chunks from the driver, and hands them to a thread that makes
 * the copies. Later it rewrites PREPARE, so that the workers use the copies.
 *
 *   task       of root N                                              then
 *   BEGIN      the list: is the copy there, or what does it lack?     tells the driver, or END
 *   WRITE      a chunk                                                tells the driver; the last:
 * END END        the copy gets its name                                 tells the driver: over
 */
#include <stdlib.h>
#include <string.h>

#include "agent/agent_state.h"
#include "agent/crew_config.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "features/stage/adapt_agent.h"
#include "features/stage/copy.h"
#include "features/stage/stage.h"
#include "features/stage/work_thread.h"

#define BEAT_MS 1000
#define LEAVE_MS 4000 /* for the end of it all: the driver waits 5 s for an agent */
#define BUSY_MS 2000  /* of these, for the task that runs */

struct chunk { /* that has come */
    uint64_t number;
    uint8_t *bytes; /* owned */
    size_t length;
};

/* What the thread works on. Between tasks it is the desk's. While it runs, the desk only reads what
 * it has set itself: a copy that fails is closed in the thread. */
struct stage_work {
    struct work_thread thread;
    struct stage_desk *owner;
    enum { STAGE_BEGIN, STAGE_WRITE, STAGE_END } what;
    struct stage_copy_config config;
    struct stage_copy copies[STAGE_ROOTS_MAX];
    uint32_t root; /* the present one; those before it are complete */
    char *text;    /* of the list; owned until the thread has it */
    size_t length;
    struct chunk chunks[STAGE_WINDOW]; /* to be written */
    size_t chunk_count;
    uint64_t lacks, taken; /* chunks of this root */
    struct stage_watch watch;
    int result;
    struct error err;
};

struct stage_desk {
    struct agent *agent;
    struct stage_work *work;
    struct chunk waiting[STAGE_WINDOW];
    size_t waiting_count;
    uint8_t *spare[STAGE_WINDOW]; /* memory for chunks: new memory costs more than to copy */
    size_t spare_count;
    struct loop_timer *beats;
    unsigned long beat; /* that the driver knows of */
    uint64_t stream;    /* bytes of the present root */
    bool open;          /* a list has come, and its copy is not over */
    bool failed;        /* the driver knows; what it has sent meanwhile is dropped */
    struct stage_places places;
};

#define BYTES_FIELD 9 /* of Stage */

/* In the thread */

static void free_chunks(struct chunk *chunks, size_t *count)
{
    for (size_t i = 0; i < *count; i++)
        free(chunks[i].bytes);
    *count = 0;
}

static void stage_work_free(struct thread_share *share)
{
    struct stage_work *work = (struct stage_work *)share;
    for (size_t i = 0; i < STAGE_ROOTS_MAX; i++)
        stage_copy_close(&work->copies[i]);
    fd_close(&work->thread.event);
    free(work->text);
    free((char *)(uintptr_t)work->config.place);
    free_chunks(work->chunks, &work->chunk_count);
    free(work);
}

static int write_chunks(struct stage_work *work, struct stage_copy *copy)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < work->chunk_count; i++) {
        const struct chunk *chunk = &work->chunks[i];
        result = stage_copy_write(copy, chunk->number, chunk->bytes, chunk->length, &work->err);
    }
    return result;
}

static int begin_copy(struct stage_work *work, struct stage_copy *copy)
{
    struct stage_list list;
    char *text = work->text;
    work->text = NULL;
    if (stage_list_read(text, work->length, &list, &work->err) < 0)
        return -1;
    return stage_copy_begin(copy, &work->config, &list, &work->err);
}

static void stage_work_run(struct work_thread *thread)
{
    struct stage_work *work = (struct stage_work *)thread;
    struct stage_copy *copy = &work->copies[work->root];
    error_init(&work->err);
    switch (work->what) {
    case STAGE_BEGIN: work->result = begin_copy(work, copy); break;
    case STAGE_WRITE: work->result = write_chunks(work, copy); break;
    case STAGE_END: work->result = stage_copy_end(copy, &work->err); break;
    }
}

/* In the loop */

static void widen(struct stage_desk *desk, bool wide)
{
    struct link *link = post_link(&desk->agent->post);
    if (link != NULL)
        link_widen(link, wide);
}

static void tell(struct stage_desk *desk, Hvdrun__Staged *message)
{
    message->root = desk->work->root;
    message->taken = desk->work->taken;
    desk->beat = atomic_load(&desk->work->watch.beat);
    post_message(&desk->agent->post, FRAME_STAGED, &message->base);
}

static void run(struct stage_desk *desk, int what)
{
    desk->work->what = what;
    work_thread_do(&desk->work->thread);
}

/* There is something to say at least every second, as long as the disk takes what it gets. */
static void beats(void *context)
{
    struct stage_desk *desk = context;
    Hvdrun__Staged message = HVDRUN__STAGED__INIT;
    if (!desk->open)
        return;
    if (atomic_load(&desk->work->watch.beat) != desk->beat)
        tell(desk, &message);
    loop_timer_set(desk->beats, BEAT_MS);
}

static void free_spare(struct stage_desk *desk)
{
    while (desk->spare_count > 0)
        free(desk->spare[--desk->spare_count]);
}

static void end_root(struct stage_desk *desk, Hvdrun__Staged *message)
{
    desk->open = false;
    free_spare(desk);
    widen(desk, false);
    tell(desk, message);
}

static void is_over(struct stage_desk *desk)
{
    struct stage_work *work = desk->work;
    const struct stage_copy *copy = &work->copies[work->root];
    Hvdrun__Staged message = HVDRUN__STAGED__INIT;
    message.over = true;
    message.had = copy->list.stream - copy->missing;
    desk->places.items[work->root].to = stage_copy_place(copy);
    desk->places.items[work->root].list = &copy->list;
    end_root(desk, &message);
}

static void has_failed(struct stage_desk *desk)
{
    Hvdrun__Staged message = HVDRUN__STAGED__INIT;
    message.problem = desk->work->err.text;
    desk->failed = true;
    free_chunks(desk->waiting, &desk->waiting_count);
    free_chunks(desk->work->chunks, &desk->work->chunk_count);
    end_root(desk, &message);
}

static void add_pair(uint64_t **list, size_t *count, size_t *room, uint64_t chunk)
{
    if (*count > 0 && (*list)[*count - 2] + (*list)[*count - 1] == chunk) {
        (*list)[*count - 1]++;
        return;
    }
    *list = mem_one_more(*list, *count + 1, room, sizeof(**list));
    (*list)[(*count)++] = chunk;
    (*list)[(*count)++] = 1;
}

static void has_begun(struct stage_desk *desk)
{
    struct stage_work *work = desk->work;
    const struct stage_copy *copy = &work->copies[work->root];
    Hvdrun__Staged message = HVDRUN__STAGED__INIT;
    uint64_t *pairs AUTO_FREE = NULL;
    size_t room = 0;
    for (uint64_t chunk = 0; chunk < stage_list_chunks(&copy->list); chunk++) {
        if (!stage_copy_lacks(copy, chunk))
            continue;
        work->lacks++;
        add_pair(&pairs, &message.n_lacks, &room, chunk);
    }
    desk->stream = copy->list.stream;
    message.told = true;
    message.lacks = pairs;
    tell(desk, &message);
}

/* The next task; none if the driver must send first. */
static void go_on(struct stage_desk *desk)
{
    struct stage_work *work = desk->work;
    if (work->taken == work->lacks) {
        run(desk, STAGE_END);
    } else if (desk->waiting_count > 0) {
        memcpy(work->chunks, desk->waiting, desk->waiting_count * sizeof(*desk->waiting));
        work->chunk_count = desk->waiting_count;
        desk->waiting_count = 0;
        run(desk, STAGE_WRITE);
    }
}

static void wrote(struct stage_desk *desk)
{
    Hvdrun__Staged message = HVDRUN__STAGED__INIT;
    struct stage_work *work = desk->work;
    work->taken += work->chunk_count;
    for (; work->chunk_count > 0 && desk->spare_count < STAGE_WINDOW; work->chunk_count--)
        desk->spare[desk->spare_count++] = work->chunks[work->chunk_count - 1].bytes;
    free_chunks(work->chunks, &work->chunk_count);
    tell(desk, &message);
}

static void stage_work_done(struct work_thread *thread)
{
    struct stage_work *work = (struct stage_work *)thread;
    struct stage_desk *desk = work->owner;
    if (work->result < 0) {
        has_failed(desk);
    } else if (work->what == STAGE_END) {
        is_over(desk);
    } else {
        if (work->what == STAGE_BEGIN)
            has_begun(desk);
        else
            wrote(desk);
        go_on(desk);
    }
}

static struct stage_desk *create(struct agent *agent)
{
    struct stage_desk *desk = mem_alloc(sizeof(*desk));
    struct stage_work *work = mem_alloc(sizeof(*work));
    *desk = (struct stage_desk){.agent = agent, .work = work};
    desk->beats = loop_timer_create(agent->loop, beats, desk);
    work->thread = (struct work_thread){
        .run = stage_work_run, .done = stage_work_done, .free_all = stage_work_free, .event = -1};
    work->owner = desk;
    work->config.watch = &work->watch;
    for (size_t i = 0; i < STAGE_ROOTS_MAX; i++)
        work->copies[i].lock = work->copies[i].fd = -1;
    (void)work_thread_open(&work->thread, agent->loop, "stage", &work->err); /* has_failed() */
    agent->own[AGENT_PART_stage_desk] = desk;
    return desk;
}

/* NULL, or how the driver breaks the protocol. */
static const char *take_list(struct stage_desk *desk, const Hvdrun__Stage *message)
{
    struct stage_work *work = desk->work;
    if (desk->open || message->root != desk->places.count || message->root >= STAGE_ROOTS_MAX)
        return "STAGE has a list that is not the next one";
    work->root = message->root;
    desk->open = true;
    stage_places_add(&desk->places, message);
    if (!work->thread.open) {
        has_failed(desk);
        return NULL;
    }
    free((char *)(uintptr_t)work->config.place);
    work->config.place = mem_strdup(message->folder);
    work->config.keep = (struct stage_keep){message->keep_bytes, (int64_t)message->keep_ms};
    work->text = mem_dup(message->list.data, message->list.len);
    work->length = message->list.len;
    work->lacks = work->taken = 0;
    run(desk, STAGE_BEGIN);
    widen(desk, true);
    loop_timer_set(desk->beats, BEAT_MS);
    return NULL;
}

static uint8_t *keep_bytes(struct stage_desk *desk, const uint8_t *bytes, size_t length)
{
    uint8_t *room = desk->spare_count > 0 ? desk->spare[--desk->spare_count]
                                          : mem_array(STAGE_CHUNK, sizeof(*bytes));
    memcpy(room, bytes, length);
    return room;
}

static const char *take_chunk(struct stage_desk *desk, const Hvdrun__Stage *message,
                              const uint8_t *bytes, size_t length)
{
    const struct stage_work *work = desk->work;
    bool busy = work->thread.busy;
    bool told = desk->open && !(busy && work->what != STAGE_WRITE);
    if (!told || message->root != work->root || desk->waiting_count == STAGE_WINDOW)
        return "STAGE has a chunk that nobody has asked for";
    if (length == 0 || length != stage_chunk_size(desk->stream, message->chunk))
        return "STAGE has a chunk of another size";
    desk->waiting[desk->waiting_count++] =
        (struct chunk){message->chunk, keep_bytes(desk, bytes, length), length};
    if (!busy)
        go_on(desk);
    return NULL;
}

static void take(struct agent *agent, const struct frame_header *header, const void *body)
{
    struct stage_desk *desk = agent_own(agent, stage_desk);
    const char *problem = NULL;
    ProtobufCBinaryData *borrowed;
    Hvdrun__Stage *message = (Hvdrun__Stage *)message_borrow(
        &hvdrun__stage__descriptor, body, header->length, BYTES_FIELD, &borrowed);
    if (desk == NULL)
        desk = create(agent);
    if (message == NULL)
        problem = "STAGE cannot be read";
    else if (!desk->failed && message->list.len > 0)
        problem = take_list(desk, message);
    else if (desk->failed)
        widen(desk, false); /* something of what is dropped here was in the pipe before */
    else
        problem = take_chunk(desk, message, message->bytes.data, message->bytes.len);
    if (problem != NULL)
        agent_end_breach(agent, problem);
    if (borrowed != NULL)
        borrowed->data = NULL;
    message_free(message == NULL ? NULL : &message->base);
}

static void adapt(struct agent *agent, Hvdrun__Prepare *prepare)
{
    struct stage_desk *desk = agent_own(agent, stage_desk);
    if (desk == NULL)
        return;
    widen(desk, false); /* too much may have been in the pipe before */
    stage_places_adapt(&desk->places, prepare);
}

static void crew(struct agent *agent, struct crew_config *config, const Hvdrun__Prepare *prepare,
                 bool joins)
{
    struct stage_desk *desk = agent_own(agent, stage_desk);
    (void)prepare, (void)joins;
    if (desk != NULL && desk->places.problem != NULL)
        config->problem = desk->places.problem;
}

/* All copies share the time that is left. */
static void close_part(struct agent *agent)
{
    struct stage_desk *desk = agent_own(agent, stage_desk);
    struct stage_work *work = desk->work;
    atomic_store(&work->watch.until_ms, clock_mono_ms() + LEAVE_MS);
    atomic_store(&work->watch.stop, true);
    bool busy = work_thread_close(&work->thread, BUSY_MS);
    for (size_t i = 0; !busy && i < desk->places.count; i++) {
        if (desk->places.items[i].link != NULL && stage_copy_is_alone(&work->copies[i]))
            stage_places_unlink(&desk->places, i);
        stage_copy_close(&work->copies[i]); /* so its lock is exclusive for a moment only */
    }
    work_thread_leave(&work->thread);
    free_chunks(desk->waiting, &desk->waiting_count);
    free_spare(desk);
    loop_timer_destroy(desk->beats);
    stage_places_destroy(&desk->places);
    free(desk);
}

static const struct agent_order orders[] = {{FRAME_STAGE, NULL, take}, {0}};

const struct agent_part stage_desk_agent_part = {
    .name = "stage_desk", .orders = orders, .adapt = adapt, .crew = crew, .close = close_part};
