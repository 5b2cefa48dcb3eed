/* SPDX-License-Identifier: Apache-2.0 */
#include "features/metrics/metrics_file_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "features/metrics/metrics_driver.h"
#include "features/usage/sampler_driver.h"

#define FIRST_MS 1000 /* a job that ends at once needs none */

struct metrics_file {
    struct job *job;
    char *path, *temporary;
    struct loop_timer *timer;
    bool written, complained;
};

/* In the same folder, and hidden: the collector reads all others. */
static char *temporary_for(const char *path)
{
    const char *slash = strrchr(path, '/');
    int folder = slash == NULL ? 0 : (int)(slash + 1 - path);
    return mem_printf("%.*s.%s.tmp", folder, path, path + folder);
}

static int write_text(const struct metrics_file *file, const struct buf *text)
{
    int fd AUTO_FD =
        fd_open(file->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0 || fd_write_all(fd, buf_text(text), text->length) < 0)
        return -1;
    return rename(file->temporary, file->path);
}

static void write_now(struct metrics_file *file)
{
    struct buf text AUTO_BUF = BUF_INIT(METRICS_TEXT_MAX);
    metrics_text(file->job, EXPOSITION_TEXT, &text);
    if (write_text(file, &text) == 0) {
        file->written = true;
    } else if (!file->complained) {
        file->complained = true;
        log_warning(&file->job->log, "cannot write the metrics to %s: %s", file->path,
                    strerrordesc_np(errno));
        unlink(file->temporary);
    }
    loop_timer_set(file->timer, METRICS_FILE_MS);
}

static void answered(void *context, const struct ask *ask)
{
    (void)ask;
    write_now(context);
}

static void is_due(void *context)
{
    struct metrics_file *file = context;
    bool over = file->job->state >= JOB_CLOSING;
    if (!over && !sampler_ask(job_part(file->job, sampler), answered, file))
        write_now(file);
}

struct metrics_file *metrics_file_create(struct job *job, const char *path)
{
    struct metrics_file *file = mem_alloc(sizeof(*file));
    *file = (struct metrics_file){
        .job = job, .path = mem_strdup(path), .temporary = temporary_for(path)};
    file->timer = loop_timer_create(job->loop, is_due, file);
    loop_timer_set(file->timer, FIRST_MS);
    return file;
}

void metrics_file_destroy(struct metrics_file *file)
{
    if (file == NULL)
        return;
    ask_forget(file->job, file);
    loop_timer_destroy(file->timer);
    if (file->written)
        unlink(file->path);
    free(file->path);
    free(file->temporary);
    free(file);
}
