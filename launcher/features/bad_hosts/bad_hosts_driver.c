/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers the bad hosts of a job in the file of --bad-hosts, and leaves hosts of that file out of
 * those that a job discovers. Others find out that a host is bad (struct driver_part, host_bad):
 * the elastic core when it blacklists a lost host, an agent that cannot kill a process, a check of
 * GPUs.
 *
 * A host is written a moment after the news: if most hosts of the job have such trouble at about
 * that time, the network, a file system or this machine is the cause, and not they.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "driver/job/part.h"
#include "features/bad_hosts/bad_hosts_driver_test.h"

/* ---- The file -------------------------------------------------------------------------------- */

#define TURNS_MAX 100 /* of other jobs that put a new file in its place before us */

/* The file may have been replaced while we waited for the lock. */
static int open_locked(const char *path, struct error *err)
{
    for (int turn = 0; turn < TURNS_MAX; turn++) {
        struct stat ours, named;
        int fd = fd_open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
        if (fd < 0)
            return error_errno(err, errno, "cannot open %s", path);
        int locked = (int)TEMP_FAILURE_RETRY(flock(fd, LOCK_EX));
        if (locked < 0)
            error_errno(err, errno, "cannot lock %s", path);
        else if (fstat(fd, &ours) == 0 && stat(path, &named) == 0 && ours.st_ino == named.st_ino &&
                 ours.st_dev == named.st_dev)
            return fd;
        fd_close(&fd);
        if (locked < 0)
            return -1;
    }
    return error_set(err, "cannot lock %s: other jobs replace it again and again", path);
}

/* The name is new each time: what a job left that was killed here may belong to another user. */
static int put_in_place(const char *path, const struct stat *before, const struct buf *text,
                        struct error *err)
{
    char *part AUTO_FREE =
        mem_printf("%s.new-%d-%lld", path, (int)getpid(), (long long)clock_wall_ns());
    int fd AUTO_FD = fd_open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_errno(err, errno, "cannot create %s", part);
    (void)!fchown(fd, (uid_t)-1, before->st_gid); /* only members of the group may */
    if (fd_write_all(fd, buf_text(text), text->length) == 0 &&
        fchmod(fd, before->st_mode & 0777) == 0 && fsync(fd) == 0 && rename(part, path) == 0)
        return 0;
    error_errno(err, errno, "cannot write %s", path);
    unlink(part);
    return -1;
}

int bad_hosts_write_now(const char *path, const struct bad_host_list *news, int64_t now_s,
                        struct error *err)
{
    struct buf before AUTO_BUF = BUF_INIT(BAD_HOSTS_FILE_MAX);
    struct buf after AUTO_BUF = BUF_INIT(BAD_HOSTS_FILE_MAX);
    struct stat info;
    int fd AUTO_FD = open_locked(path, err);
    if (fd < 0)
        return -1;
    char *name AUTO_FREE = realpath(path, NULL); /* a link stays, and leads to the new file */
    if (name == NULL || fstat(fd, &info) < 0)
        return error_errno(err, errno, "cannot read %s", path);
    if (!S_ISREG(info.st_mode))
        return error_set(err, "%s is not a file", path);
    if (fd_read_file(name, &before, err) < 0)
        return -1;
    if (bad_hosts_update(buf_text(&before), before.length, news, now_s, &after) < 0)
        return error_set(err, "%s is larger than %zu bytes", path, BAD_HOSTS_FILE_MAX);
    return put_in_place(name, &info, &after, err);
}

static void free_write(struct thread_share *all)
{
    struct bad_hosts_write *write = (struct bad_hosts_write *)all;
    bad_hosts_destroy(&write->news);
    free(write->path);
    free(write);
}

static void run(struct thread_share *share)
{
    struct bad_hosts_write *write = (struct bad_hosts_write *)share;
    write->result = bad_hosts_write_now(write->path, &write->news, write->now_s, &write->err);
}

struct bad_hosts_write *bad_hosts_write_begin(const char *path, struct bad_host_list *news,
                                              int64_t now_s)
{
    struct bad_hosts_write *write =
        MEM_NEW((struct bad_hosts_write){.path = mem_strdup(path), .news = *news, .now_s = now_s});
    *news = (struct bad_host_list){.count = 0};
    error_init(&write->err);
    int code = thread_share_start(&write->share, "bad-hosts", run, free_write);
    if (code != 0)
        write->result =
            error_errno(&write->err, code, "cannot start a thread that writes %s", path);
    return write;
}

bool bad_hosts_write_wait(struct bad_hosts_write *write, int64_t limit_ms)
{
    return thread_share_is_over(&write->share, clock_mono_ms() + limit_ms);
}

void bad_hosts_write_destroy(struct bad_hosts_write *write)
{
    if (write != NULL)
        thread_share_leave(&write->share);
}

/* ---- The part of the job --------------------------------------------------------------------- */

const char bad_hosts_feature[] = "a file of bad hosts, which jobs leave out (--bad-hosts)";

#define SETTLE_MS 5000
#define RECENT_MS 600000 /* trouble in that time has one cause */
#define LOOK_MS 200
#define END_WAIT_MS 10000
#define NAMES_MAX 1000

struct bad_hosts {
    struct job *job;
    const char *path;
    struct bad_host_list known;    /* as the job began */
    struct bad_host_list said;     /* of them, those that were left out of a discovered list */
    struct bad_host_list news;     /* that are not written yet */
    int64_t due_ms;                /* when the news have settled */
    int64_t *trouble_ms;           /* by node: when it was last lost, or has not ended */
    size_t nodes, nodes_room;      /* of them */
    struct bad_hosts_write *write; /* NULL: none is under way */
    struct loop_timer *timer;
};

static int64_t now_s(void)
{
    return clock_wall_ns() / 1000000000;
}

/* Why the name says nothing to other jobs; NULL: it does. */
static const char *why_not_remembered(const struct job *job, const char *name)
{
    if (job->settings->transport == SET_TRANSPORT_LOCAL)
        return "--transport local only simulates hosts";
    bool any =
        strcmp(name, "localhost") == 0 || strncmp(name, "127.", 4) == 0 || strcmp(name, "::1") == 0;
    return any ? "other jobs call another machine so; start the job with the host's own name"
               : NULL;
}

/* The outcome of the thread. */
static void say_outcome(struct bad_hosts *own)
{
    const struct log *log = &own->job->log;
    const struct bad_host_list *news = &own->write->news;
    for (size_t i = 0; i < news->count; i++) {
        const struct bad_host *host = &news->items[i];
        if (own->write->result == 0)
            log_warning(log, "%s is bad: %s; %s remembers it for %d h", host->name, host->reason,
                        own->path, (int)((host->until_s - host->since_s) / 3600));
        else
            log_warning(log, "%s is bad: %s; other jobs do not learn of it: %s", host->name,
                        host->reason, own->write->err.text);
    }
    bad_hosts_write_destroy(own->write);
    own->write = NULL;
}

/* Names that do not fit are left out. */
static void list_names(const struct bad_host_list *list, struct buf *out)
{
    for (size_t i = 0; i < list->count; i++)
        buf_printf(out, "%s%s", i > 0 ? ", " : "", list->items[i].name);
}

/* A node that was lost again and again counts once. */
static void note_trouble(struct job *job, const struct node_link *node)
{
    struct bad_hosts *own = job_part(job, bad_hosts);
    while (own != NULL && own->nodes <= (size_t)node->index) {
        MEM_ADD_ROOM(own->trouble_ms, own->nodes, own->nodes_room) = -RECENT_MS;
    }
    if (own != NULL)
        own->trouble_ms[node->index] = clock_mono_ms();
}

static void node_lost(struct job *job, struct node_link *node)
{
    note_trouble(job, node);
}

/* It has an agent, or had one when others may have had the same trouble. */
static bool was_there(const struct node_link *node, int64_t since_ms)
{
    return node_link_alive(node) || (node->ended_ns != 0 && node->ended_ns / 1000000 > since_ms);
}

/* What a check finds has no other cause. */
static bool most_have_trouble(const struct bad_hosts *own, int *some, int *all)
{
    int64_t since_ms = clock_mono_ms() - RECENT_MS;
    *some = *all = 0;
    for (int i = 0; i < own->job->node_count; i++) {
        bool trouble = (size_t)i < own->nodes && own->trouble_ms[i] > since_ms;
        *some += trouble;
        *all += trouble || was_there(own->job->nodes[i], since_ms);
    }
    return 2 * *some > *all && own->job->request->check == NULL;
}

static void begin_write(struct bad_hosts *own)
{
    struct buf names AUTO_BUF = BUF_INIT(NAMES_MAX);
    int some, all;
    if (!most_have_trouble(own, &some, &all)) {
        own->write = bad_hosts_write_begin(own->path, &own->news, now_s());
        return;
    }
    list_names(&own->news, &names);
    log_warning(&own->job->log,
                "%s does not remember %s: %d of %d hosts of this job were lost or did not end, so "
                "most likely the network, a file system or this machine is the cause",
                own->path, buf_text(&names), some, all);
    bad_hosts_destroy(&own->news);
}

static void tick(void *context)
{
    struct bad_hosts *own = context;
    if (own->write != NULL && bad_hosts_write_wait(own->write, 0))
        say_outcome(own);
    if (own->write == NULL && own->news.count > 0 && own->due_ms <= clock_mono_ms())
        begin_write(own);
    if (own->write != NULL || own->news.count > 0)
        loop_timer_set(own->timer, LOOK_MS);
}

static void host_bad(struct job *job, const struct node_link *node, enum host_bad kind,
                     const char *why)
{
    struct bad_hosts *own = job_part(job, bad_hosts);
    bool stuck = kind == HOST_BAD_UNKILLED;
    if (own == NULL)
        return;
    const char *why_not = why_not_remembered(job, node->host);
    if (why_not != NULL) {
        log_warning(&job->log, "%s is bad: %s; %s does not remember it, because %s", node->host,
                    why, own->path, why_not);
        return;
    }
    const char *name = job->settings->job_name;
    struct bad_host host = {.name = node->host,
                            .since_s = now_s(),
                            .until_s =
                                now_s() + (stuck ? BAD_HOSTS_STUCK_SECONDS : BAD_HOSTS_SECONDS),
                            .job = (char *)(name != NULL ? name : job->request->job_id),
                            .reason = (char *)why};
    if (stuck)
        note_trouble(job, node);
    bad_hosts_add(&own->news, &host);
    own->due_ms = clock_mono_ms() + SETTLE_MS;
    if (!loop_timer_is_set(own->timer))
        loop_timer_set(own->timer, LOOK_MS);
}

static bool leaves_out(struct job *job, const char *name)
{
    struct bad_hosts *own = job_part(job, bad_hosts);
    const struct bad_host *host = own == NULL ? NULL : bad_hosts_find(&own->known, name);
    struct buf text AUTO_BUF = BUF_INIT(8192);
    if (host == NULL || host->until_s <= now_s())
        return false;
    if (bad_hosts_find(&own->said, name) == NULL) {
        bad_hosts_describe(host, &text);
        log_warning(&job->log, "%s leaves out %s", own->path, buf_text(&text));
        bad_hosts_add(&own->said, host);
    }
    return true;
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    if (job->settings->bad_hosts == NULL)
        return 0;
    struct bad_hosts *own =
        MEM_NEW((struct bad_hosts){.job = job, .path = job->settings->bad_hosts});
    own->timer = loop_timer_create(job->loop, tick, own);
    const char *text = job->request->bad_hosts == NULL ? "" : job->request->bad_hosts;
    bad_hosts_parse(text, strlen(text), own->path, now_s(), &own->known, NULL);
    job->own[PART_bad_hosts] = own;
    return 0;
}

/* The loop does not run any more. */
static void tell(struct job *job)
{
    struct bad_hosts *own = job_part(job, bad_hosts);
    int64_t until_ms = clock_mono_ms() + END_WAIT_MS;
    while (own != NULL && (own->write != NULL || own->news.count > 0)) {
        if (own->write == NULL)
            begin_write(own);
        int64_t left = until_ms - clock_mono_ms();
        if (own->write == NULL)
            continue;
        if (!bad_hosts_write_wait(own->write, left)) {
            struct buf names AUTO_BUF = BUF_INIT(NAMES_MAX);
            list_names(&own->write->news, &names);
            log_warning(&job->log,
                        "%s is bad, but hvdrun could not write that to %s within %d s: "
                        "its file system does not answer, or another program has locked it",
                        buf_text(&names), own->path, END_WAIT_MS / 1000);
            return;
        }
        say_outcome(own);
    }
}

static void close_part(struct job *job)
{
    struct bad_hosts *own = job_part(job, bad_hosts);
    loop_timer_destroy(own->timer);
    bad_hosts_write_destroy(own->write);
    struct bad_host_list *lists[] = {&own->known, &own->said, &own->news};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        bad_hosts_destroy(lists[i]);
    free(own->trouble_ms);
    free(own);
}

const struct driver_part bad_hosts_part = {.name = "bad_hosts",
                                           .open = open_part,
                                           .close = close_part,
                                           .node_lost = node_lost,
                                           .host_bad = host_bad,
                                           .leaves_out = leaves_out,
                                           .tell = tell};
