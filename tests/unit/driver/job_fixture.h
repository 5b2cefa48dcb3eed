/* SPDX-License-Identifier: Apache-2.0 */
/* A job of three ranks as what tells the user about it finds it: 0 and 1 on host a, 2 on b. */
#pragma once

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <jansson.h>

#include "base/fd.h"
#include "base/mem.h"
#include "driver/job/job_kind.h"
#include "driver/job/job_nodes.h"
#include "loop_fixture.h"
#include "model/allocation/allocation.h"
#include "model/exit/policy.h"
#include "model/hosts/entry.h"

#define SECOND 1000000000LL

/* Its log goes to `said`, its standard output and error to `sink`. */
struct fixture {
    struct settings settings;
    struct app_list apps;
    struct plan *plan;
    struct job_request request;
    struct job job;
    struct exit_policy *policy;
    struct buf block, said;
    int sink;
    char folder[32]; /* for what the job writes into files */
};

static inline void consumed(void *context, int rank, size_t bytes)
{
    (void)context, (void)rank, (void)bytes;
}

static inline void failed(void *context, enum output_stream stream, int errnum, const char *text)
{
    (void)context, (void)stream, (void)errnum, (void)text;
}

static inline enum exit_role role(const struct job *job, int seat)
{
    return exit_policy_role(job->kind_data, seat);
}

static inline void say(void *context, enum log_level level, const char *line)
{
    (void)level;
    buf_printf(context, "%s\n", line);
}

static inline int setup(void **state)
{
    static const struct job_kind kind = {.has_workers = true, .role = role};
    static struct fixture f;
    static char *argv[] = {"hvdrun", "./train", "\377", NULL}; /* the last is not UTF-8 */
    static const struct output_ops ops = {consumed, failed};
    struct host_list hosts = {0};
    f = (struct fixture){
        .block = BUF_INIT(100000), .said = BUF_INIT(100000), .folder = "/tmp/hvdrun-unit-XXXXXX"};
    hosts_parse("a:2,b:1", &hosts, NULL);
    strv_add(&app_list_add(&f.apps)->argv, "./train");
    struct plan_request request = {.hosts = &hosts, .apps = &f.apps};
    f.plan = plan_create(&request, NULL);
    hosts_destroy(&hosts);
    f.request = (struct job_request){.argv = argv, .job_id = "job-1", .begun_ns = 1 * SECOND};
    f.sink = memfd_create("sink", MFD_CLOEXEC);
    struct output_config config = {.ranks = 3, .raw_seat = -1, .out_fd = f.sink, .err_fd = f.sink};
    settings_init(&f.settings);
    f.policy = exit_policy_create(EXIT_FIRST, f.plan, &f.job.outside);
    f.job = (struct job){.request = &f.request,
                         .settings = &f.settings,
                         .kind = &kind,
                         .kind_data = f.policy,
                         .plan = f.plan,
                         .log = {LOG_DEBUG, say, &f.said},
                         .loop = loop_create(NULL),
                         .epoch = 1,
                         .times.opened_ns = 2 * SECOND,
                         .times.started_ns = 4 * SECOND,
                         .times.wall_begun_ns = 1700000000 * SECOND};
    f.job.output = output_create(f.job.loop, &config, &ops, NULL, NULL);
    rank_table_init(&f.job.ranks, 3);
    job_take_plan(&f.job);
    for (int rank = 0; rank < 3; rank++) {
        rank_started(&f.job.ranks, rank, 100 + rank, 5 * SECOND);
        exit_policy_started(f.policy, rank);
    }
    *state = &f;
    return f.job.output == NULL || mkdtemp(f.folder) == NULL ? -1 : 0;
}

static inline void remove_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    for (const struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries))
        unlinkat(dirfd(entries), entry->d_name, 0);
    closedir(entries);
    rmdir(folder);
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    output_destroy(f->job.output, 10000);
    loop_destroy(f->job.loop);
    rank_table_destroy(&f->job.ranks);
    settings_destroy(&f->settings);
    exit_policy_destroy(f->policy);
    for (int i = 0; i < f->job.node_count; i++)
        node_link_destroy(f->job.nodes[i]);
    free(f->job.nodes);
    free(f->job.places);
    plan_destroy(f->plan);
    app_list_destroy(&f->apps);
    buf_destroy(&f->block);
    buf_destroy(&f->said);
    fd_close(&f->sink);
    remove_folder(f->folder);
    return 0;
}

static inline void exits(struct fixture *f, int rank, bool signaled, int code, int64_t when_ns)
{
    struct exit_event event = {
        .seat = rank, .signaled = signaled, .code = code, .when_ns = when_ns};
    assert_true(rank_exited(&f->job.ranks, rank, when_ns));
    f->job.ranks.records[rank].signaled = signaled;
    f->job.ranks.records[rank].code = code;
    exit_policy_ended(f->policy, FACT_EXITED, &event, NULL);
    rank_finished(&f->job.ranks, rank);
}

static inline void all_written(void *context)
{
    loop_stop(context);
}

static inline void wait_written(struct fixture *f)
{
    output_flush(f->job.output, all_written, f->job.loop);
    run_loop(f->job.loop);
}

/* What the job has printed. The caller frees it. */
static inline char *printed(struct fixture *f)
{
    wait_written(f);
    char *text = mem_alloc(100000);
    ssize_t length = pread(f->sink, text, 99999, 0);
    text[length > 0 ? length : 0] = '\0';
    return text;
}

/* What is in this file of the folder, once the job has written all that it has so far. NULL: there
 * is no such file. The caller frees it. */
static inline char *written(struct fixture *f, const char *name)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/%s", f->folder, name);
    wait_written(f);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return NULL;
    char *text = mem_alloc((size_t)16 << 20);
    text[fread(text, 1, ((size_t)16 << 20) - 1, file)] = '\0';
    fclose(file);
    return text;
}

static inline void expect_written(struct fixture *f, const char *name, const char *wanted)
{
    char *text AUTO_FREE = written(f, name);
    assert_int_equal(text == NULL, wanted == NULL);
    if (wanted != NULL)
        assert_string_equal(text, wanted);
}

/* `value` is this JSON, with ' for ". Takes the value. */
static inline void expect_json(json_t *value, const char *wanted)
{
    char *text = mem_strdup(wanted);
    for (char *at = text; *at != '\0'; at++)
        *at = *at == '\'' ? '"' : *at;
    json_t *right = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(right);
    if (!json_equal(value, right)) {
        char *found = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
        fail_msg("%s\nis not\n%s", found, text);
    }
    free(text);
    json_decref(right);
    json_decref(value);
}
