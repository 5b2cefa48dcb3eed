/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/serve/metrics_target.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "driver/tell/json_text.h"

struct metrics_target {
    char *path;
};

/* "127.0.0.1:9400" of "http://127.0.0.1:9400/metrics". An address of all networks becomes this
 * machine's name. NULL: it is a Unix socket. The caller frees it. */
static char *host_of(const char *url)
{
    static const char scheme[] = "http://";
    static const char *const all[] = {"0.0.0.0:", "[::]:"};
    char here[256] = "";
    if (strncmp(url, scheme, strlen(scheme)) != 0)
        return NULL;
    url += strlen(scheme);
    gethostname(here, sizeof(here) - 1);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        size_t length = strlen(all[i]);
        if (strncmp(url, all[i], length) == 0)
            return mem_printf("%s:%.*s", here, (int)strcspn(url + length, "/"), url + length);
    }
    return mem_strndup(url, strcspn(url, "/"));
}

static char *text_of(const struct job *job, const char *host)
{
    json_t *labels = json_object(), *entry = json_object(), *list = json_array();
    json_object_set_new(labels, "hvdrun_job", json_text(job->request->job_id));
    if (job->settings->job_name != NULL)
        json_object_set_new(labels, "hvdrun_name", json_text(job->settings->job_name));
    json_object_set_new(entry, "targets", json_pack("[o]", json_text(host)));
    json_object_set_new(entry, "labels", labels);
    json_array_append_new(list, entry);
    char *dumped = json_dumps(list, JSON_COMPACT);
    char *text = mem_printf("%s\n", dumped == NULL ? "[]" : dumped);
    free(dumped);
    json_decref(list);
    return text;
}

/* Prometheus must not see half of it. */
static int write_file(const char *path, const char *text)
{
    char *temporary AUTO_FREE = mem_printf("%s.tmp", path);
    int fd AUTO_FD =
        fd_open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0 && rename(temporary, path) == 0)
        return 0;
    int errnum = errno;
    if (fd >= 0)
        unlink(temporary);
    errno = errnum;
    return -1;
}

struct metrics_target *metrics_target_create(struct job *job, const char *folder, const char *url)
{
    char *host AUTO_FREE = host_of(url);
    if (host == NULL)
        return NULL;
    char *text AUTO_FREE = text_of(job, host);
    struct metrics_target *target = mem_alloc(sizeof(*target));
    target->path = mem_printf("%s/%s.json", folder, job->request->job_id);
    if (write_file(target->path, text) == 0)
        return target;
    log_warning(&job->log, "--metrics-targets: cannot write %s: %s", target->path,
                strerrordesc_np(errno));
    free(target->path);
    free(target);
    return NULL;
}

void metrics_target_destroy(struct metrics_target *target)
{
    if (target == NULL)
        return;
    unlink(target->path);
    free(target->path);
    free(target);
}
