/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --stage in the driver. A thread lists the roots while hosts are called, and later reads chunks.
 * Each node that has come up waits (`delays`) until it has all roots, one after the other.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/plain.h"
#include "base/status.h"
#include "driver/end/teardown.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "features/stage/source.h"
#include "features/stage/stage.h"
#include "features/stage/store.h"
#include "features/stage/work_thread.h"
#include "io/send_queue.h"
#include "wire/control.pb-c.h"

const char stage_feature[] = "files on a disk of each host (--stage)";

#define LIST_FIELD 7 /* of Stage */
#define BYTES_FIELD 9
#define LOOK_MS 1000
#define SLOW_BYTES_MS 100 /* 100 KB/s */

struct staged_node {
    TAILQ_ENTRY(staged_node) others;
    struct node_link *node;
    struct fanout_host host;
    uint32_t root;    /* that it gets, or waits for */
    bool sent;        /* its list */
    int64_t heard_ms; /* the last sign of progress, on the job's clock; STAGED */
};

/* What the thread works on; between tasks it is the part's. */
struct staging_work {
    struct work_thread thread;
    struct staging *owner;
    struct stage_roots roots;
    size_t root;    /* of the chunk that is read; `count`: list all roots */
    uint64_t chunk; /* the first of these */
    struct shared_block *blocks[STAGE_WINDOW];
    size_t block_count;
    int result;
    struct error err;
};

struct staging {
    struct job *job;
    struct staging_work *work;
    struct fanout_cache cache;
    TAILQ_HEAD(, staged_node) nodes; /* that are delayed */
    size_t node_count;
    struct loop_timer *look;
    struct stage_keep keep;
    unsigned long beat; /* of the thread, when it was looked at */
    bool listed, ends;
    int64_t read_ms; /* on the job's clock: the last time that a chunk was read */
};

/* In the thread */

static void work_run(struct work_thread *thread)
{
    struct staging_work *work = (struct staging_work *)thread;
    error_init(&work->err);
    work->result = work->root == work->roots.count
                       ? stage_roots_list(&work->roots, &work->err)
                       : stage_roots_read(&work->roots, work->root, work->chunk, work->blocks,
                                          work->block_count, &work->err);
    plain_line(work->err.text, '?'); /* it may have a name of a file */
}

static void work_free(struct thread_share *share)
{
    struct staging_work *work = (struct staging_work *)share;
    fd_close(&work->thread.event);
    stage_roots_destroy(&work->roots);
    for (size_t i = 0; i < STAGE_WINDOW; i++)
        shared_block_release(work->blocks[i]);
    free(work);
}

/* Nodes */

static int64_t now_ms(const struct staging *own)
{
    return job_running_ms(own->job);
}

static struct staged_node *find(const struct staging *own, const struct node_link *node)
{
    struct staged_node *at;
    TAILQ_FOREACH (at, &own->nodes, others) {
        if (at->node == node)
            break;
    }
    return at;
}

static void forget(struct staging *own, struct staged_node *gone)
{
    TAILQ_REMOVE(&own->nodes, gone, others);
    own->node_count--;
    fanout_host_clear(&gone->host);
    free(gone);
}

/* An elastic job goes on without the host. `text_take` is plain. */
static void fail(struct staging *own, struct staged_node *node, char *text_take)
{
    char *why AUTO_FREE = text_take;
    struct node_link *link = node->node;
    struct job *job = own->job;
    if (job->kind->many_epochs) {
        node_link_give_up(link, why); /* node_closed() forgets it */
        return;
    }
    forget(own, node);
    char *text AUTO_FREE = mem_printf("%s: %s", link->host, why);
    teardown_told(job, link, STATUS_LAUNCHER, text);
}

static void send_list(struct staging *own, struct staged_node *node)
{
    const struct settings *settings = own->job->settings;
    struct stage_root *root = &own->work->roots.items[node->root];
    char *names[] = {root->named, root->source.path};
    Hvdrun__Stage message = HVDRUN__STAGE__INIT;
    message.root = node->root;
    message.names = names;
    message.n_names = strcmp(names[0], names[1]) == 0 ? 1 : 2;
    message.dest = root->dest;
    message.folder = settings->stage_dir == NULL ? (char *)"" : settings->stage_dir;
    message.keep_bytes = own->keep.bytes;
    message.keep_ms = (uint64_t)own->keep.age_ms;
    node->sent = true;
    node->heard_ms = now_ms(own);
    node_link_send_shared(node->node, FRAME_STAGE, own->job->epoch, &message.base, LIST_FIELD,
                          root->list);
}

static void send_chunk(struct staging *own, struct staged_node *node, uint64_t chunk,
                       struct shared_block *block)
{
    Hvdrun__Stage message = HVDRUN__STAGE__INIT;
    message.root = node->root;
    message.chunk = chunk;
    if (node->host.sent == node->host.taken)
        node->heard_ms = now_ms(own); /* it had nothing to say while it waited for us */
    fanout_host_sent(&node->host);
    node_link_send_shared(node->node, FRAME_STAGE, own->job->epoch, &message.base, BYTES_FIELD,
                          block);
}

/* Sends what was read, and reads what the first host waits for that can take it. The next time
 * another one is the first. */
static void pump(struct staging *own)
{
    size_t window = fanout_window(own->node_count);
    struct staged_node *node, *first = NULL;
    uint64_t chunk, wanted = 0;
    TAILQ_FOREACH (node, &own->nodes, others) {
        while (fanout_host_next(&node->host, window, &chunk)) {
            struct shared_block *block = fanout_cache_get(&own->cache, node->root, chunk);
            if (block == NULL)
                break;
            send_chunk(own, node, chunk, block);
        }
        if (first == NULL && fanout_host_next(&node->host, window, &chunk)) {
            first = node;
            wanted = chunk;
        }
    }
    if (first == NULL || own->ends || own->work->thread.busy)
        return;
    own->read_ms = now_ms(own);
    own->work->root = first->root;
    own->work->chunk = wanted;
    own->work->block_count = fanout_host_run(&first->host, window, &own->cache);
    work_thread_do(&own->work->thread);
}

static void chunks_were_read(struct staging *own)
{
    struct staging_work *work = own->work;
    struct staged_node *node;
    uint64_t chunk;
    for (size_t i = 0; i < work->block_count; i++) {
        shared_block_release(
            fanout_cache_put(&own->cache, (uint32_t)work->root, work->chunk + i, work->blocks[i]));
        work->blocks[i] = NULL;
    }
    own->read_ms = now_ms(own);
    TAILQ_FOREACH (node, &own->nodes, others) {
        if (node->root == work->root && fanout_host_next(&node->host, SIZE_MAX, &chunk) &&
            chunk == work->chunk)
            break;
    }
    pump(own);
    if (node == NULL)
        return;
    TAILQ_REMOVE(&own->nodes, node, others); /* it had its turn */
    TAILQ_INSERT_TAIL(&own->nodes, node, others);
}

static void send_lists(struct staging *own)
{
    struct staged_node *node;
    TAILQ_FOREACH (node, &own->nodes, others) {
        if (!node->sent)
            send_list(own, node);
    }
}

/* Only root can write to copies. */
static void warn_root(const struct staging *own)
{
    const struct staging_work *work = own->work;
    for (size_t i = 0; geteuid() == 0 && i < work->roots.count; i++) {
        if (stage_path_below(work->roots.wdir, work->roots.items[i].named) != NULL)
            log_warning(&own->job->log,
                        "the working folder is in a copy (--stage) that jobs share, and root can "
                        "write there: write results to another place");
    }
}

static void work_done(struct work_thread *thread)
{
    struct staging_work *work = (struct staging_work *)thread;
    struct staging *own = work->owner;
    bool listed = work->root == work->roots.count;
    if (own->ends)
        return;
    if (work->result < 0) {
        own->ends = true;
        teardown_launcher(own->job,
                          work->err.status == STATUS_USAGE ? STATUS_USAGE : STATUS_LAUNCHER,
                          work->err.text);
    } else if (listed) {
        own->listed = true;
        warn_root(own);
        send_lists(own);
    } else {
        chunks_were_read(own);
    }
}

/* Limits */

/* A long list takes its time on a slow network, and is one frame. */
static bool is_silent(const struct staging *own, const struct staged_node *node)
{
    int64_t limit_ms = STAGE_SILENCE_MS;
    if (!node->sent)
        return false;
    if (!node->host.wants)
        limit_ms += (int64_t)own->work->roots.items[node->root].list->length / SLOW_BYTES_MS;
    const struct fanout_host *host = &node->host;
    if (host->wants && host->sent == host->taken && host->sent < host->total)
        return false; /* it waits for us */
    return now_ms(own) - node->heard_ms >= limit_ms;
}

/* One node at a time: after a failure the list is another one. */
static void look(void *context)
{
    struct staging *own = context;
    struct staged_node *node;
    if (own->ends || TAILQ_EMPTY(&own->nodes))
        return;
    loop_timer_set(own->look, LOOK_MS);
    if (atomic_load(&own->work->roots.watch.beat) != own->beat)
        own->read_ms = now_ms(own);
    own->beat = atomic_load(&own->work->roots.watch.beat);
    bool stuck = own->work->thread.busy && now_ms(own) - own->read_ms >= STAGE_SILENCE_MS;
    TAILQ_FOREACH (node, &own->nodes, others) {
        if (is_silent(own, node))
            break;
    }
    if (stuck)
        teardown_launcher(own->job, STATUS_LAUNCHER,
                          "--stage cannot go on: the folder does not answer from which it reads");
    else if (node != NULL)
        fail(own, node,
             mem_printf("made no progress with the files of --stage for %d s",
                        STAGE_SILENCE_MS / 1000));
}

static bool delays(struct job *job, struct node_link *node)
{
    struct staging *own = job_part(job, staging);
    if (own == NULL || own->ends)
        return false;
    if (node == NULL)
        return !TAILQ_EMPTY(&own->nodes);
    struct staged_node *added = MEM_NEW((struct staged_node){.node = node});
    TAILQ_INSERT_HEAD(&own->nodes, added, others);
    own->node_count++;
    if (own->listed)
        send_list(own, added);
    if (!loop_timer_is_set(own->look))
        loop_timer_set(own->look, LOOK_MS);
    return true;
}

/* Answers */

static void has_root(struct staging *own, struct staged_node *node, uint64_t had)
{
    struct job *job = own->job;
    struct node_link *link = node->node;
    log_info(&job->log, "%s: has %s (%llu of %llu bytes were there)", link->host,
             own->work->roots.items[node->root].named, (unsigned long long)had,
             (unsigned long long)own->work->roots.items[node->root].source.list.stream);
    fanout_host_clear(&node->host);
    if (++node->root < own->work->roots.count) {
        send_list(own, node);
        return;
    }
    forget(own, node);
    kind_came(job, link);
}

static int take_staged(struct job *job, struct node_link *link, const struct agent_frame *frame)
{
    const Hvdrun__Staged *message = frame->message;
    struct staging *own = job_part(job, staging);
    struct staged_node *node = own == NULL ? NULL : find(own, link);
    if (own == NULL || (node == NULL && link->state < NODE_UP))
        return -1;
    if (node == NULL || own->ends)
        return 0; /* it was told to end meanwhile */
    if (!node->sent || message->root != node->root)
        return -1;
    node->heard_ms = now_ms(own);
    if (message->problem[0] != '\0') {
        char *text = mem_strdup(message->problem);
        plain_line(text, '?');
        fail(own, node, text);
        return 0;
    }
    const struct stage_list *list = &own->work->roots.items[node->root].source.list;
    if (message->told &&
        (node->host.wants || !fanout_host_begin(&node->host, node->root, message->lacks,
                                                message->n_lacks, stage_list_chunks(list))))
        return -1;
    if (!fanout_host_taken(&node->host, message->taken))
        return -1;
    if (message->over) {
        if (!node->host.wants || node->host.taken != node->host.total)
            return -1;
        has_root(own, node, message->had);
    }
    pump(own);
    return 0;
}

static void node_closed(struct job *job, struct node_link *link)
{
    struct staging *own = job_part(job, staging);
    struct staged_node *node = own == NULL ? NULL : find(own, link);
    if (node != NULL)
        forget(own, node);
    if (own != NULL && own->listed)
        pump(own);
}

static void ending(struct job *job)
{
    struct staging *own = job_part(job, staging);
    if (own == NULL)
        return;
    own->ends = true;
    atomic_store(&own->work->roots.watch.stop, true);
    loop_timer_clear(own->look);
}

/* The part */

static void close_part(struct job *job)
{
    struct staging *own = job_part(job, staging);
    while (!TAILQ_EMPTY(&own->nodes))
        forget(own, TAILQ_FIRST(&own->nodes));
    for (size_t i = 0; i < FANOUT_SLOTS; i++)
        shared_block_release(own->cache.slots[i].block);
    loop_timer_destroy(own->look);
    atomic_store(&own->work->roots.watch.stop, true);
    (void)work_thread_close(&own->work->thread, 0);
    for (size_t i = 0; own->listed && i < own->work->roots.count; i++) {
        struct stage_root *root = &own->work->roots.items[i];
        shared_block_release(root->list); /* not in the thread: links may hold it, too */
        root->list = NULL;
    }
    work_thread_leave(&own->work->thread);
    free(own);
}

static int open_part(struct job *job, struct error *err)
{
    const struct settings *settings = job->settings;
    const char *keep = settings->stage_keep == NULL ? STAGE_KEEP_USUAL : settings->stage_keep;
    if (settings->stage.count == 0 || !job->kind->has_workers)
        return 0;
    struct staging *own = mem_alloc(sizeof(*own));
    struct staging_work *work = mem_alloc(sizeof(*work));
    *own = (struct staging){.job = job, .work = work};
    TAILQ_INIT(&own->nodes);
    work->thread = (struct work_thread){
        .run = work_run, .done = work_done, .free_all = work_free, .event = -1};
    work->owner = own;
    work->roots.items = mem_array(settings->stage.count, sizeof(*work->roots.items));
    own->look = loop_timer_create(job->loop, look, own);
    job->own[PART_staging] = own;
    if (stage_keep_parse(keep, &own->keep, err) < 0)
        return -1;
    const char *here = job->request->wdir;
    work->roots.wdir = stage_path_clean(here, settings->wdir == NULL ? "" : settings->wdir);
    for (size_t i = 0; i < settings->stage.count; i++) {
        if (stage_roots_add(&work->roots, settings->stage.items[i], here, err) < 0)
            return -1;
    }
    if (work_thread_open(&work->thread, job->loop, "stage-read", err) < 0)
        return -1;
    work->root = work->roots.count; /* list them */
    own->read_ms = now_ms(own);
    work_thread_do(&work->thread);
    return 0;
}

static const struct part_frame frames[] = {
    {FRAME_STAGED, {take_staged, &hvdrun__staged__descriptor, EPOCHS_ALL, NODE_UP, false}}, {0}};

const struct driver_part staging_part = {.name = "staging",
                                         .open = open_part,
                                         .close = close_part,
                                         .frames = frames,
                                         .delays = delays,
                                         .node_closed = node_closed,
                                         .ending = ending};
