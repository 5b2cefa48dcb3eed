/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start and the end of libhvd, and its timeline: connects the loop with the timeline and with
 * the line to the launcher. Over the line, the failure of a rank makes pending operations fail at
 * once, and operations that wait for too long are reported.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/plain.h"
#include "core/action.h"
#include "core/request.h"
#include "include/hvd.h"
#include "line/line.h"
#include "line/packet.h"
#include "loop/library.h"
#include "timeline/timeline.h"

#define NS_PER_S 1000000000
#define EPOCH_VARIABLE "HVDRUN_EPOCH"
#define EPOCH_MAX 2000000000

/* ---- What the launcher hears of a tensor that waits for too long ----------------------------- */

static void add_ranks(struct line_ranks *to, const int *ranks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        line_ranks_add(to, (uint32_t)ranks[i]);
}

/* The packet is a line of text: a name may have any bytes. */
static void copy_plain(const char *from, char *to, size_t size)
{
    snprintf(to, size, "%s", from);
    plain_line(to, '?');
}

/* Of a tensor of a process set. */
static struct line_packet stall_packet(enum line_type type, int32_t set, const struct stall *stall)
{
    struct line_packet packet = {.type = type, .set = (uint32_t)set};
    packet.seconds = stall->age_ns > 0 ? (uint32_t)(stall->age_ns / NS_PER_S) : 0;
    copy_plain(kind_text(stall->kind), packet.operation, sizeof(packet.operation));
    copy_plain(stall->name, packet.name, sizeof(packet.name));
    add_ranks(&packet.waiting, stall->waiting, stall->waiting_count);
    add_ranks(&packet.missing, stall->missing, stall->missing_count);
    return packet;
}

/* ---- Start and end --------------------------------------------------------------------------- */

/* All but `lock` changes only under `lock`, which is held for the whole of a start or an end. The
 * reader is also used by threads of the loop, from the start of the loop to its end. */
static struct {
    pthread_mutex_t lock;
    struct timeline *timeline;  /* from the first start on; never destroyed: the loop knows it */
    struct line_reader *reader; /* NULL: no line */
} attached = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The line */

static void rank_ended(void *context, uint32_t rank, bool failed, const char *how)
{
    (void)context;
    if (rank > INT32_MAX)
        return;
    if (failed)
        loop_peer_lost((int)rank, how);
    else
        loop_peer_left((int)rank);
}

static void others_left(void *context)
{
    struct world *world = library_enter();
    (void)context;
    if (world == NULL)
        return;
    world_lost(world, HVD_ERR_PEER_LOST,
               "the other ranks have gone on to another epoch of the job");
    library_leave();
}

static void tell_progress(struct line_reader *reader)
{
    struct line_packet packet = {.type = LINE_PROGRESS, .operations = loop_completed()};
    line_reader_send(reader, &packet);
}

/* The agent wants to know whether this rank makes progress. */
static void asked(void *context)
{
    struct line_reader *reader = __atomic_load_n(&attached.reader, __ATOMIC_ACQUIRE);
    (void)context;
    if (reader != NULL) /* the question may be faster than open_line(); it comes again */
        tell_progress(reader);
}

struct answer {
    struct line_reader *reader;
    uint32_t round;
};

static void tell_wait(void *context, int32_t set, const struct stall *stall)
{
    const struct answer *answer = context;
    struct line_packet packet = {.type = LINE_WAITS, .set = (uint32_t)set};
    if (stall != NULL)
        packet = stall_packet(LINE_WAITS, set, stall);
    packet.round = answer->round;
    line_reader_send(answer->reader, &packet);
}

/* The job is quiet, and the agent wants to know who waits for whom. */
static void asked_waits(void *context, uint32_t round)
{
    struct answer answer = {__atomic_load_n(&attached.reader, __ATOMIC_ACQUIRE), round};
    (void)context;
    if (answer.reader != NULL)
        loop_waits(tell_wait, &answer);
}

static void open_line(void)
{
    static const struct line_reader_ops ops = {
        .ended = rank_ended, .left = others_left, .asked = asked, .asked_waits = asked_waits};
    const char *address = getenv(LINE_VARIABLE), *text = getenv(EPOCH_VARIABLE);
    int64_t epoch = 0;
    if (address == NULL || hvd_size() < 2)
        return; /* another launcher, or nobody to wait for */
    if (text != NULL && parse_int(text, 0, EPOCH_MAX, &epoch, NULL) < 0)
        epoch = 0;
    struct line_reader *reader =
        line_reader_create(address, (uint32_t)epoch, &ops, NULL, NULL); /* or without a line */
    __atomic_store_n(&attached.reader, reader, __ATOMIC_RELEASE);
}

static bool stalled(void *context, int32_t set, const struct stall *stall)
{
    struct line_reader *reader = __atomic_load_n(&attached.reader, __ATOMIC_ACQUIRE);
    (void)context;
    if (reader == NULL)
        return false;
    const struct line_packet packet = stall_packet(LINE_STALLED, set, stall);
    tell_progress(reader);
    return line_reader_send(reader, &packet) == 1; /* the launcher prints it */
}

static void goes_on(void *context, int32_t set)
{
    struct line_reader *reader = __atomic_load_n(&attached.reader, __ATOMIC_ACQUIRE);
    const struct line_packet packet = {.type = LINE_GOES_ON, .set = (uint32_t)set};
    (void)context;
    if (reader != NULL)
        line_reader_send(reader, &packet);
}

/* The timeline */

static int start_timeline(const char *path, bool mark_cycles)
{
    struct error err = ERROR_INIT;
    if (hvd_rank() != 0)
        return HVD_OK;
    if (timeline_start(attached.timeline, path, mark_cycles, &err) == 0)
        return HVD_OK;
    return library_fail(HVD_ERR_ARGUMENT, "%s", err.text);
}

/* "DYNAMIC" waits for hvd_timeline_start(). A file that cannot be created does not end the job. */
static void start_timeline_from_environment(void)
{
    const char *path = getenv("HOROVOD_TIMELINE"), *cycles = getenv("HOROVOD_TIMELINE_MARK_CYCLES");
    bool mark_cycles = cycles != NULL && strtol(cycles, NULL, 10) > 0;
    if (path == NULL || path[0] == '\0' || strcmp(path, "DYNAMIC") == 0)
        return;
    if (start_timeline(path, mark_cycles) != HVD_OK)
        fprintf(stderr, "libhvd: warning: %s\n", hvd_error_text());
}

static int stop_timeline(void)
{
    struct error err = ERROR_INIT;
    if (attached.timeline == NULL || timeline_stop(attached.timeline, &err) == 0)
        return HVD_OK;
    return library_fail(HVD_ERR_ENGINE, "%s", err.text);
}

/* Start and end */

int hvd_init(const struct hvd_init_options *options)
{
    struct loop_joints joints = {.stalled = stalled, .goes_on = goes_on};
    if (library_is_child()) /* which is refused; the lock may be held by another thread */
        return library_start(options, &joints);
    pthread_mutex_lock(&attached.lock);
    bool was_up = hvd_is_initialized();
    if (attached.timeline == NULL)
        attached.timeline = timeline_create(0);
    joints.trace = timeline_trace(attached.timeline);
    enum hvd_status status = library_start(options, &joints);
    if (status == HVD_OK && !was_up) {
        start_timeline_from_environment();
        open_line();
    }
    pthread_mutex_unlock(&attached.lock);
    return status;
}

int hvd_shutdown(void)
{
    if (library_is_child())
        return library_stop();
    pthread_mutex_lock(&attached.lock);
    bool was_up = hvd_is_initialized();
    enum hvd_status status = library_stop(); /* from now on no thread of it uses the reader */
    if (was_up) {
        line_reader_destroy(attached.reader);
        attached.reader = NULL;
        if (stop_timeline() != HVD_OK)
            fprintf(stderr, "libhvd: warning: %s\n", hvd_error_text());
    }
    pthread_mutex_unlock(&attached.lock);
    return status;
}

/* The library cannot be started or stopped meanwhile. NULL: it is not initialized. */
static struct world *hold(void)
{
    if (library_is_child())
        return library_enter();
    pthread_mutex_lock(&attached.lock);
    struct world *world = library_enter();
    if (world == NULL)
        pthread_mutex_unlock(&attached.lock);
    return world;
}

static int release(int status)
{
    library_leave();
    pthread_mutex_unlock(&attached.lock);
    return status;
}

int hvd_timeline_start(const char *path, bool mark_cycles)
{
    if (path == NULL || path[0] == '\0')
        return library_fail(HVD_ERR_ARGUMENT, "the timeline needs the path of a file");
    return hold() == NULL ? HVD_ERR_NOT_INITIALIZED : release(start_timeline(path, mark_cycles));
}

int hvd_timeline_stop(void)
{
    return hold() == NULL ? HVD_ERR_NOT_INITIALIZED : release(stop_timeline());
}
