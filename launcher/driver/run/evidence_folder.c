/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/evidence_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/job/job_nodes.h"
#include "driver/run/evidence_answers.h"
#include "driver/tell/evidence_lines.h"

struct evidence {
    struct job *job;
    char *(*place)(void);
    struct strv paths, incomplete; /* folders: all of them, and those that lack a file */
    size_t told;                   /* how many of them the user knows */
    bool full;                     /* the user knows that there are no more */
    struct loop_timer *pause, *wait;

    /* Of the collection that is under way */
    bool collects;
    struct evidence_facts facts;
    char *text;
    struct buf stacks;
    uint32_t round;
    struct evidence_answers answers;
    char *path;  /* NULL: there is no place */
    bool looked; /* there is no look to come */
    bool once;
    void (*done)(void *context);
    void *context;
};

static void pause_over(void *context);
static void finish(void *context);

void evidence_folder_create(struct job *job, char *(*place)(void))
{
    struct evidence *evidence = mem_alloc(sizeof(*evidence));
    *evidence = (struct evidence){.job = job, .place = place};
    evidence->pause = loop_timer_create(job->loop, pause_over, evidence);
    evidence->wait = loop_timer_create(job->loop, finish, evidence);
    job->evidence = evidence;
}

static void clear(struct evidence *evidence)
{
    evidence->collects = false;
    loop_timer_clear(evidence->pause);
    loop_timer_clear(evidence->wait);
    looks_forget(evidence->job->looks, evidence);
    evidence_answers_destroy(&evidence->answers);
    free(evidence->path);
    evidence->path = NULL;
    evidence->looked = false;
    buf_destroy(&evidence->stacks);
    free(evidence->text);
    evidence->text = NULL;
}

void evidence_folder_destroy(struct job *job)
{
    struct evidence *evidence = job->evidence;
    if (evidence == NULL)
        return;
    clear(evidence);
    loop_timer_destroy(evidence->pause);
    loop_timer_destroy(evidence->wait);
    strv_destroy(&evidence->paths);
    strv_destroy(&evidence->incomplete);
    free(evidence);
    job->evidence = NULL;
}

bool evidence_folder_may_come(const struct settings *settings)
{
    bool by_hang = settings->hang_timeout > 0 || settings->expect.count > 0;
    return settings->evidence != NULL || settings->dump_on_failure ||
           (by_hang && settings->on_hang != SET_ON_HANG_WARN);
}

bool evidence_folder_wants(const struct job *job, enum evidence_kind kind)
{
    const struct settings *settings = job->settings;
    if (job->evidence == NULL)
        return false;
    return settings->evidence != NULL || kind == EVIDENCE_HANG ||
           (kind == EVIDENCE_FAILURE && settings->dump_on_failure);
}

static bool has(const struct strv *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i], text) == 0)
            return true;
    }
    return false;
}

/* "DIR/JOB.20261123-013400", and "-2" behind it if another failure was in the same second. */
static char *new_path(const struct evidence *evidence)
{
    const struct settings *settings = evidence->job->settings;
    time_t seconds = (time_t)(clock_wall_ns() / 1000000000);
    struct tm when;
    char stamp[32] = "";
    char *folder AUTO_FREE =
        settings->evidence != NULL ? mem_strdup(settings->evidence) : evidence->place();
    if (folder == NULL)
        return NULL;
    gmtime_r(&seconds, &when);
    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &when);
    char *path = NULL, number[16] = "";
    for (int i = 2; path == NULL || has(&evidence->paths, path); i++) {
        free(path);
        path = mem_printf("%s/%s.%s%s%s", folder, evidence->job->request->job_id, stamp, number,
                          settings->evidence != NULL ? "" : ".evidence");
        snprintf(number, sizeof(number), "-%d", i);
    }
    return path;
}

/* A full disk fails many files: one line for each folder. */
static void note_incomplete(struct evidence *evidence, const char *folder, const char *path,
                            int errnum)
{
    if (has(&evidence->incomplete, folder))
        return;
    strv_add(&evidence->incomplete, folder);
    log_warning(&evidence->job->log,
                "the evidence of this failure is incomplete: cannot write '%s': %s", path,
                strerrordesc_np(errnum));
}

static void write_failed(void *context, const char *path, int errnum)
{
    struct evidence *evidence = context;
    for (size_t i = 0; i < evidence->paths.count; i++) {
        const char *folder = evidence->paths.items[i];
        size_t length = strlen(folder);
        if (strncmp(path, folder, length) == 0 && path[length] == '/')
            note_incomplete(evidence, folder, path, errnum);
    }
}

static void write_file(struct evidence *evidence, const char *folder, const char *name,
                       const char *text, size_t length)
{
    char *path AUTO_FREE = mem_printf("%s/%s", folder, name);
    struct output_file *file =
        output_file_open_whole(evidence->job->output, path, write_failed, evidence);
    output_file_write(file, text, length);
    output_file_close(file);
}

/* What was to be written is written, or failed. */
static void written(void *context)
{
    struct evidence *evidence = context;
    const char *folder = evidence->paths.items[evidence->told++];
    if (!has(&evidence->incomplete, folder))
        log_notice(&evidence->job->log,
                   "the evidence of this failure is in %s; 'hvdrun explain' says what happened",
                   folder);
}

static void write_all(struct evidence *evidence)
{
    struct job *job = evidence->job;
    struct buf lines AUTO_BUF = BUF_INIT(EVIDENCE_FILE_MAX);
    const char *path = evidence->path;
    if (path == NULL)
        return;
    evidence->facts.files = evidence->answers.files;
    evidence->facts.file_count = evidence->answers.file_count;
    evidence->facts.hosts = evidence->answers.hosts;
    evidence->facts.host_count = evidence->answers.host_count;
    char *facts AUTO_FREE = evidence_json_facts(job, &evidence->facts);
    evidence_lines(job, &lines);
    write_file(evidence, path, "facts.json", facts, strlen(facts));
    write_file(evidence, path, "stacks.txt", buf_text(&evidence->stacks), evidence->stacks.length);
    write_file(evidence, path, "lines.txt", buf_text(&lines), lines.length);
    output_flush(job->output, written, evidence);
}

static void finish(void *context)
{
    struct evidence *evidence = context;
    void (*done)(void *) = evidence->done;
    write_all(evidence);
    clear(evidence);
    if (done != NULL)
        done(evidence->context);
}

/* Hosts that have not answered are not waited for: the looks have been long enough. */
static void finish_if_complete(struct evidence *evidence)
{
    if (evidence->looked && evidence_answers_complete(&evidence->answers, evidence->job))
        finish(evidence);
}

static void looks_are_over(struct evidence *evidence)
{
    evidence->looked = true;
    loop_timer_set(evidence->wait, EVIDENCE_DUMPS_MS);
    finish_if_complete(evidence);
}

static void add_look(struct evidence *evidence, const char *title, const struct look *look)
{
    buf_puts(&evidence->stacks, title);
    look_text(look, &evidence->stacks);
}

static void second_look(void *context, const struct look *look)
{
    add_look(context, "\nA second later:\n\n", look);
    looks_are_over(context);
}

static void pause_over(void *context)
{
    struct evidence *evidence = context;
    looks_ask(evidence->job->looks, second_look, evidence);
}

static void first_look(void *context, const struct look *look)
{
    struct evidence *evidence = context;
    add_look(evidence, "", look);
    if (evidence->once)
        looks_are_over(evidence);
    else
        loop_timer_set(evidence->pause, EVIDENCE_PAUSE_MS);
}

static void ask_hosts(struct evidence *evidence)
{
    struct job *job = evidence->job;
    Hvdrun__EvidenceRequest message = HVDRUN__EVIDENCE_REQUEST__INIT;
    message.round = ++evidence->round;
    message.file_bytes = EVIDENCE_DUMPS_MAX / (size_t)(job->node_count > 0 ? job->node_count : 1);
    evidence_answers_init(&evidence->answers, job->node_count);
    for (int i = 0; i < job->node_count; i++) {
        if (node_link_alive(job->nodes[i]) && job->nodes[i]->state >= NODE_UP)
            node_link_send(job->nodes[i], FRAME_EVIDENCE_REQUEST, job->epoch, &message.base);
    }
}

/* Says so once. */
static bool is_full(struct evidence *evidence)
{
    bool full = evidence->paths.count >= EVIDENCE_FOLDERS_MAX;
    if (full && !evidence->full)
        log_notice(&evidence->job->log, "this job has %d folders of evidence, and gets no more",
                   EVIDENCE_FOLDERS_MAX);
    evidence->full = full;
    return full;
}

void evidence_folder_collect(struct job *job, const struct evidence_cause *cause,
                             const struct look *first, void (*done)(void *context), void *context)
{
    struct evidence *evidence = job->evidence;
    bool wanted = evidence_folder_wants(job, cause->kind);
    if (!wanted || evidence->collects || is_full(evidence)) {
        if (done != NULL)
            done(context);
        return;
    }
    evidence->collects = true;
    evidence->path = new_path(evidence);
    if (evidence->path != NULL)
        strv_add(&evidence->paths, evidence->path);
    evidence->text = mem_strdup(cause->text);
    evidence->facts = (struct evidence_facts){.kind = cause->kind,
                                              .text = evidence->text,
                                              .rank = cause->rank,
                                              .by_nccl = cause->by_nccl,
                                              .epoch = (int)job->epoch,
                                              .when_ns = clock_wall_ns()};
    evidence->stacks = (struct buf)BUF_INIT(EVIDENCE_FILE_MAX);
    evidence->once = cause->once;
    evidence->done = done;
    evidence->context = context;
    ask_hosts(evidence);
    if (first != NULL)
        first_look(evidence, first);
    else
        looks_ask(job->looks, first_look, evidence);
}

void evidence_folder_end(struct job *job)
{
    struct evidence *evidence = job->evidence;
    if (evidence == NULL)
        return;
    evidence->done = NULL;
    if (evidence->collects)
        finish(evidence);
    for (size_t i = 0; i < evidence->paths.count; i++) {
        char *report AUTO_FREE = evidence_json_report(job);
        size_t length = strlen(report);
        if (length <= EVIDENCE_FILE_MAX)
            write_file(evidence, evidence->paths.items[i], "report.json", report, length);
    }
}

const struct strv *evidence_folder_paths(const struct job *job)
{
    static const struct strv none = STRV_INIT;
    return job->evidence == NULL ? &none : &job->evidence->paths;
}

static bool wants(const struct evidence *evidence, uint32_t round)
{
    return evidence != NULL && evidence->collects && round == evidence->round;
}

int evidence_folder_take(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct evidence *evidence = job->evidence;
    Hvdrun__Evidence *message = hvdrun__evidence__unpack(NULL, frame->length, frame->body);
    if (message == NULL)
        return -1;
    if (!wants(evidence, message->round)) {
        hvdrun__evidence__free_unpacked(message, NULL);
        return 0;
    }
    evidence_answers_take(&evidence->answers, node, message);
    finish_if_complete(evidence);
    return 0;
}

int evidence_folder_file(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct evidence *evidence = job->evidence;
    Hvdrun__EvidenceFile *message = hvdrun__evidence_file__unpack(NULL, frame->length, frame->body);
    if (message == NULL)
        return -1;
    const char *name = NULL;
    if (wants(evidence, message->round))
        name = evidence_answers_file(&evidence->answers, job, node, message);
    if (name != NULL && evidence->path != NULL)
        write_file(evidence, evidence->path, name, (const char *)message->data.data,
                   message->data.len);
    if (wants(evidence, message->round))
        finish_if_complete(evidence);
    hvdrun__evidence_file__free_unpacked(message, NULL);
    return 0;
}
