/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/thread.h"
#include "timeline/text.h"

#define QUEUE_BYTES ((size_t)8 << 20)
#define WRITE_NOW ((size_t)256 << 10)     /* bytes of events that are written without a delay */
#define DELAY_NS (20 * 1000 * 1000)       /* for others, so that one write has many of them */
#define TEXT_MAX ((size_t)1 << 20)        /* one write */
#define EVENT_TEXT_MAX ((size_t)64 << 10) /* more than any event needs */

/* ---- The file, which is a whole JSON array after each write ---------------------------------- */

struct timeline_file {
    int fd;    /* -1: closed */
    off_t end; /* where the next object goes: the end of the array overwrites it */
};

static const char opening[] = "[\n", closing[] = "\n]\n";

static int write_at(int fd, const char *bytes, size_t length, off_t at)
{
    while (length > 0) {
        ssize_t wrote = pwrite(fd, bytes, length, at);
        if (wrote < 0 && errno != EINTR)
            return -1;
        if (wrote <= 0)
            continue;
        bytes += wrote;
        length -= (size_t)wrote;
        at += wrote;
    }
    return 0;
}

/* Creates the file, or replaces an old one. */
static int file_open(struct timeline_file *file, const char *path, struct error *err)
{
    file->fd = fd_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file->fd < 0)
        return error_errno(err, errno, "cannot create the timeline %s", path);
    file->end = (off_t)strlen(opening);
    if (write_at(file->fd, "[\n\n]\n", 5, 0) < 0) {
        error_errno(err, errno, "cannot write the timeline %s", path);
        fd_close(&file->fd);
        return -1;
    }
    return 0;
}

/* Appends the text of objects in front of the end of the array. On failure the file is the array
 * that it was before, as far as the disk allows. */
static int file_append(struct timeline_file *file, const struct buf *objects, struct error *err)
{
    AUTO_BUF struct buf whole = BUF_INIT(objects->length + sizeof(closing));
    buf_append(&whole, buf_text(objects), objects->length);
    buf_puts(&whole, closing);
    /* one call, so that the file is almost never without the end of the array */
    if (write_at(file->fd, buf_text(&whole), whole.length, file->end) == 0) {
        file->end += (off_t)objects->length;
        return 0;
    }
    int errnum = errno;
    bool mended = write_at(file->fd, closing, strlen(closing), file->end) == 0 &&
                  ftruncate(file->fd, file->end + (off_t)strlen(closing)) == 0;
    return error_errno(err, errnum, "cannot write to the timeline%s",
                       mended ? "" : ", whose end is missing now");
}

/* ---- The queue ------------------------------------------------------------------------------- */

/*
 * Events on their way to the writer of a timeline, as bytes in a buffer. The timeline locks it.
 * What does not fit is counted, and not kept.
 */

#define DIMS_MAX 32

/* In front of each event. The texts follow, each with its NUL, and then the shape. A length of 0
 * means NULL. */
struct entry {
    enum trace_kind kind;
    int32_t set, rank, dims;
    int64_t time_ns;
    uint32_t tensor, what, type; /* bytes with the NUL */
};

static uint32_t length_of(const char *text)
{
    return text == NULL ? 0 : (uint32_t)strlen(text) + 1;
}

static char *put_text(char *at, const char *text, uint32_t length)
{
    if (length > 0)
        memcpy(at, text, length);
    return at + length;
}

/* 0; -1: there is no room. `queue` has a limit. */
static int queue_put(struct buf *queue, const struct trace_event *event)
{
    int32_t dims = event->shape == NULL ? 0 : event->dims;
    dims = dims < 0 ? 0 : dims > DIMS_MAX ? DIMS_MAX : dims;
    struct entry entry = {.kind = event->kind,
                          .set = event->set,
                          .rank = event->rank,
                          .dims = dims,
                          .time_ns = event->time_ns,
                          .tensor = length_of(event->tensor),
                          .what = length_of(event->what),
                          .type = length_of(event->type)};
    size_t shape = (size_t)dims * sizeof(int64_t);
    size_t length = sizeof(entry) + entry.tensor + entry.what + entry.type + shape;
    char *at = buf_reserve(queue, length);
    if (at == NULL)
        return -1;
    memcpy(at, &entry, sizeof(entry));
    at = put_text(at + sizeof(entry), event->tensor, entry.tensor);
    at = put_text(at, event->what, entry.what);
    at = put_text(at, event->type, entry.type);
    if (shape > 0)
        memcpy(at, event->shape, shape);
    buf_commit(queue, length);
    return 0;
}

static const char *take_text(const char **at, uint32_t length)
{
    const char *text = length > 0 ? *at : NULL;
    *at += length;
    return text;
}

/* Takes the first event from the queue; false: there is none. What it points to is valid until the
 * queue changes; `shape` points to room for 32 lengths. */
static bool queue_take(struct buf *queue, struct trace_event *event, int64_t shape[32])
{
    struct entry entry;
    if (queue->length < sizeof(entry))
        return false;
    const char *at = buf_text(queue);
    memcpy(&entry, at, sizeof(entry));
    at += sizeof(entry);
    *event = (struct trace_event){.kind = entry.kind,
                                  .set = entry.set,
                                  .rank = entry.rank,
                                  .dims = entry.dims,
                                  .time_ns = entry.time_ns,
                                  .shape = shape};
    event->tensor = take_text(&at, entry.tensor);
    event->what = take_text(&at, entry.what);
    event->type = take_text(&at, entry.type);
    size_t bytes = (size_t)entry.dims * sizeof(int64_t);
    memcpy(shape, at, bytes);
    buf_consume(queue, sizeof(entry) + entry.tensor + entry.what + entry.type + bytes);
    return true;
}

/* ---- The timeline ---------------------------------------------------------------------------- */

/* Locks: `control` is for start and stop, which hold it for their whole length. `lock` is for the
 * queue and the flags beside it; nobody who holds it waits or calls the system, but for the signal
 * to the writer. `control` comes first. */
struct timeline {
    struct trace trace;
    int64_t origin_ns, origin_wall_us;
    size_t queue_bytes;

    pthread_mutex_t control;
    char *path; /* NULL: stopped */
    pthread_t writer;
    struct error failure; /* of the writer, which alone uses it until it has ended */
    bool failed;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct buf queue;
    uint64_t dropped; /* since the last mark */
    bool ending;

    atomic_bool runs, marks_cycles;
};

/* The writer's own. */
struct writing {
    struct timeline *timeline;
    struct timeline_file file;
    struct timeline_text *text;
    struct buf batch, out;
    uint64_t missing; /* events before the batch */
    uint64_t lost;    /* in all */
};

/* ---- Events ---------------------------------------------------------------------------------- */

static void take_event(void *context, const struct trace_event *event)
{
    struct timeline *timeline = context;
    if (!atomic_load_explicit(&timeline->runs, memory_order_acquire))
        return;
    if (event->kind == TRACE_CYCLE &&
        !atomic_load_explicit(&timeline->marks_cycles, memory_order_relaxed))
        return;
    pthread_mutex_lock(&timeline->lock);
    size_t before = timeline->queue.length;
    if (timeline->dropped > 0 || queue_put(&timeline->queue, event) < 0)
        timeline->dropped++; /* until the writer has marked the gap */
    size_t after = timeline->queue.length;
    if (before == 0 || (before < WRITE_NOW && after >= WRITE_NOW))
        pthread_cond_signal(&timeline->wake);
    pthread_mutex_unlock(&timeline->lock);
}

/* ---- The writer ------------------------------------------------------------------------------ */

static struct timespec after_delay(void)
{
    int64_t end = clock_mono_ns() + DELAY_NS;
    return (struct timespec){.tv_sec = end / 1000000000, .tv_nsec = end % 1000000000};
}

/* Waits for events, and takes all. false: there are none, and the end has come. */
static bool take_batch(struct writing *writing)
{
    struct timeline *timeline = writing->timeline;
    pthread_mutex_lock(&timeline->lock);
    while (timeline->queue.length == 0 && !timeline->ending)
        pthread_cond_wait(&timeline->wake, &timeline->lock);
    struct timespec end = after_delay();
    int waited = 0;
    while (timeline->queue.length < WRITE_NOW && !timeline->ending && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&timeline->wake, &timeline->lock, &end);
    struct buf full = timeline->queue;
    timeline->queue = writing->batch;
    writing->batch = full;
    writing->missing = timeline->dropped; /* they came after the batch */
    timeline->dropped = 0;
    pthread_mutex_unlock(&timeline->lock);
    return writing->batch.length > 0 || writing->missing > 0;
}

static void write_out(struct writing *writing)
{
    struct timeline *timeline = writing->timeline;
    if (!timeline->failed && writing->out.length > 0)
        timeline->failed = file_append(&writing->file, &writing->out, &timeline->failure) < 0;
    buf_clear(&writing->out);
}

static void write_batch(struct writing *writing)
{
    struct trace_event event = {0};
    int64_t shape[32], last_ns = 0;
    while (queue_take(&writing->batch, &event, shape)) {
        timeline_text_event(writing->text, &event, &writing->out);
        last_ns = event.time_ns;
        if (writing->out.length > TEXT_MAX - EVENT_TEXT_MAX)
            write_out(writing);
    }
    if (writing->missing > 0)
        timeline_text_gap(writing->text, writing->missing, last_ns, &writing->out);
    writing->lost += writing->missing;
    write_out(writing);
}

static void *run_writer(void *context)
{
    struct writing *writing = context;
    struct timeline *timeline = writing->timeline;
    timeline_text_head(writing->text, timeline->origin_wall_us, &writing->out);
    write_out(writing);
    while (take_batch(writing))
        write_batch(writing);
    if (writing->lost > 0 && !timeline->failed) {
        error_set(&timeline->failure,
                  "the timeline lacks %llu events, because the file was too slow for them",
                  (unsigned long long)writing->lost);
        timeline->failed = true;
    }
    fd_close(&writing->file.fd);
    timeline_text_destroy(writing->text);
    buf_destroy(&writing->batch);
    buf_destroy(&writing->out);
    free(writing);
    return NULL;
}

/* ---- Start and stop -------------------------------------------------------------------------- */

struct timeline *timeline_create(size_t queue_bytes)
{
    struct timeline *timeline = mem_alloc(sizeof(*timeline));
    pthread_condattr_t clock;
    timeline->trace = (struct trace){.event = NULL, .context = timeline};
    timeline->origin_ns = clock_mono_ns();
    timeline->origin_wall_us = clock_wall_ns() / 1000;
    timeline->queue_bytes = queue_bytes > 0 ? queue_bytes : QUEUE_BYTES;
    pthread_mutex_init(&timeline->control, NULL);
    pthread_mutex_init(&timeline->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&timeline->wake, &clock);
    pthread_condattr_destroy(&clock);
    return timeline;
}

const struct trace *timeline_trace(struct timeline *timeline)
{
    return &timeline->trace;
}

static int open_file(struct timeline *timeline, const char *path, bool mark_cycles,
                     struct error *err)
{
    struct writing *writing = MEM_NEW((struct writing){.timeline = timeline});
    if (file_open(&writing->file, path, err) < 0) {
        free(writing);
        return -1;
    }
    writing->text = timeline_text_create(timeline->origin_ns);
    buf_init(&writing->batch, timeline->queue_bytes);
    buf_init(&writing->out, TEXT_MAX);
    timeline->failure = (struct error)ERROR_INIT;
    timeline->failed = false;
    pthread_mutex_lock(&timeline->lock);
    buf_init(&timeline->queue, timeline->queue_bytes);
    timeline->ending = false;
    timeline->dropped = 0;
    pthread_mutex_unlock(&timeline->lock);
    int errnum = thread_start(&timeline->writer, "hvd-timeline", run_writer, writing);
    if (errnum != 0) {
        fd_close(&writing->file.fd);
        timeline_text_destroy(writing->text);
        free(writing);
        return error_errno(err, errnum, "cannot start a thread for the timeline");
    }
    timeline->path = mem_strdup(path);
    atomic_store(&timeline->marks_cycles, mark_cycles);
    atomic_store_explicit(&timeline->runs, true, memory_order_release);
    __atomic_store_n(&timeline->trace.event, take_event, __ATOMIC_RELEASE);
    return 0;
}

static int close_file(struct timeline *timeline, struct error *err)
{
    if (timeline->path == NULL)
        return 0;
    __atomic_store_n(&timeline->trace.event, NULL, __ATOMIC_RELEASE);
    atomic_store(&timeline->runs, false);
    pthread_mutex_lock(&timeline->lock);
    timeline->ending = true;
    pthread_cond_signal(&timeline->wake);
    pthread_mutex_unlock(&timeline->lock);
    pthread_join(timeline->writer, NULL);
    pthread_mutex_lock(&timeline->lock); /* an event may have come after the writer's last look */
    buf_destroy(&timeline->queue);
    pthread_mutex_unlock(&timeline->lock);
    free(timeline->path);
    timeline->path = NULL;
    return timeline->failed ? error_set(err, "%s", timeline->failure.text) : 0;
}

int timeline_start(struct timeline *timeline, const char *path, bool mark_cycles, struct error *err)
{
    int result = 0;
    pthread_mutex_lock(&timeline->control);
    if (timeline->path == NULL || strcmp(timeline->path, path) != 0) {
        close_file(timeline, NULL); /* the old file has a mark for what it lacks */
        result = open_file(timeline, path, mark_cycles, err);
    }
    pthread_mutex_unlock(&timeline->control);
    return result;
}

int timeline_stop(struct timeline *timeline, struct error *err)
{
    pthread_mutex_lock(&timeline->control);
    int result = close_file(timeline, err);
    pthread_mutex_unlock(&timeline->control);
    return result;
}

void timeline_destroy(struct timeline *timeline)
{
    if (timeline == NULL)
        return;
    timeline_stop(timeline, NULL);
    pthread_cond_destroy(&timeline->wake);
    pthread_mutex_destroy(&timeline->lock);
    pthread_mutex_destroy(&timeline->control);
    free(timeline);
}
