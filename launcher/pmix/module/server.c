/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix/module/server.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"

#define TEXT_MAX ((size_t)64 << 10)
#define ARGUMENTS_MAX ((size_t)1 << 20)

/* PMIx calls back without a context, and a second PMIx_server_init ends the process, so these two
 * are the process's. Callbacks run between init and finalize, where `active` does not change. */
static struct {
    struct server *active;
    bool used;
} process;

struct server *server_active(void)
{
    return process.active;
}

bool server_claim(struct server *server, struct error *err)
{
    if (process.used) {
        error_set(err, "PMIx was started in this process before, and it can start only once");
        return false;
    }
    process.used = true;
    process.active = server;
    return true;
}

void server_release(void)
{
    process.active = NULL;
}

bool server_ok(pmix_status_t status)
{
    return status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED;
}

long server_library_major(void)
{
    const char *version = PMIx_Get_version();
    return strtol(version + strcspn(version, "0123456789"), NULL, 10);
}

void server_arm_timer(struct server *server)
{
    int64_t deadline = publish_store_deadline(server->store), other = server->modex_deadline_ms;
    struct itimerspec when = {{0}, {0}};
    if (deadline < 0 || (other >= 0 && other < deadline))
        deadline = other;
    if (deadline >= 0) {
        when.it_value.tv_sec = deadline / 1000;
        when.it_value.tv_nsec = deadline % 1000 * 1000000 + 1; /* never 0, which would disarm */
    }
    timerfd_settime(server->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

int server_error(struct error *err, pmix_status_t status, const char *what)
{
    return error_set(err, "cannot %s: %s (status %d of the PMIx library; -v shows what it says)",
                     what, PMIx_Error_string(status), status);
}

void server_log(const struct server *server, enum log_level level, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    server->ops.log(server->context, level, line);
}

void server_complain(const struct server *server, const char *line, size_t length)
{
    if (length > 0)
        server_log(server, LOG_INFO, "PMIx: %.*s", (int)length, line);
}

struct server_job *server_job_named(const struct server *server, const char *nspace)
{
    struct server_job *job = server->jobs;
    while (job != NULL && !PMIX_CHECK_NSPACE(nspace, job->nspace))
        job = job->next;
    return job;
}

struct server_job *server_job_with(const struct server *server, int number)
{
    struct server_job *job = server->jobs;
    while (job != NULL && (number < job->first || number - job->first >= job->size))
        job = job->next;
    return job;
}

struct local *server_local(const struct server *server, int number)
{
    const struct server_job *job = server_job_with(server, number);
    if (job == NULL || job->node_of[number - job->first] != job->my_node)
        return NULL;
    return &job->locals[job->local_rank_of[number - job->first]];
}

int server_number(const struct server *server, const pmix_proc_t *proc)
{
    const struct server_job *job = server_job_named(server, proc->nspace);
    bool known = job != NULL && proc->rank < (pmix_rank_t)job->size;
    return known ? job->first + (int)proc->rank : -1;
}

struct local *server_local_proc(const struct server *server, const pmix_proc_t *proc)
{
    return server_local(server, server_number(server, proc));
}

int local_number(const struct local *local)
{
    return local->job->first + local->rank;
}

bool server_is_alone(const struct server *server)
{
    return server->alone;
}

static void copy_app(struct job_app *to, const struct pmix_job_app *from, const char *wdir)
{
    struct buf arguments AUTO_BUF = BUF_INIT(ARGUMENTS_MAX);
    const char *command = from->argv != NULL && from->argv[0] != NULL ? from->argv[0] : "";
    to->command = mem_strdup(command);
    for (char *const *word = from->argv; *command != '\0' && *word != NULL; word++)
        if (buf_printf(&arguments, "%s%s", word == from->argv ? "" : " ", *word) < 0)
            break;
    to->arguments = buf_take(&arguments);
    to->wdir = mem_strdup(from->wdir != NULL ? from->wdir : wdir);
    to->np = from->np;
    to->first_rank = from->first_rank;
}

int server_app(const struct server_job *job, int rank)
{
    for (int i = 0; i < job->app_count; i++)
        if (rank >= job->apps[i].first_rank && rank < job->apps[i].first_rank + job->apps[i].np)
            return i;
    return 0;
}

static void copy_nodes(struct server_job *job, const struct pmix_job *from)
{
    size_t nodes = (size_t)from->node_count;
    job->node_of = mem_array((size_t)from->size, sizeof(*job->node_of));
    job->local_rank_of = mem_array((size_t)from->size, sizeof(*job->local_rank_of));
    job->node_sizes = mem_array(nodes, sizeof(*job->node_sizes));
    job->node_names = mem_array(nodes, sizeof(*job->node_names));
    for (int n = 0; n < from->node_count; n++) {
        job->node_names[n] = mem_strdup(from->nodes[n].name);
        job->node_sizes[n] = from->nodes[n].rank_count;
        for (int i = 0; i < from->nodes[n].rank_count; i++) {
            job->node_of[from->nodes[n].ranks[i]] = n;
            job->local_rank_of[from->nodes[n].ranks[i]] = i;
        }
    }
}

static void copy_locals(struct server_job *job, const struct pmix_job *from)
{
    const struct pmix_job_node *node = &from->nodes[from->my_node];
    job->local_count = node->rank_count;
    job->locals = mem_array((size_t)node->rank_count, sizeof(*job->locals));
    for (int i = 0; i < node->rank_count; i++)
        job->locals[i] =
            (struct local){.job = job,
                           .rank = node->ranks[i],
                           .app = server_app(job, node->ranks[i]),
                           .cpuset = from->cpusets != NULL ? mem_strdup(from->cpusets[i]) : NULL};
}

struct server_job *server_job_create(const struct pmix_job *from)
{
    struct server_job *job = mem_alloc(sizeof(*job));
    PMIX_LOAD_NSPACE(job->nspace, from->nspace);
    job->first = from->first;
    if (from->parent_nspace != NULL)
        PMIX_LOAD_PROCID(&job->parent, from->parent_nspace, (pmix_rank_t)from->parent_rank);
    job->size = from->size;
    job->universe_size = from->universe_size > 0 ? from->universe_size : from->size;
    job->node_count = from->node_count;
    job->my_node = from->my_node;
    job->app_count = from->app_count;
    job->shm_dir = mem_strdup(from->shm_dir);
    job->uid = from->uid;
    job->gid = from->gid;
    job->oversubscribed = from->oversubscribed;
    job->apps = mem_array((size_t)from->app_count, sizeof(*job->apps));
    for (int i = 0; i < from->app_count; i++)
        copy_app(&job->apps[i], &from->apps[i], from->wdir);
    copy_nodes(job, from);
    copy_locals(job, from);
    return job;
}

void server_job_destroy(struct server_job *job)
{
    for (int i = 0; i < job->app_count; i++) {
        free(job->apps[i].command);
        free(job->apps[i].arguments);
        free(job->apps[i].wdir);
    }
    for (int i = 0; i < job->node_count; i++)
        free(job->node_names[i]);
    for (int i = 0; i < job->local_count; i++)
        free(job->locals[i].cpuset);
    free(job->apps);
    free(job->node_names);
    free(job->node_sizes);
    free(job->node_of);
    free(job->local_rank_of);
    free(job->locals);
    free(job->shm_dir);
    free(job);
}

/* ---- What the library prints ----------------------------------------------------------------- */

void complaints_begin(struct complaints *complaints)
{
    complaints->file = memfd_create("pmix-stderr", MFD_CLOEXEC);
    complaints->stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (complaints->file >= 0 && complaints->stderr_fd >= 0 &&
        fd_dup2(complaints->file, STDERR_FILENO) >= 0)
        return;
    fd_close(&complaints->file);
    fd_close(&complaints->stderr_fd);
}

void complaints_end(struct complaints *complaints, const struct server *server)
{
    if (complaints->file < 0)
        return;
    fd_dup2(complaints->stderr_fd, STDERR_FILENO);
    fd_close(&complaints->stderr_fd);
    char *text AUTO_FREE = mem_alloc(TEXT_MAX + 1);
    ssize_t got = fd_pread(complaints->file, text, TEXT_MAX, 0);
    fd_close(&complaints->file);
    text[got > 0 ? got : 0] = '\0';
    for (const char *at = text; *at != '\0'; at += *at == '\n') {
        size_t length = strcspn(at, "\n");
        server_complain(server, at, length);
        at += length;
    }
}
