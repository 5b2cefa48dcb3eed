/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/control/record.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "driver/control/folder.h"

#define JOURNAL "short.jsonl"
#define OLD "short.old.jsonl"
#define JOURNAL_READ_MAX ((size_t)64 << 20)

static int create_file(int folder, const char *file, int flags)
{
    return (int)TEMP_FAILURE_RETRY(
        openat(folder, file, flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
}

static int open_journal(int folder)
{
    return create_file(folder, JOURNAL, O_WRONLY | O_APPEND);
}

/* Two jobs that do this at once drop a few records more. */
static int open_with_room(int folder)
{
    struct stat info;
    int fd = open_journal(folder);
    if (fd < 0 || fstat(fd, &info) < 0 || info.st_size < JOB_JOURNAL_BYTES)
        return fd;
    fd_close(&fd);
    renameat(folder, JOURNAL, folder, OLD);
    return open_journal(folder);
}

/* One write(2): the lines of two jobs do not mix. */
int job_journal_add(int folder, const json_t *record, struct error *err)
{
    char *text AUTO_FREE = json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(16));
    char *line AUTO_FREE = text == NULL ? NULL : mem_printf("%s\n", text);
    int fd AUTO_FD = line == NULL ? -1 : open_with_room(folder);
    ssize_t put = fd < 0 ? -1 : fd_write(fd, line, strlen(line));
    if (put == (ssize_t)strlen(text == NULL ? "" : text) + 1)
        return 0;
    return error_errno(err, errno, "cannot write the record of the job");
}

static void walk_file(int folder, const char *name, int64_t since_s,
                      void (*each)(void *context, const json_t *record), void *context)
{
    struct buf text AUTO_BUF = BUF_INIT(JOURNAL_READ_MAX);
    int fd AUTO_FD = fd_openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        (void)fd_read_rest(fd, &text); /* what could be read counts */
    const char *at = buf_text(&text), *end = at + text.length, *line;
    size_t length;
    while (text_next_line(&at, end, &line, &length)) {
        json_t *record = json_loadb(line, length, 0, NULL);
        bool wanted = json_number_value(json_object_get(record, "ended")) >= (double)since_s;
        if (wanted && json_is_string(json_object_get(record, "job")))
            each(context, record);
        json_decref(record);
    }
}

void job_journal_walk(int folder, int64_t since_s,
                      void (*each)(void *context, const json_t *record), void *context)
{
    walk_file(folder, OLD, since_s, each, context);
    walk_file(folder, JOURNAL, since_s, each, context);
}

#define NAMES_MAX 9 /* of jobs with one id */
#define LOCK_TRIES 1000
#define LOCK_PAUSE_MS 1
#define READ_MAX (2 * JOB_RECORD_BYTES_MAX)

struct job_record {
    int folder; /* borrowed */
    int fd;     /* holds the lock */
    char *name; /* the job's */
};

static char *file_of(const char *name)
{
    return mem_printf("%s" JOB_RECORD_SUFFIX, name);
}

static int write_facts(int fd, const json_t *facts)
{
    char *text AUTO_FREE = json_dumps(facts, JSON_COMPACT | JSON_REAL_PRECISION(16));
    if (text != NULL)
        return fd_write_all(fd, text, strlen(text));
    errno = EILSEQ;
    return -1;
}

/* The locked file of this name. -1 and EWOULDBLOCK: another job has it. Commands that read the file
 * share its lock for a moment, and one that tidies up may remove it between our two steps. */
static int open_locked(int folder, const char *file)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        struct stat info;
        int fd = create_file(folder, file, O_RDWR);
        if (fd < 0)
            return -1;
        bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
        if (locked && fstat(fd, &info) == 0 && info.st_nlink > 0)
            return fd;
        bool passes = locked || (errno == EWOULDBLOCK && flock(fd, LOCK_SH | LOCK_NB) == 0);
        int errnum = errno;
        fd_close(&fd);
        errno = errnum;
        if (!passes)
            return -1;
        poll(NULL, 0, LOCK_PAUSE_MS);
    }
    errno = EWOULDBLOCK;
    return -1;
}

static struct job_record *open_named(int folder, const char *name)
{
    char *file AUTO_FREE = file_of(name);
    int fd = open_locked(folder, file);
    if (fd < 0)
        return NULL;
    return MEM_NEW((struct job_record){.folder = folder, .fd = fd, .name = mem_strdup(name)});
}

struct job_record *job_record_create(int folder, const char *job, const json_t *facts,
                                     struct error *err)
{
    struct job_record *record = open_named(folder, job);
    for (int i = 2; record == NULL && errno == EWOULDBLOCK && i <= NAMES_MAX; i++) {
        char *name AUTO_FREE = mem_printf("%s.%d", job, i);
        record = open_named(folder, name);
    }
    if (record == NULL) {
        error_errno(err, errno, "cannot create the record of the job");
        return NULL;
    }
    if (ftruncate(record->fd, 0) == 0 && write_facts(record->fd, facts) == 0)
        return record;
    error_errno(err, errno, "cannot write the record of the job");
    char *file AUTO_FREE = file_of(record->name);
    unlinkat(folder, file, 0);
    job_record_destroy(record);
    return NULL;
}

const char *job_record_name(const struct job_record *record)
{
    return record->name;
}

/* The new content is longer than the old one, so no byte of the old one remains. A reader that
 * comes in between sees nonsense under a lock: a running job. */
int job_record_finish(const struct job_record *record, const json_t *facts, struct error *err)
{
    char *file AUTO_FREE = file_of(record->name);
    if (lseek(record->fd, 0, SEEK_SET) == 0 && write_facts(record->fd, facts) == 0)
        return 0;
    int errnum = errno;
    unlinkat(record->folder, file, 0);
    return error_errno(err, errnum, "cannot write the record of the job");
}

void job_record_destroy(struct job_record *record)
{
    if (record == NULL)
        return;
    fd_close(&record->fd);
    free(record->name);
    free(record);
}

/* NULL: it cannot be read. */
static json_t *read_facts(int fd)
{
    struct buf text AUTO_BUF = BUF_INIT(READ_MAX);
    if (fd_read_rest(fd, &text) < 0)
        return NULL;
    json_t *facts = json_loadb(buf_text(&text), text.length, 0, NULL);
    if (json_is_object(facts))
        return facts;
    json_decref(facts);
    return NULL;
}

/* The last record of the job in the journal. */
struct short_job {
    const char *job;
    json_t *found;
};

static void take_short(void *context, const json_t *record)
{
    struct short_job *search = context;
    if (strcmp(json_string_value(json_object_get(record, "job")), search->job) != 0)
        return;
    json_decref(search->found);
    search->found = json_deep_copy(record);
}

static json_t *read_short(int folder, const char *job, enum job_record_state *state)
{
    struct short_job search = {.job = job};
    job_journal_walk(folder, 0, take_short, &search);
    *state = JOB_RECORD_ENDED;
    return search.found;
}

json_t *job_record_read(int folder, const char *job, enum job_record_state *state)
{
    char *file AUTO_FREE = file_of(job);
    int fd AUTO_FD = fd_openat(folder, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return read_short(folder, job, state);
    /* In this order: the driver writes the end before it unlocks the record. */
    bool locked = flock(fd, LOCK_SH | LOCK_NB) < 0;
    json_t *facts = read_facts(fd);
    if (json_object_get(facts, "ended") != NULL)
        *state = JOB_RECORD_ENDED;
    else
        *state = locked ? JOB_RECORD_RUNNING : JOB_RECORD_LOST;
    if (facts != NULL) /* two jobs may have the same id */
        json_object_set_new(facts, "job", json_string(job));
    return facts;
}
