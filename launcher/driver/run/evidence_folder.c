/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/evidence_folder.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/job/job_nodes.h"
#include "node/evidence.h"

struct evidence {
    struct job *job;
    char *(*place)(void);
    struct strv paths;
    struct loop_timer *pause, *wait;

    /* Of the collection that is under way */
    bool collects;
    struct evidence_facts facts;
    char *text;
    struct buf stacks;
    uint32_t round;
    Hvdrun__Evidence **answers; /* by the node's index */
    int answer_count;
    char *path;        /* NULL: there is no place */
    uint32_t *to_come; /* files, by the node's index */
    struct evidence_file *files;
    size_t file_count, file_bytes;
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

static void clear_files(struct evidence *evidence)
{
    for (size_t i = 0; i < evidence->file_count; i++) {
        free(evidence->files[i].name);
        free(evidence->files[i].missing);
    }
    free(evidence->files);
    free(evidence->to_come);
    free(evidence->path);
    evidence->files = NULL;
    evidence->file_count = evidence->file_bytes = 0;
    evidence->to_come = NULL;
    evidence->path = NULL;
    evidence->looked = false;
}

static void clear(struct evidence *evidence)
{
    evidence->collects = false;
    loop_timer_clear(evidence->pause);
    loop_timer_clear(evidence->wait);
    clear_files(evidence);
    looks_forget(evidence->job->looks, evidence);
    for (int i = 0; i < evidence->answer_count; i++) {
        if (evidence->answers[i] != NULL)
            hvdrun__evidence__free_unpacked(evidence->answers[i], NULL);
    }
    free(evidence->answers);
    evidence->answers = NULL;
    evidence->answer_count = 0;
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
    if (job->evidence == NULL || job->evidence->paths.count >= EVIDENCE_FOLDERS_MAX)
        return false;
    return settings->evidence != NULL || kind == EVIDENCE_HANG ||
           (kind == EVIDENCE_FAILURE && settings->dump_on_failure);
}

/* "DIR/JOB.20261123-013400" */
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
    return mem_printf("%s/%s.%s%s", folder, evidence->job->request->job_id, stamp,
                      settings->evidence != NULL ? "" : ".evidence");
}

static void write_file(const struct evidence *evidence, const char *folder, const char *name,
                       const char *text, size_t length)
{
    char *path AUTO_FREE = mem_printf("%s/%s", folder, name);
    struct output_file *file = output_file_open_private(evidence->job->output, path);
    output_file_write(file, text, length);
    output_file_close(file);
}

static void write_all(struct evidence *evidence)
{
    struct job *job = evidence->job;
    struct buf lines AUTO_BUF = BUF_INIT(EVIDENCE_FILE_MAX);
    const char *path = evidence->path;
    if (path == NULL)
        return;
    evidence->facts.files = evidence->files;
    evidence->facts.file_count = evidence->file_count;
    evidence->facts.answers = evidence->answers;
    evidence->facts.answer_count = evidence->answer_count;
    char *facts AUTO_FREE = evidence_json_facts(job, &evidence->facts);
    evidence_json_lines(job, &lines);
    write_file(evidence, path, "facts.json", facts, strlen(facts));
    write_file(evidence, path, "stacks.txt", buf_text(&evidence->stacks), evidence->stacks.length);
    write_file(evidence, path, "lines.txt", buf_text(&lines), lines.length);
    log_notice(&job->log, "what is known about this failure is in %s; 'hvdrun explain' tells it",
               path);
    strv_add(&evidence->paths, path);
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
    const struct job *job = evidence->job;
    if (!evidence->looked)
        return;
    for (int i = 0; i < evidence->answer_count; i++) {
        if (evidence->to_come[i] > 0 && node_link_alive(job->nodes[i]))
            return;
    }
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
    evidence->answer_count = job->node_count;
    evidence->to_come = mem_array((size_t)job->node_count + 1, sizeof(*evidence->to_come));
    evidence->answers = mem_array((size_t)job->node_count + 1, sizeof(*evidence->answers));
    for (int i = 0; i < job->node_count; i++) {
        if (node_link_alive(job->nodes[i]) && job->nodes[i]->state >= NODE_UP)
            node_link_send(job->nodes[i], FRAME_EVIDENCE_REQUEST, job->epoch, &message.base);
    }
}

void evidence_folder_collect(struct job *job, const struct evidence_cause *cause,
                             const struct look *first, void (*done)(void *context), void *context)
{
    struct evidence *evidence = job->evidence;
    if (!evidence_folder_wants(job, cause->kind) || evidence->collects) {
        if (done != NULL)
            done(context);
        return;
    }
    evidence->collects = true;
    evidence->path = new_path(evidence);
    evidence->text = mem_strdup(cause->text);
    evidence->facts = (struct evidence_facts){.kind = cause->kind,
                                              .text = evidence->text,
                                              .rank = cause->rank,
                                              .by_nccl = cause->by_nccl,
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

int evidence_folder_take(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct evidence *evidence = job->evidence;
    Hvdrun__Evidence *message = hvdrun__evidence__unpack(NULL, frame->length, frame->body);
    if (message == NULL)
        return -1;
    bool wanted = evidence != NULL && evidence->collects && message->round == evidence->round &&
                  node->index < evidence->answer_count && evidence->answers[node->index] == NULL;
    if (!wanted) {
        hvdrun__evidence__free_unpacked(message, NULL);
        return 0;
    }
    evidence->answers[node->index] = message;
    evidence->to_come[node->index] = message->files;
    finish_if_complete(evidence);
    return 0;
}

/* Its place in the folder; NULL: it is about no worker of that node. */
static char *file_name(const struct evidence *evidence, const struct node_link *node,
                       const Hvdrun__EvidenceFile *message, int *rank)
{
    const struct job *job = evidence->job;
    *rank = -1;
    if (message->kind == EVIDENCE_FILE_RAS)
        return mem_printf("ras_%d.json", node->index);
    if (message->kind != EVIDENCE_FILE_FLIGHT || message->seat >= (uint32_t)job->ranks.size)
        return NULL;
    *rank = job_seat_rank(job, (int)message->seat);
    return *rank < 0 ? NULL : mem_printf("flight_recorder/rank_%d", *rank);
}

static void take_file(struct evidence *evidence, const struct node_link *node,
                      const Hvdrun__EvidenceFile *message)
{
    struct evidence_file file = {.node = node->index};
    size_t length = message->data.len;
    bool nothing = length == 0 && message->missing[0] == '\0';
    char *name AUTO_FREE = nothing ? NULL : file_name(evidence, node, message, &file.rank);
    if (name == NULL)
        return;
    if (length == 0)
        file.missing = mem_strdup(message->missing);
    else if (length > EVIDENCE_FILE_MAX || length > EVIDENCE_DUMPS_MAX - evidence->file_bytes)
        file.missing = mem_strdup("the files of this failure are too large together");
    else
        file.name = mem_strdup(name);
    if (file.name != NULL && evidence->path != NULL) {
        evidence->file_bytes += length;
        write_file(evidence, evidence->path, name, (const char *)message->data.data, length);
    }
    evidence->files =
        mem_resize_array(evidence->files, evidence->file_count + 1, sizeof(*evidence->files));
    evidence->files[evidence->file_count++] = file;
}

int evidence_folder_file(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct evidence *evidence = job->evidence;
    Hvdrun__EvidenceFile *message = hvdrun__evidence_file__unpack(NULL, frame->length, frame->body);
    if (message == NULL)
        return -1;
    bool wanted = evidence != NULL && evidence->collects && message->round == evidence->round &&
                  node->index < evidence->answer_count && evidence->to_come[node->index] > 0;
    if (wanted) {
        take_file(evidence, node, message);
        evidence->to_come[node->index]--;
        finish_if_complete(evidence);
    }
    hvdrun__evidence_file__free_unpacked(message, NULL);
    return 0;
}
