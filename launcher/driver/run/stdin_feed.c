/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "driver/end/teardown.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "output/terminal.h"

#define CHUNK (64u << 10)
#define BACKGROUND_RETRY_MS 500

struct stdin_target {
    int seat;
    uint64_t granted;
    bool closed;
};

struct stdin_feed {
    struct job *job;
    struct stdin_target *targets;
    size_t count;
    uint64_t sent; /* to every target alike */
    struct loop_fd *watch;
    struct loop_timer *retry;
    bool plain;   /* a file or device that poll(2) cannot watch: always readable */
    bool pumping; /* a plain source's next read is already deferred */
    bool stopped;
};

/* How much every target may still get; 0 while one of them has no room. */
static uint64_t room(const struct stdin_feed *feed)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < feed->count; i++) {
        if (!feed->targets[i].closed && feed->targets[i].granted < least)
            least = feed->targets[i].granted;
    }
    return least == UINT64_MAX || least < feed->sent ? 0 : least - feed->sent;
}

void stdin_feed_stop(struct stdin_feed *feed)
{
    if (feed == NULL || feed->stopped)
        return;
    feed->stopped = true;
    if (!feed->plain)
        loop_fd_watch(feed->watch, 0);
    loop_timer_clear(feed->retry);
}

static void send_chunk(struct stdin_feed *feed, const uint8_t *bytes, size_t length)
{
    const struct job *job = feed->job;
    for (size_t i = 0; i < feed->count; i++) {
        struct stdin_target *target = &feed->targets[i];
        struct node_link *node = job->nodes[job->ranks.records[target->seat].node];
        if (target->closed || !node_link_alive(node))
            continue;
        struct frame_data data = {.seat = (uint32_t)target->seat,
                                  .stream = 0,
                                  .offset = feed->sent,
                                  .when_ns = (uint64_t)clock_mono_ns()};
        uint8_t frame[FRAME_DATA_PREFIX + CHUNK];
        frame_data_put(&data, frame);
        if (length > 0)
            memcpy(frame + FRAME_DATA_PREFIX, bytes, length);
        link_send(node->link, FRAME_STDIN, job->epoch, frame, FRAME_DATA_PREFIX + length);
    }
    feed->sent += length;
}

static void pump(struct stdin_feed *feed);

static void pump_plain(void *context)
{
    struct stdin_feed *feed = context;
    feed->pumping = false;
    pump(feed);
}

/* Watches the descriptor while there is room for input. */
static void arm(struct stdin_feed *feed)
{
    bool wanted = !feed->stopped && room(feed) > 0;
    if (!feed->plain) {
        if (loop_fd_watch(feed->watch, wanted ? LOOP_READ : 0) == 0)
            return;
        feed->plain = true; /* epoll refuses regular files with EPERM */
    }
    if (wanted && !feed->pumping) {
        feed->pumping = true;
        loop_timer_set(feed->retry, 0);
    }
}

static mode_t kind_of_stdin(void)
{
    struct stat stat;
    return fstat(STDIN_FILENO, &stat) == 0 ? stat.st_mode & S_IFMT : 0;
}

static void retry_later(struct stdin_feed *feed, int64_t after_ms)
{
    if (!feed->plain)
        loop_fd_watch(feed->watch, 0);
    feed->pumping = true;
    loop_timer_set(feed->retry, after_ms);
}

/* Workers that mistake partial input for all of it exit with 0 and wrong results. But a
 * descriptor that is not open for reading (as with nohup) means that there is no input. */
static void read_failed(struct stdin_feed *feed, int errnum)
{
    if (errnum == EBADF)
        send_chunk(feed, NULL, 0);
    stdin_feed_stop(feed);
    if (errnum == EBADF)
        return;
    AUTO_FREE char *text = mem_printf("cannot read the standard input: %s; the workers would "
                                      "mistake the part that was read for all of it",
                                      strerrordesc_np(errnum));
    teardown_launcher(feed->job, STATUS_LAUNCHER, text);
}

static void pump(struct stdin_feed *feed)
{
    uint8_t chunk[CHUNK];
    uint64_t allowed = room(feed);
    if (feed->stopped || allowed == 0) {
        arm(feed);
        return;
    }
    if (!terminal_may_read()) {
        retry_later(feed, BACKGROUND_RETRY_MS);
        return;
    }
    ssize_t got = fd_read(STDIN_FILENO, chunk, allowed < CHUNK ? (size_t)allowed : CHUNK);
    int errnum = errno;
    if (got < 0 && errnum == EAGAIN) { /* another process made the shared descriptor non-blocking */
        retry_later(feed, 10);
        return;
    }
    if (got < 0 && errnum == EIO &&
        kind_of_stdin() == S_IFCHR) { /* we have just lost the terminal */
        retry_later(feed, BACKGROUND_RETRY_MS);
        return;
    }
    if (got < 0) {
        read_failed(feed, errnum);
        return;
    }
    send_chunk(feed, chunk, (size_t)got);
    if (got == 0)
        stdin_feed_stop(feed);
    arm(feed);
}

static void readable(void *context, int what)
{
    (void)what;
    pump(context);
}

/* Before anything starts: can the standard input be read? */
static int open_part(struct job *job, struct error *err)
{
    if (!job->kind->has_workers || job_stdin_rank(job) == SET_RANK_NONE ||
        kind_of_stdin() != S_IFDIR)
        return 0;
    return error_set(err, "the standard input is a folder; give a file, or --stdin none");
}

static void close_part(struct job *job)
{
    struct stdin_feed *feed = job_part(job, stdin_feed);
    loop_fd_destroy(feed->watch);
    loop_timer_destroy(feed->retry);
    free(feed->targets);
    free(feed);
    job->own[PART_stdin_feed] = NULL;
}

void stdin_feed_begin(struct job *job)
{
    if (job_part(job, stdin_feed) != NULL)
        close_part(job);
    struct stdin_feed *feed = mem_alloc(sizeof(*feed));
    feed->job = job;
    int64_t wanted = job_stdin_rank(job);
    for (int rank = 0; rank < job->plan->size; rank++) {
        if (wanted == SET_RANK_ALL || wanted == rank)
            MEM_ADD(feed->targets, feed->count) = (struct stdin_target){.seat = rank};
    }
    feed->watch = loop_fd_create(job->loop, STDIN_FILENO, readable, feed);
    feed->retry = loop_timer_create(job->loop, pump_plain, feed);
    job->own[PART_stdin_feed] = feed;
}

/* STDIN_CREDIT: a worker has room for more. */
static int take_credit(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct stdin_feed *feed = job_part(job, stdin_feed);
    const Hvdrun__Credit *message = frame->message;
    if (feed == NULL || !job_seat_is_on(job, node, message->seat))
        return -1;
    for (size_t i = 0; i < feed->count; i++) {
        struct stdin_target *target = &feed->targets[i];
        if (target->seat != (int)message->seat)
            continue;
        target->closed = message->closed;
        if (message->bytes > target->granted)
            target->granted = message->bytes;
    }
    arm(feed);
    return 0;
}

static void ending(struct job *job)
{
    stdin_feed_stop(job_part(job, stdin_feed));
}

static const struct part_frame frames[] = {
    {FRAME_STDIN_CREDIT,
     {take_credit, &hvdrun__credit__descriptor, EPOCHS_OF_WORKERS, NODE_RUNNING, false}},
    {0}};
const struct driver_part stdin_feed_part = {.name = "stdin_feed",
                                            .open = open_part,
                                            .close = close_part,
                                            .frames = frames,
                                            .ending = ending};
