/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which libraries the ranks have loaded. The driver asks a while after the start of an epoch, and
 * when something has gone wrong. It warns once for each kind of library that differs.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/plain.h"
#include "driver/job/ask.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/tell/json_text.h"
#include "features/libraries/libraries.h"
#include "model/plan/rank_list.h"
#include "wire/control.pb-c.h"

#define FILES_MAX 512
#define ID_LENGTH_MAX 160
#define PAUSED_MS 1000
#define LIMIT_MS 3000
#define TEXT_MAX ((size_t)4096)

/* After START. A rank loads most libraries when it begins, and NCCL's at its first operation. */
static const int64_t look_at_ms[] = {2000, 20000, 200000};
#define LOOKS (sizeof(look_at_ms) / sizeof(look_at_ms[0]))

struct seat_libraries { /* of the worker that has, or had, the seat */
    pid_t worker;
    int *files; /* indices */
    size_t count;
    bool missing; /* the last look did not come to it */
};

struct libraries {
    struct job *job;
    struct library_file *files; /* what any rank has loaded */
    int file_count;
    struct seat_libraries *seats;
    int seat_count;
    struct loop_timer *timer;
    size_t looks; /* since the last START */
    bool told[LIBRARY_KINDS][2];
};

/* -1: there are too many. */
static int find_file(struct libraries *libraries, const Hvdrun__Library *message)
{
    char *path AUTO_FREE = mem_strdup(message->path);
    plain_text(path);
    for (int i = 0; i < libraries->file_count; i++) {
        const struct library_file *known = &libraries->files[i];
        if (known->kind == (enum library_kind)message->kind && known->machine == message->machine &&
            known->deleted == message->deleted && strcmp(known->id, message->id) == 0 &&
            strcmp(known->path, path) == 0)
            return i;
    }
    if (libraries->file_count == FILES_MAX)
        return -1;
    struct library_file *file = &MEM_ADD(libraries->files, libraries->file_count);
    *file = (struct library_file){.kind = (enum library_kind)message->kind,
                                  .machine = message->machine,
                                  .path = path,
                                  .id = mem_strdup(message->id),
                                  .deleted = message->deleted};
    path = NULL;
    plain_text(file->id);
    return libraries->file_count - 1;
}

static void take_rank(struct libraries *libraries, const Hvdrun__RankLibraries *message)
{
    struct seat_libraries *seat = &libraries->seats[message->seat];
    seat->missing = message->missing;
    if (message->n_libraries == 0)
        return; /* what is known stays: it may be about to end */
    free(seat->files);
    *seat = (struct seat_libraries){.worker = (pid_t)message->worker,
                                    .files = mem_array(message->n_libraries, sizeof(*seat->files)),
                                    .missing = message->missing};
    for (size_t i = 0; i < message->n_libraries; i++) {
        int file = find_file(libraries, message->libraries[i]);
        if (file >= 0)
            seat->files[seat->count++] = file;
    }
}

static bool is_right(const Hvdrun__RankLibraries *rank)
{
    for (size_t i = 0; i < rank->n_libraries; i++) {
        const Hvdrun__Library *file = rank->libraries[i];
        if (file->kind >= LIBRARY_KINDS || strlen(file->path) > LOADED_PATH_MAX ||
            strlen(file->id) > ID_LENGTH_MAX)
            return false;
    }
    return rank->n_libraries <= LOADED_MAX;
}

static int take(struct job *job, struct node_link *node, ProtobufCMessage **answer)
{
    struct libraries *libraries = job_part(job, libraries);
    const Hvdrun__Libraries *message = (const Hvdrun__Libraries *)*answer;
    for (size_t i = 0; i < message->n_ranks; i++) {
        const Hvdrun__RankLibraries *rank = message->ranks[i];
        if (!is_right(rank))
            return -1;
        if (rank->seat < (uint32_t)libraries->seat_count && job_seat_is_on(job, node, rank->seat))
            take_rank(libraries, rank);
    }
    return 0;
}

static int by_rank(const void *one, const void *other)
{
    const struct library_rank *a = one, *b = other;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Those that something is known of, in the order of their ranks. The caller frees them. */
static struct library_rank *ranks_of(const struct libraries *libraries, size_t *count)
{
    const struct job *job = libraries->job;
    struct library_rank *ranks = mem_array((size_t)libraries->seat_count + 1, sizeof(*ranks));
    *count = 0;
    for (int i = 0; i < libraries->seat_count && i < job->ranks.size; i++) {
        const struct seat_libraries *seat = &libraries->seats[i];
        const struct rank_record *record = &job->ranks.records[i];
        bool same = seat->worker != 0 && seat->worker == record->pid && record->rank >= 0;
        if (same && seat->count > 0)
            ranks[(*count)++] =
                (struct library_rank){record->rank, record->app, seat->files, seat->count};
    }
    if (*count > 1)
        qsort(ranks, *count, sizeof(*ranks), by_rank);
    return ranks;
}

static void warn(void *context, enum library_kind kind, bool same_process, const char *text)
{
    struct libraries *libraries = context;
    bool *told = &libraries->told[kind][same_process];
    if (!*told)
        log_warning(&libraries->job->log, "%s; the report shows all (--report)", text);
    *told = true;
}

static void compare(struct libraries *libraries)
{
    size_t count = 0;
    struct library_rank *ranks AUTO_FREE = ranks_of(libraries, &count);
    libraries_differ(libraries->files, ranks, count, warn, libraries);
}

/* Those that ran at the last look, which did not come to them. The caller frees it. */
static int *missing_ranks(const struct libraries *libraries, int *count)
{
    const struct rank_table *table = &libraries->job->ranks;
    int *ranks = mem_array((size_t)libraries->seat_count + 1, sizeof(*ranks));
    *count = 0;
    for (int i = 0; i < libraries->seat_count && i < table->size; i++) {
        if (libraries->seats[i].missing && table->records[i].rank >= 0)
            ranks[(*count)++] = table->records[i].rank;
    }
    return ranks;
}

static void answered(void *context, const struct ask *ask)
{
    struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX);
    int count = 0, *missing AUTO_FREE = missing_ranks(context, &count);
    rank_ranges(missing, count, &text);
    log_info(&ask->job->log, "the look at the libraries of the ranks %s%s",
             count > 0 ? "left out " : "is complete", count > 0 ? buf_text(&text) : "");
    compare(context);
}

/* Whoever does not answer is missing. */
static void ask_anew(struct libraries *libraries)
{
    static const struct question question = {&topic_libraries, take, .keep = false};
    const struct rank_table *table = &libraries->job->ranks;
    if (libraries->seat_count < table->size) {
        libraries->seats =
            mem_resize_array(libraries->seats, (size_t)table->size, sizeof(*libraries->seats));
        for (int i = libraries->seat_count; i < table->size; i++)
            libraries->seats[i] = (struct seat_libraries){.worker = 0};
        libraries->seat_count = table->size;
    }
    for (int i = 0; i < table->size && !ask_is_open(libraries->job, &topic_libraries); i++)
        libraries->seats[i].missing = table->records[i].state == RANK_RUNNING;
    ask_all(libraries->job, &question, NULL, LIMIT_MS, answered, libraries);
}

static void look(void *context)
{
    struct libraries *libraries = context;
    struct job *job = libraries->job;
    if (job->state != JOB_RUNNING)
        return;
    if (job->times.paused_ms != 0) {
        loop_timer_set(libraries->timer, PAUSED_MS);
        return;
    }
    int64_t now_ms = look_at_ms[libraries->looks++];
    if (libraries->looks < LOOKS)
        loop_timer_set(libraries->timer, look_at_ms[libraries->looks] - now_ms);
    ask_anew(libraries);
}

static void begin(const struct job *job, Hvdrun__Start *message)
{
    struct libraries *libraries = job_part(job, libraries);
    (void)message;
    if (libraries == NULL)
        return;
    libraries->looks = 0;
    loop_timer_set(libraries->timer, look_at_ms[0]);
}

/* An agent looks before it takes the next order, which may be to end the ranks. So nobody has to
 * wait. */
static void see_incident(struct job *job, const struct incident *incident)
{
    (void)incident;
    if (job_part(job, libraries) != NULL)
        ask_anew(job_part(job, libraries));
}

static void over(struct job *job)
{
    if (job_part(job, libraries) != NULL)
        compare(job_part(job, libraries));
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    if (!job->kind->has_workers)
        return 0;
    struct libraries *libraries = MEM_NEW((struct libraries){.job = job});
    libraries->timer = loop_timer_create(job->loop, look, libraries);
    job->own[PART_libraries] = libraries;
    return 0;
}

static void close_part(struct job *job)
{
    struct libraries *libraries = job_part(job, libraries);
    ask_forget(job, libraries);
    loop_timer_destroy(libraries->timer);
    for (int i = 0; i < libraries->file_count; i++) {
        free(libraries->files[i].path);
        free(libraries->files[i].id);
    }
    for (int i = 0; i < libraries->seat_count; i++)
        free(libraries->seats[i].files);
    free(libraries->files);
    free(libraries->seats);
    free(libraries);
}

static json_t *file_json(const struct library_file *file, int number,
                         const struct library_rank *ranks, size_t count)
{
    json_t *list = json_array();
    const char *version = library_version(file->path);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < ranks[i].count; j++) {
            if (ranks[i].files[j] == number)
                json_array_append_new(list, json_integer(ranks[i].rank));
        }
    }
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:b, s:o}", "kind", library_words[file->kind].key,
                     "title", library_words[file->kind].title, "version",
                     version[0] != '\0' ? json_text(version) : json_null(), "build_id",
                     file->id[0] != '\0' ? json_text(file->id) : json_null(), "path",
                     json_text(file->path), "deleted", (int)file->deleted, "ranks", list);
}

static void add_difference(void *context, enum library_kind kind, bool same_process,
                           const char *text)
{
    (void)kind, (void)same_process;
    json_array_append_new(context, json_text(text));
}

/* {"files": [{"kind", "title", "version", "build_id", "path", "deleted", "ranks": [N]}],
 * "differences": [LINE], "missing": [N]}: what was seen last of each rank, also of those that have
 * ended, and the ranks that the last look left out. A version or build id that is not known is
 * null. */
static void report(const struct job *job, json_t *root)
{
    const struct libraries *libraries = job_part(job, libraries);
    if (libraries == NULL)
        return;
    size_t count = 0;
    int missing_count = 0, *missing AUTO_FREE = missing_ranks(libraries, &missing_count);
    struct library_rank *ranks AUTO_FREE = ranks_of(libraries, &count);
    if (count == 0 && missing_count == 0)
        return;
    json_t *files = json_array(), *differences = json_array(), *left_out = json_array();
    for (int kind = 0; kind < LIBRARY_KINDS; kind++) {
        for (int i = 0; i < libraries->file_count; i++) {
            json_t *file = (int)libraries->files[i].kind == kind
                               ? file_json(&libraries->files[i], i, ranks, count)
                               : NULL;
            if (json_array_size(json_object_get(file, "ranks")) > 0)
                json_array_append(files, file);
            json_decref(file);
        }
    }
    libraries_differ(libraries->files, ranks, count, add_difference, differences);
    for (int i = 0; i < missing_count; i++)
        json_array_append_new(left_out, json_integer(missing[i]));
    json_object_set_new(root, "libraries",
                        json_pack("{s:o, s:o, s:o}", "files", files, "differences", differences,
                                  "missing", left_out));
}

const struct driver_part libraries_part = {.name = "libraries",
                                           .open = open_part,
                                           .close = close_part,
                                           .start = begin,
                                           .incident = see_incident,
                                           .over = over,
                                           .report = report};
