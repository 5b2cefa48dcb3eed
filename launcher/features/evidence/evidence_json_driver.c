/* SPDX-License-Identifier: Apache-2.0 */
#include "features/evidence/evidence_json_driver.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strv.h"
#include "base/text.h"
#include "driver/job/job_kind.h"
#include "driver/tell/json_text.h"
#include "driver/tell/recent.h"
#include "driver/tell/tell.h"
#include "model/env/rank_variables.h"
#include "model/exit/tail.h"
#include "model/usage/gpu_words.h"
#include "wire/control.pb-c.h"

void evidence_answers_clear(struct evidence_answers *answers)
{
    for (int i = 0; i < answers->host_count; i++) {
        struct evidence_host *host = &answers->hosts[i];
        if (host->answer != NULL)
            hvdrun__evidence__free_unpacked(host->answer, NULL);
        if (host->gpus != NULL)
            hvdrun__gpu_healths__free_unpacked(host->gpus, NULL);
        free(host->gpus_missing);
    }
    for (size_t i = 0; i < answers->file_count; i++) {
        free(answers->files[i].name);
        free(answers->files[i].missing);
    }
    free(answers->hosts);
    free(answers->files);
    *answers = (struct evidence_answers){.host_count = 0};
}

/* The GPUs of a host after a failure, as JSON. What is not known has no key. */

#define UNKNOWN UINT64_MAX /* a count of errors */

static json_t *reasons_json(uint64_t bits)
{
    json_t *list = json_array();
    for (int i = 0; clock_reason_name(i) != NULL; i++) {
        if (bits & clock_reason_bit(i))
            json_array_append_new(list, json_string(clock_reason_name(i)));
    }
    return list;
}

static void set_count(json_t *object, const char *key, uint64_t count)
{
    if (count != UNKNOWN)
        json_object_set_new(object, key,
                            json_integer(count > INT64_MAX ? INT64_MAX : (json_int_t)count));
}

static json_t *counts_json(const uint64_t *counts)
{
    json_t *object = json_object();
    set_count(object, "volatile", counts[0]);
    set_count(object, "aggregate", counts[1]);
    return object;
}

static json_t *ecc_json(const uint64_t *counts)
{
    json_t *object = json_object();
    json_object_set_new(object, "corrected", counts_json(counts));
    json_object_set_new(object, "uncorrected", counts_json(counts + 2));
    return object;
}

static json_t *rows_json(const Hvdrun__GpuHealth *gpu)
{
    json_t *object = json_object();
    json_object_set_new(object, "corrected", json_integer(gpu->remapped_rows[0]));
    json_object_set_new(object, "uncorrected", json_integer(gpu->remapped_rows[1]));
    json_object_set_new(object, "pending", json_boolean(gpu->remapping_pending));
    json_object_set_new(object, "failed", json_boolean(gpu->remapping_failed));
    return object;
}

static json_t *gpu_json(const Hvdrun__GpuHealth *gpu)
{
    json_t *object = json_object();
    const char *trouble = gpu_trouble_text((int)gpu->trouble);
    json_object_set_new(object, "index", json_integer(gpu->index));
    if (gpu->uuid[0] != '\0')
        json_object_set_new(object, "uuid", json_text(gpu->uuid));
    if (gpu->pci[0] != '\0')
        json_object_set_new(object, "pci", json_text(gpu->pci));
    if (trouble != NULL)
        json_object_set_new(object, "trouble", json_string(trouble));
    if (gpu->has_temperature)
        json_object_set_new(object, "temperature_celsius", json_integer(gpu->celsius));
    if (gpu->has_reasons)
        json_object_set_new(object, "clock_reasons", reasons_json(gpu->reasons));
    if (gpu->n_ecc_errors == 4)
        json_object_set_new(object, "ecc_errors", ecc_json(gpu->ecc_errors));
    if (gpu->n_remapped_rows == 2)
        json_object_set_new(object, "remapped_rows", rows_json(gpu));
    return object;
}

/* An array. The caller owns it. */
static json_t *gpu_health_json(const Hvdrun__GpuHealths *message)
{
    json_t *list = json_array();
    for (size_t i = 0; i < message->n_gpus; i++)
        json_array_append_new(list, gpu_json(message->gpus[i]));
    return list;
}

#define VERSION 1

static const char *const kinds[] = {
    [INCIDENT_FAILURE] = "failure", [INCIDENT_HANG] = "hang", [INCIDENT_TIMEOUT] = "timeout"};

static json_t *rank_json(const struct job *job, int seat)
{
    const struct rank_record *record = &job->ranks.records[seat];
    json_t *object = json_object();
    json_object_set_new(object, "rank", json_integer(job_seat_rank(job, seat)));
    json_object_set_new(object, "host", json_text(job_seat_host(job, seat)));
    json_object_set_new(object, "pid", json_integer(record->pid));
    json_object_set_new(object, "state", json_string(rank_state_name(record->state)));
    if (record->state >= RANK_EXITED) {
        json_object_set_new(object, record->signaled ? "signal" : "exit_code",
                            json_integer(record->code));
        json_object_set_new(object, "ended", json_wall_time(job, record->ended_ns));
        json_object_set_new(object, "by_hvdrun", json_boolean(record->ended_by_us));
        json_object_set_new(object, "out_of_memory", json_boolean(record->oom));
        json_object_set_new(object, "core_dumped", json_boolean(record->core));
        if (rank_end_requester(record) != NULL)
            json_object_set_new(object, "signal_by", json_text(rank_end_requester(record)));
    }
    json_object_set_new(object, "last_output", json_wall_time(job, record->output_ns));
    return object;
}

static json_t *ranks_json(const struct job *job)
{
    json_t *list = json_array();
    for (int seat = 0; seat < job->ranks.size; seat++) {
        if (job->ranks.records[seat].epoch != 0 && json_array_size(list) < EVIDENCE_RANKS_MAX)
            json_array_append_new(list, rank_json(job, seat));
    }
    return list;
}

static void add_gpus(json_t *object, const struct evidence_host *host)
{
    if (host->gpus != NULL && host->gpus->n_gpus > 0)
        json_object_set_new(object, "gpus", gpu_health_json(host->gpus));
    if (host->gpus_missing != NULL)
        json_object_set_new(object, "gpus_missing", json_text(host->gpus_missing));
}

/* The end of a text, from the beginning of a line on, if there is no room for all of it. */
static json_t *text_within(const char *text, size_t *room)
{
    size_t length = strlen(text);
    if (length > *room) {
        const char *line = strchr(text + length - *room, '\n');
        text = line == NULL ? "" : line + 1;
        length = strlen(text);
    }
    *room -= length;
    return json_text(text);
}

static json_t *hosts_json(const struct job *job, const struct evidence_facts *facts)
{
    json_t *list = json_array();
    for (int i = 0; i < job->node_count; i++) {
        const struct node_link *node = job->nodes[i];
        size_t room = EVIDENCE_HOSTS_BYTES / (size_t)job->node_count;
        const struct evidence_host none = {.answer = NULL};
        const struct evidence_host *host =
            i < facts->answers->host_count ? &facts->answers->hosts[i] : &none;
        const Hvdrun__Evidence *answer = host->answer;
        json_t *object = json_object();
        json_object_set_new(object, "host", json_text(node->host));
        json_object_set_new(object, "state", json_string(node_state_name(node->state)));
        json_object_set_new(object, "answered", json_boolean(answer != NULL));
        for (size_t j = 0; answer != NULL && j < answer->n_items; j++)
            json_object_set_new(object, answer->items[j]->name,
                                text_within(answer->items[j]->text, &room));
        add_gpus(object, host);
        for (size_t j = 0; j < facts->answers->file_count; j++) {
            const struct evidence_file *file = &facts->answers->files[j];
            if (file->rank < 0 && file->node == i && file->name != NULL)
                json_object_set_new(object, "ras", json_text(file->name));
        }
        json_array_append_new(list, object);
    }
    return list;
}

/* What PyTorch's flight recorder has written for each rank. */
static json_t *flights_json(const struct job *job, const struct evidence_facts *facts)
{
    json_t *list = json_array();
    for (size_t i = 0; i < facts->answers->file_count; i++) {
        const struct evidence_file *file = &facts->answers->files[i];
        if (file->rank < 0)
            continue;
        json_t *object = json_object();
        json_object_set_new(object, "rank", json_integer(file->rank));
        json_object_set_new(object, "host", json_text(job->nodes[file->node]->host));
        json_object_set_new(object, file->name != NULL ? "file" : "missing",
                            json_text(file->name != NULL ? file->name : file->missing));
        json_array_append_new(list, object);
    }
    return list;
}

struct differences {
    json_t *root;
    size_t room;
};

static void add_value(void *context, const char *name, const char *host, const char *value)
{
    struct differences *differences = context;
    json_t *values = json_object_get(differences->root, name);
    size_t cost = strlen(host) + (value != NULL ? strlen(value) : 0);
    cost += values == NULL ? strlen(name) : 0;
    if (cost > differences->room) {
        differences->room = 0; /* so the next ones are no puzzle */
        return;
    }
    differences->room -= cost;
    if (values == NULL) {
        json_object_set_new(differences->root, name, json_object());
        values = json_object_get(differences->root, name);
    }
    json_object_set_new(values, host, value != NULL ? json_text(value) : json_null());
}

static json_t *environment_json(const struct job *job, const struct evidence_facts *facts)
{
    size_t count = 0;
    struct differences differences = {json_object(), EVIDENCE_ENVIRONMENT_BYTES};
    struct env_of_host *hosts AUTO_FREE = mem_array((size_t)job->node_count + 1, sizeof(*hosts));
    struct strv *envs AUTO_FREE = mem_array((size_t)job->node_count + 1, sizeof(*envs));
    for (int i = 0; i < job->node_count && i < facts->answers->host_count; i++) {
        const Hvdrun__Evidence *answer = facts->answers->hosts[i].answer;
        if (answer == NULL || answer->n_environment == 0)
            continue;
        envs[count] = (struct strv){.items = answer->environment, .count = answer->n_environment};
        hosts[count] = (struct env_of_host){job->nodes[i]->host, &envs[count]};
        count++;
    }
    if (count > 1)
        env_differ(hosts, count, add_value, &differences);
    return differences.root;
}

/* The caller frees it. */
static char *dump_take(json_t *root)
{
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(16));
    json_decref(root);
    char *whole = mem_printf("%s\n", text == NULL ? "{}" : text);
    free(text);
    return whole;
}

char *evidence_json_report(const struct job *job)
{
    json_t *root = report_object(job, true);
    json_object_del(json_object_get(root, "job"), "argv");
    return dump_take(root);
}

char *evidence_json_facts(const struct job *job, const struct evidence_facts *facts)
{
    json_t *root = json_object();
    json_object_set_new(root, "version", json_integer(VERSION));
    json_object_set_new(root, "job", json_text(job->request->job_id));
    json_object_set_new(root, "time", json_real((double)(facts->when_ns / 1000) / 1e6));
    json_object_set_new(root, "kind", json_string(kinds[facts->kind]));
    json_object_set_new(root, "text", json_text(facts->text));
    json_object_set_new(root, "rank", facts->rank >= 0 ? json_integer(facts->rank) : json_null());
    json_object_set_new(root, "rank_by", facts->by_nccl ? json_string("nccl") : json_null());
    json_object_set_new(root, "epoch", json_integer(facts->epoch));
    json_object_set_new(root, "size", json_integer(job->plan->size));
    json_object_set_new(root, "ranks", ranks_json(job));
    json_object_set_new(root, "hosts", hosts_json(job, facts));
    json_object_set_new(root, "flight_recorder", flights_json(job, facts));
    json_object_set_new(root, "environment", environment_json(job, facts));
    return dump_take(root);
}

void evidence_json_record(const struct job *job, const struct strv *paths, json_t *end)
{
    json_t *list = json_array();
    for (size_t i = 0; i < paths->count; i++) {
        const char *path = paths->items[i];
        char *whole AUTO_FREE =
            path[0] == '/' ? mem_strdup(path) : mem_printf("%s/%s", job->request->wdir, path);
        json_array_append_new(list, json_text(whole));
    }
    if (paths->count > 0)
        json_object_set(end, "evidence", list);
    json_decref(list);
}

/* ---- lines.txt ------------------------------------------------------------------------------- */

#define INDENT "    "
#define ALL_BYTES (3 * RECENT_BYTES) /* of the last output of all, with names of ranks */
#define SECTION_BYTES ((size_t)64 << 10)

/* Each line of a piece after these words. */
static void put_lines(struct buf *out, const struct recent_piece *piece, const char *before)
{
    const char *at = piece->text, *end = at + piece->length, *text;
    size_t length;
    while (text_next_line(&at, end, &text, &length)) {
        buf_puts(out, before);
        buf_append(out, text, length);
        buf_putc(out, '\n');
    }
}

/* The end of a section, from the beginning of a line on. */
static void put_section(const char *stream, int rank, const char *host, const struct buf *section,
                        size_t room, struct buf *out)
{
    const char *text = buf_text(section);
    size_t from = section->length > room ? section->length - room : 0;
    const char *line = from > 0 ? strchr(text + from - 1, '\n') : text - 1;
    if (section->length == 0 || line == NULL)
        return;
    buf_printf(out, "last lines of %s, rank %d on %s:\n", stream, rank, host);
    buf_puts(out, line + 1);
}

static void put_stderr(const struct job *job, int seat, size_t room, struct buf *out)
{
    struct buf section AUTO_BUF = BUF_INIT(SECTION_BYTES);
    struct tail_walk walk;
    struct tail_line line;
    tail_walk_begin(&walk, &job->ranks.records[seat].tail);
    while (tail_walk_next(&walk, &line)) {
        if (line.elsewhere)
            continue;
        buf_puts(&section, INDENT);
        buf_append(&section, line.text, line.length);
        buf_putc(&section, '\n');
    }
    tail_walk_end(&walk);
    put_section("stderr", job_seat_rank(job, seat), job_seat_host(job, seat), &section, room, out);
}

struct line_choice {
    bool is_stderr;
    struct buf *out;
};

static void put_if_wanted(void *context, const struct recent_piece *piece)
{
    const struct line_choice *choice = context;
    if (piece->is_stderr == choice->is_stderr)
        put_lines(choice->out, piece, INDENT);
}

/* What the rank has printed, whichever worker it was. */
static void put_printed(const struct job *job, int seat, bool is_stderr, size_t room,
                        struct buf *out)
{
    int rank = job_seat_rank(job, seat);
    const struct recent *lines = rank < 0 ? NULL : rank_tails_of(job_part(job, rank_tails), rank);
    struct buf section AUTO_BUF = BUF_INIT(SECTION_BYTES);
    struct line_choice choice = {is_stderr, &section};
    if (lines != NULL)
        recent_walk(lines, put_if_wanted, &choice);
    put_section(is_stderr ? "stderr" : "stdout", rank, job_seat_host(job, seat), &section, room,
                out);
}

static void put_piece(void *context, const struct recent_piece *piece)
{
    char name[32] = "";
    if (piece->rank >= 0)
        snprintf(name, sizeof(name), "[%d]<%s>:", piece->rank,
                 piece->is_stderr ? "stderr" : "stdout");
    put_lines(context, piece, name);
}

/* By rank: the seat of its newest worker, -1 for none. A rank can have had several workers. The
 * caller frees it. */
static int *newest_seats(const struct job *job)
{
    int *seats = mem_array((size_t)job->ranks.size + 1, sizeof(*seats));
    for (int rank = 0; rank < job->ranks.size; rank++)
        seats[rank] = -1;
    for (int seat = 0; seat < job->ranks.size; seat++) {
        const struct rank_record *records = job->ranks.records;
        int rank = job_seat_rank(job, seat);
        if (rank < 0 || rank >= job->ranks.size)
            continue;
        if (seats[rank] < 0 || records[seats[rank]].epoch < records[seat].epoch)
            seats[rank] = seat;
    }
    return seats;
}

/* In a job of many epochs, the next worker may be there already: then what the rank printed tells
 * of both. */
void evidence_lines(const struct job *job, struct buf *out)
{
    size_t count = job->ranks.size > 0 ? (size_t)job->ranks.size : 1;
    size_t room = out->limit > ALL_BYTES ? (out->limit - ALL_BYTES) / (2 * count) : 0;
    int *seats AUTO_FREE = newest_seats(job);
    for (int rank = 0; rank < job->ranks.size; rank++) {
        if (seats[rank] >= 0 && job->kind->many_epochs)
            put_printed(job, seats[rank], true, room, out);
        else if (seats[rank] >= 0)
            put_stderr(job, seats[rank], room, out);
    }
    for (int rank = 0; rank < job->ranks.size; rank++) {
        if (seats[rank] >= 0)
            put_printed(job, seats[rank], false, room, out);
    }
    buf_puts(out, "last lines of all:\n");
    recent_walk(job_part(job, recent), put_piece, out);
}
