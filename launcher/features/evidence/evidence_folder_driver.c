/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evidence of a failure, while there still is some: two looks at all ranks, the last lines of each,
 * and what each host knows. It goes into a folder of its own:
 *
 *   facts.json    what happened, the ranks, the hosts, variables that differ between hosts
 *   stacks.txt    the two looks
 *   lines.txt     the last lines of the ranks
 *   flight_recorder/rank_N   the dump of PyTorch's flight recorder of a rank
 *   ras_N.json    what NCCL says on the Nth host
 *   report.json   the report of the whole job, once it has ended
 *
 * The folder is below --evidence. Without this option there is one after a hang and with
 * --dump-on-failure, beside the records of jobs. The output room writes the files, so a slow or
 * full disk does not hold the job up.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/control/folder.h"
#include "driver/job/ask.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/tell/recent.h"
#include "features/evidence/evidence_json_driver.h"
#include "features/evidence/host_evidence.h"
#include "features/stacks/look_driver.h"

#define EVIDENCE_FOLDERS_MAX 8  /* of a job */
#define EVIDENCE_PAUSE_MS 1000  /* between the two looks */
#define EVIDENCE_DUMPS_MS 12000 /* for these files, after the looks */
#define EVIDENCE_FILE_MAX ((size_t)4 << 20)
#define EVIDENCE_DUMPS_MAX ((size_t)256 << 20) /* of the files of all hosts together */
/* Two looks and the pause between them come first, and the files may take longer. */
#define LIMIT_MS (2 * LOOK_WAIT_MS + EVIDENCE_PAUSE_MS + EVIDENCE_DUMPS_MS)

const char evidence_feature[] = "--evidence, --dump-on-failure, and hvdrun explain";

struct pending { /* an incident until the first look at the ranks */
    struct job *job;
    struct incident incident;
    char *text;
    void (*done)(void *context);
    void *context;
};

struct evidence {
    struct job *job;
    struct pending pending[INCIDENT_KINDS];
    struct strv paths, incomplete; /* folders: all of them, and those that lack a file */
    size_t told;                   /* how many of them the user knows */
    bool full;                     /* the user knows that there are no more */
    struct loop_timer *pause, *wait;

    /* Of the collection that is under way */
    bool collects;
    struct evidence_facts facts;
    char *text;
    struct buf stacks;
    struct evidence_answers answers;
    char *path;              /* NULL: there is no place */
    bool looked, hosts_done; /* no look is to come; no answer of a host is */
    bool once;
    void (*done)(void *context);
    void *context;
};

/* Before the job starts: is a folder to be expected, for which agents keep more? One that a rank of
 * MPI has left can get a folder without that. */
static bool may_come(const struct settings *settings)
{
    bool by_hang = settings->hang_timeout > 0 || settings->expect.count > 0;
    return settings->evidence != NULL || settings->dump_on_failure ||
           (by_hang && settings->on_hang != SET_ON_HANG_WARN);
}

static void prepare(const struct job *job, Hvdrun__Prepare *message)
{
    message->evidence = may_come(job->settings);
}

static void pause_over(void *context);
static void finish(void *context);

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    if (!job->kind->has_workers)
        return 0;
    struct evidence *evidence = MEM_NEW((struct evidence){.job = job});
    for (int i = 0; i < INCIDENT_KINDS; i++)
        evidence->pending[i].job = job;
    evidence->pause = loop_timer_create(job->loop, pause_over, evidence);
    evidence->wait = loop_timer_create(job->loop, finish, evidence);
    job->own[PART_evidence] = evidence;
    if (may_come(job->settings))
        rank_tails_want(job);
    return 0;
}

static void clear(struct evidence *evidence)
{
    evidence->collects = false;
    loop_timer_clear(evidence->pause);
    loop_timer_clear(evidence->wait);
    ask_forget(evidence->job, evidence);
    evidence_answers_clear(&evidence->answers);
    free(evidence->path);
    evidence->path = NULL;
    evidence->looked = evidence->hosts_done = false;
    buf_destroy(&evidence->stacks);
    free(evidence->text);
    evidence->text = NULL;
}

static void close_part(struct job *job)
{
    struct evidence *evidence = job_part(job, evidence);
    clear(evidence);
    for (int i = 0; i < INCIDENT_KINDS; i++) {
        ask_forget(job, &evidence->pending[i]);
        free(evidence->pending[i].text);
    }
    loop_timer_destroy(evidence->pause);
    loop_timer_destroy(evidence->wait);
    strv_destroy(&evidence->paths);
    strv_destroy(&evidence->incomplete);
    free(evidence);
}

static bool wants(const struct job *job, enum incident_kind kind)
{
    const struct settings *settings = job->settings;
    if (job_part(job, evidence) == NULL)
        return false;
    return settings->evidence != NULL || kind == INCIDENT_HANG ||
           (kind == INCIDENT_FAILURE && settings->dump_on_failure);
}

/* "DIR/JOB.20261123-013400", and "-2" behind it if another failure was in the same second. */
static char *new_path(const struct evidence *evidence)
{
    const struct settings *settings = evidence->job->settings;
    time_t seconds = (time_t)(clock_wall_ns() / 1000000000);
    struct tm when;
    char stamp[32] = "";
    char *folder AUTO_FREE =
        settings->evidence != NULL ? mem_strdup(settings->evidence) : job_folder_made();
    if (folder == NULL)
        return NULL;
    gmtime_r(&seconds, &when);
    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &when);
    char *path = NULL, number[16] = "";
    for (int i = 2; path == NULL || strv_has(&evidence->paths, path); i++) {
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
    if (strv_has(&evidence->incomplete, folder))
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
    if (!strv_has(&evidence->incomplete, folder))
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
    evidence->facts.answers = &evidence->answers;
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

/* Hosts that have not begun to answer are not waited for: the looks have been long enough. */
static void finish_if_complete(struct evidence *evidence)
{
    bool complete = evidence->hosts_done || !ask_has_begun(evidence->job, &topic_evidence);
    if (evidence->looked && complete)
        finish(evidence);
}

static void looks_are_over(struct evidence *evidence)
{
    evidence->looked = true;
    loop_timer_set(evidence->wait, EVIDENCE_DUMPS_MS);
    finish_if_complete(evidence);
}

static void add_look(struct evidence *evidence, const char *title, const struct ask *look)
{
    buf_puts(&evidence->stacks, title);
    look_text(look, &evidence->stacks);
}

static void second_look(void *context, const struct ask *look)
{
    add_look(context, "\nA second later:\n\n", look);
    looks_are_over(context);
}

static void pause_over(void *context)
{
    struct evidence *evidence = context;
    look_ask(evidence->job, LOOK_PYTHON, second_look, evidence);
}

static void first_look(void *context, const struct ask *look)
{
    struct evidence *evidence = context;
    add_look(evidence, "", look);
    if (evidence->once)
        looks_are_over(evidence);
    else
        loop_timer_set(evidence->pause, EVIDENCE_PAUSE_MS);
}

static void hosts_answered(void *context, const struct ask *ask)
{
    struct evidence *evidence = context;
    (void)ask;
    evidence->hosts_done = true;
    finish_if_complete(evidence);
}

static void take_gpus(struct evidence_host *host, const Hvdrun__EvidenceFile *message)
{
    if (host->gpus == NULL)
        host->gpus = hvdrun__gpu_healths__unpack(NULL, message->data.len, message->data.data);
    bool expected = host->gpus != NULL && host->gpus->library;
    if (expected && host->gpus_missing == NULL && message->missing[0] != '\0')
        host->gpus_missing = mem_strdup(message->missing);
}

/* Its place in the folder; NULL: it is about no worker of that node. */
static char *file_name(const struct job *job, const struct node_link *node,
                       const Hvdrun__EvidenceFile *message, int *rank)
{
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
    struct evidence_answers *answers = &evidence->answers;
    struct evidence_file file = {.node = node->index};
    size_t length = message->data.len;
    bool nothing = length == 0 && message->missing[0] == '\0';
    char *name AUTO_FREE = nothing ? NULL : file_name(evidence->job, node, message, &file.rank);
    if (name == NULL)
        return;
    if (length == 0)
        file.missing = mem_strdup(message->missing);
    else if (length > EVIDENCE_FILE_MAX || length > EVIDENCE_DUMPS_MAX - answers->file_bytes)
        file.missing = mem_strdup("the files of this failure are too large in total");
    else
        file.name = mem_strdup(name);
    answers->file_bytes += file.name != NULL ? length : 0;
    if (file.name != NULL && evidence->path != NULL)
        write_file(evidence, evidence->path, name, (const char *)message->data.data, length);
    MEM_ADD(answers->files, answers->file_count) = file;
}

/* Facts of a host, or a file. */
static int take(struct job *job, struct node_link *node, ProtobufCMessage **answer)
{
    struct evidence *evidence = job_part(job, evidence);
    struct evidence_host *host = &evidence->answers.hosts[node->index];
    Hvdrun__Evidence *message = (Hvdrun__Evidence *)*answer;
    if (message->file == NULL && host->answer == NULL) {
        host->answer = message;
        *answer = NULL;
    } else if (message->file != NULL && message->file->kind == EVIDENCE_FILE_GPUS) {
        take_gpus(host, message->file);
    } else if (message->file != NULL) {
        take_file(evidence, node, message->file);
    }
    finish_if_complete(evidence);
    return 0;
}

static void ask_hosts(struct evidence *evidence)
{
    static const struct question question = {&topic_evidence, take, .keep = false};
    struct job *job = evidence->job;
    Hvdrun__EvidenceRequest request = HVDRUN__EVIDENCE_REQUEST__INIT;
    request.file_bytes = EVIDENCE_DUMPS_MAX / (size_t)(job->node_count > 0 ? job->node_count : 1);
    evidence->answers.host_count = job->node_count;
    evidence->answers.hosts =
        mem_array((size_t)job->node_count + 1, sizeof(*evidence->answers.hosts));
    ask_all(job, &question, &request.base, LIMIT_MS, hosts_answered, evidence);
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

/* Begins, and calls `done` when the ranks are not needed any more: at once if nothing is wanted, a
 * collection is under way, or the job has EVIDENCE_FOLDERS_MAX folders. */
static void collect(struct job *job, const struct incident *incident, void (*done)(void *context),
                    void *context)
{
    struct evidence *evidence = job_part(job, evidence);
    bool wanted = wants(job, incident->kind);
    if (!wanted || evidence->collects || is_full(evidence)) {
        if (done != NULL)
            done(context);
        return;
    }
    evidence->collects = true;
    evidence->path = new_path(evidence);
    if (evidence->path != NULL)
        strv_add(&evidence->paths, evidence->path);
    evidence->text = mem_strdup(incident->text);
    evidence->facts = (struct evidence_facts){.kind = incident->kind,
                                              .text = evidence->text,
                                              .rank = incident->rank,
                                              .by_nccl = incident->by_nccl,
                                              .epoch = (int)job->epoch,
                                              .when_ns = clock_wall_ns()};
    evidence->stacks = (struct buf)BUF_INIT(EVIDENCE_FILE_MAX);
    evidence->once = incident->once;
    evidence->done = done;
    evidence->context = context;
    ask_hosts(evidence);
    if (incident->look != NULL)
        first_look(evidence, incident->look);
    else
        look_ask(job, LOOK_PYTHON, first_look, evidence);
}

static void show_look(void *context, const struct ask *look)
{
    (void)context;
    look_show(look);
}

/* Does the user want to see what the ranks do? */
static bool is_shown(const struct job *job, enum incident_kind kind)
{
    return (kind == INCIDENT_FAILURE && job->settings->dump_on_failure) ||
           (kind == INCIDENT_TIMEOUT && job->settings->stack_traces);
}

static void looked(void *context, const struct ask *look)
{
    struct pending *pending = context;
    struct job *job = pending->job;
    char *text AUTO_FREE = pending->text;
    struct incident incident = pending->incident;
    pending->text = NULL;
    /* No rank is left; what the hosts know is still worth keeping. */
    incident.once = incident.kind == INCIDENT_FAILURE && job->ranks.running == 0;
    if (is_shown(job, incident.kind))
        look_show(look);
    /* With one look, it is a new one: the hosts answer before it is over. */
    incident.look = incident.once ? NULL : look;
    collect(job, &incident, pending->done, pending->context);
}

/* Does an incident lead to a look? An agent looks at its workers before it takes the next order,
 * which may be to end them: so nobody has to wait if one look is enough. */
static bool take_incident(struct job *job, const struct incident *incident,
                          void (*done)(void *context), void *context)
{
    struct evidence *evidence = job_part(job, evidence);
    bool shown = is_shown(job, incident->kind);
    if (evidence == NULL || (!shown && !wants(job, incident->kind)))
        return false;
    struct pending *pending = &evidence->pending[incident->kind];
    if (incident->once || incident->look != NULL || pending->text != NULL) {
        if (shown)
            look_ask(job, LOOK_PYTHON, show_look, job);
        collect(job, incident, done, context);
        return true;
    }
    *pending = (struct pending){job, *incident, mem_strdup(incident->text), done, context};
    pending->incident.text = pending->text;
    look_ask(job, LOOK_PYTHON, looked, pending);
    return true;
}

/* Writes what has come, and the report. */
static void tell(struct job *job)
{
    struct evidence *evidence = job_part(job, evidence);
    if (evidence == NULL)
        return;
    evidence->done = NULL;
    if (evidence->collects)
        finish(evidence);
    if (evidence->paths.count == 0)
        return;
    char *report AUTO_FREE = evidence_json_report(job);
    size_t length = strlen(report);
    for (size_t i = 0; i < evidence->paths.count && length <= EVIDENCE_FILE_MAX; i++)
        write_file(evidence, evidence->paths.items[i], "report.json", report, length);
}

static void record(const struct job *job, struct json_t *end)
{
    if (job_part(job, evidence) != NULL)
        evidence_json_record(job, &job_part(job, evidence)->paths, end);
}

const struct driver_part evidence_part = {.name = "evidence",
                                          .open = open_part,
                                          .close = close_part,
                                          .prepare = prepare,
                                          .takes_incident = take_incident,
                                          .tell = tell,
                                          .record = record};
