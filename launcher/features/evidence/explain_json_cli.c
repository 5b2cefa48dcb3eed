/* SPDX-License-Identifier: Apache-2.0 */
#include "features/evidence/explain_json_cli.h"

#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "cli/control_show.h"
#include "features/evidence/evidence.h"
#include "model/plan/rank_list.h"
#include "model/usage/gpu_words.h"

/* The GPUs of a host, from facts.json. */

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static int64_t count_of(const json_t *object, const char *key, int64_t most)
{
    json_int_t number = json_integer_value(json_object_get(object, key));
    return number < 0 ? 0 : number > most ? most : number;
}

/* The last one says the most: a GPU that is too hot is also slowed down by its hardware. */
static const char *alarm_of(const json_t *reasons)
{
    const char *alarm = NULL;
    for (size_t i = 0; i < json_array_size(reasons); i++) {
        const char *name = json_string_value(json_array_get(reasons, i));
        if (name != NULL && clock_reason_is_alarm(name))
            alarm = name;
    }
    return alarm;
}

static struct explain_gpu gpu_of(const json_t *object)
{
    const json_t *rows = json_object_get(object, "remapped_rows"),
                 *ecc = json_object_get(json_object_get(object, "ecc_errors"), "uncorrected");
    return (struct explain_gpu){.index = (int)count_of(object, "index", 9999),
                                .pci = text_of(object, "pci"),
                                .trouble = text_of(object, "trouble"),
                                .slowed_by = alarm_of(json_object_get(object, "clock_reasons")),
                                .celsius = (int)count_of(object, "temperature_celsius", 9999),
                                .remapping_pending = json_is_true(json_object_get(rows, "pending")),
                                .remapping_failed = json_is_true(json_object_get(rows, "failed")),
                                .uncorrected = count_of(ecc, "volatile", INT64_MAX)};
}

#define HOSTS_SHOWN 4 /* of a variable */
#define TEXT_MAX ((size_t)2000)
#define RANKS_MAX ((size_t)1000000)
#define SAID_MAX ((size_t)16 << 10)
#define LINE_INDENT 4 /* in lines.txt */

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static int int_of(const json_t *object, const char *key, int otherwise)
{
    const json_t *value = json_object_get(object, key);
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : otherwise;
    return number >= INT_MIN && number <= INT_MAX ? (int)number : otherwise;
}

static struct explain_rank rank_of(const json_t *object)
{
    const char *role = control_text_of(object, "role", ""),
               *state = control_text_of(object, "state", "");
    bool signaled = json_is_integer(json_object_get(object, "signal"));
    bool coded = json_is_integer(json_object_get(object, "exit_code"));
    return (struct explain_rank){.rank = int_of(object, "rank", -1),
                                 .host = control_text_of(object, "host", "?"),
                                 .ended = (signaled || coded) && strcmp(state, "running") != 0,
                                 .signaled = signaled,
                                 .code = int_of(object, signaled ? "signal" : "exit_code", 0),
                                 .consequence = strcmp(role, "consequence") == 0 ||
                                                json_is_true(json_object_get(object, "by_hvdrun")),
                                 .oom = json_is_true(json_object_get(object, "out_of_memory")),
                                 .core = json_is_true(json_object_get(object, "core_dumped")),
                                 .silent = json_is_null(json_object_get(object, "last_output")),
                                 .pid = int_of(object, "pid", 0),
                                 .request = json_string_value(json_object_get(object, "signal_by")),
                                 .ended_s = number_of(object, "ended")};
}

/* In an elastic job, the report is about the last epoch, and the evidence about that of the
 * failure. */
static void take_ranks(struct explain_case *out)
{
    const json_t *last = json_object_get(out->report, "ranks"),
                 *then = json_object_get(out->evidence, "ranks");
    bool elastic = json_is_object(json_object_get(out->report, "elastic"));
    const json_t *list = json_array_size(last) == 0 || (elastic && then != NULL) ? then : last;
    size_t count = json_array_size(list);
    out->ranks = mem_array(count + 1, sizeof(*out->ranks));
    for (size_t i = 0; i < count; i++)
        out->ranks[i] = rank_of(json_array_get(list, i));
    out->facts.ranks = out->ranks;
    out->facts.rank_count = count;
}

static const json_t *host_in(const json_t *list, const char *host)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *object = json_array_get(list, i);
        if (strcmp(control_text_of(object, "host", "?"), host) == 0)
            return object;
    }
    return NULL;
}

static bool is_lost(const json_t *object)
{
    return strcmp(control_text_of(object, "state", ""), "lost") == 0;
}

/* Is that what happened first? An agent that could not end its ranks is lost in the end, too. */
static bool is_about_loss(const struct explain_facts *facts)
{
    bool verdict = facts->cause != NULL && strcmp(facts->cause, "node-lost") == 0;
    return verdict || (facts->what != NULL && strncmp(facts->what, "lost ", 5) == 0);
}

/* Of all hosts in `list`, which can name one twice. */
static size_t count_gpus(const json_t *list, const json_t *asked)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *host = control_text_of(json_array_get(list, i), "host", "?");
        count += json_array_size(json_object_get(host_in(asked, host), "gpus"));
    }
    return count;
}

static void take_hosts(struct explain_case *out)
{
    const json_t *asked = json_object_get(out->evidence, "hosts"),
                 *nodes = json_object_get(out->report, "nodes");
    const json_t *list = json_array_size(nodes) > 0 ? nodes : asked;
    size_t count = json_array_size(list), gpus = 0;
    out->hosts = mem_array(count + 1, sizeof(*out->hosts));
    out->gpus = mem_array(count_gpus(list, asked) + 1, sizeof(*out->gpus));
    for (size_t i = 0; i < count; i++) {
        const json_t *object = json_array_get(list, i);
        const char *host = control_text_of(object, "host", "?");
        const json_t *answer = host_in(asked, host), *its = json_object_get(answer, "gpus");
        out->hosts[i] =
            (struct explain_host){.host = host,
                                  .lost = is_lost(object) && is_about_loss(&out->facts),
                                  .lost_later = is_lost(object) && !is_about_loss(&out->facts),
                                  .silent = json_is_false(json_object_get(answer, "answered")),
                                  .pressure = text_of(answer, "pressure"),
                                  .memory = text_of(answer, "memory"),
                                  .cores = text_of(answer, "cores"),
                                  .folders = text_of(answer, "folders"),
                                  .kernel = text_of(answer, "kernel"),
                                  .xid = text_of(answer, "xid"),
                                  .gpus = out->gpus + gpus,
                                  .gpu_count = json_array_size(its),
                                  .gpus_missing = text_of(answer, "gpus_missing")};
        for (size_t j = 0; j < json_array_size(its); j++)
            out->gpus[gpus++] = gpu_of(json_array_get(its, j));
    }
    out->facts.hosts = out->hosts;
    out->facts.host_count = count;
}

/* The evidence is about what the driver heard of first. The end of a job that had only one failure
 * can say that something else happened before that. */
static bool is_revised(const struct explain_case *explained, const json_t *cause)
{
    const char *kind = control_text_of(explained->evidence, "kind", "");
    return strcmp(kind, "failure") == 0 && json_object_get(explained->report, "elastic") == NULL &&
           cause != NULL && int_of(cause, "rank", -1) != int_of(explained->evidence, "rank", -1);
}

/* What happened first: what the end of the job says if it knows better; else the evidence says
 * more. */
static void take_first(struct explain_case *out)
{
    const json_t *cause = json_object_get(json_object_get(out->report, "job"), "cause");
    bool likely = json_is_true(json_object_get(cause, "likely"));
    bool revised = likely || is_revised(out, cause);
    const json_t *source = out->evidence != NULL && !revised ? out->evidence : cause;
    out->facts.cause = text_of(cause, "kind");
    out->facts.what = text_of(source, "text");
    out->facts.rank = int_of(source, "rank", -1);
    out->facts.kind = text_of(out->evidence, "kind");
    out->facts.when_s = number_of(out->evidence, "time");
}

/* Files that the evidence has besides its own. */
static void take_names(struct explain_case *out)
{
    const json_t *flights = json_object_get(out->evidence, "flight_recorder"),
                 *hosts = json_object_get(out->evidence, "hosts");
    for (size_t i = 0; i < json_array_size(flights); i++)
        out->facts.flights += text_of(json_array_get(flights, i), "file") != NULL;
    if (strcmp(control_text_of(out->evidence, "rank_by", ""), "nccl") != 0)
        return;
    for (size_t i = 0; i < json_array_size(hosts) && out->facts.nccl == NULL; i++)
        out->facts.nccl = text_of(json_array_get(hosts, i), "ras");
}

static void take_end(struct explain_case *out, enum job_record_state state)
{
    const json_t *job = json_object_get(out->report, "job");
    const char *id = text_of(job, "id");
    struct explain_facts *facts = &out->facts;
    facts->job = out->record != NULL ? text_of(out->record, "job") : id;
    if (facts->job == NULL)
        facts->job = text_of(out->evidence, "job");
    facts->gone = out->record != NULL && state == JOB_RECORD_LOST;
    facts->ended = json_is_integer(json_object_get(job, "status"));
    facts->status = int_of(job, "status", 0);
    facts->started_s = number_of(job != NULL ? job : out->record, "started");
    facts->ended_s = number_of(job, "ended");
    facts->store_waits = text_of(json_object_get(out->report, "torch_store"), "text");
}

/* Keeps the end. */
static void add_line(struct buf *out, const char *text, size_t length)
{
    length = length < TEXT_MAX ? length : TEXT_MAX;
    if (out->length + length + 1 > SAID_MAX) {
        const char *kept = strchr(buf_text(out) + out->length / 2, '\n');
        buf_consume(out, kept == NULL ? out->length : (size_t)(kept + 1 - buf_text(out)));
    }
    buf_append(out, text, length);
    buf_putc(out, '\n');
}

/* The number of the collective operation in which NCCL's watchdog of a rank gave up. */
static void take_collective(struct explain_case *out, int rank, const char *line, size_t length)
{
    static const char watchdog[] = "Watchdog caught collective operation timeout",
                      mark[] = "WorkNCCL(SeqNum=";
    char *copy AUTO_FREE = mem_strndup(line, length);
    const char *found = strstr(copy, watchdog) == NULL ? NULL : strstr(copy, mark);
    for (size_t i = 0; found != NULL && i < out->facts.rank_count; i++) {
        struct explain_rank *its = &out->ranks[i];
        if (its->rank == rank && its->collective == 0)
            its->collective = strtoll(found + sizeof(mark) - 1, NULL, 10);
    }
}

/* `to`: the lines of the rank that the story is about, in this stream; NULL: not wanted. */
static void take_line(struct explain_case *out, int rank, const char *text, size_t length,
                      struct buf *to)
{
    if (rank < 0)
        return;
    if (rank == out->facts.rank && to != NULL)
        add_line(to, text, length);
    take_collective(out, rank, text, length);
}

/* Lines that are indented, up to the first one that is not. Returns what follows. */
static const char *take_indented(struct explain_case *out, int rank, const char *text,
                                 struct buf *to)
{
    while (text[0] == ' ') {
        size_t length = strcspn(text, "\n"), indent = strspn(text, " ");
        indent = indent < LINE_INDENT ? indent : LINE_INDENT;
        take_line(out, rank, text + indent, length - indent, to);
        text += length + (text[length] == '\n');
    }
    return text;
}

/* lines.txt: those of a rank are below its heading. */
static void take_file(const char *text, struct explain_case *out)
{
    static const char *const headings[] = {"last lines of stderr, rank ",
                                           "last lines of stdout, rank "};
    while (*text != '\0') {
        bool printed = text_begins(text, headings[1]);
        bool known = printed || text_begins(text, headings[0]);
        int rank = known ? (int)strtol(text + strlen(headings[0]), NULL, 10) : -1;
        text += strcspn(text, "\n");
        text += *text == '\n';
        text = take_indented(out, rank, text, printed ? &out->printed : &out->said);
    }
}

/* The last lines of the job. They may have none of the rank: what hvdrun quoted of it at the end
 * is better. */
static void take_record(struct explain_case *out)
{
    static const char heading[] = "hvdrun: last lines of its stderr:\n";
    const json_t *list = json_object_get(out->record, "lines");
    const char *failure = strstr(control_text_of(out->record, "failure", ""), heading);
    if (failure != NULL)
        take_indented(out, out->facts.rank, failure + strlen(heading), &out->said);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *line = json_array_get(list, i);
        const char *text = control_text_of(line, "text", ""),
                   *stream = control_text_of(line, "stream", "");
        struct buf *to = failure == NULL ? &out->said : NULL;
        take_line(out, int_of(line, "rank", -1), text, strcspn(text, "\n"),
                  strcmp(stream, "stderr") == 0 ? to : &out->printed);
    }
}

static void take_differences(struct explain_case *out)
{
    const json_t *environment = json_object_get(out->evidence, "environment");
    const char *name, *host;
    json_t *values, *value;
    json_object_foreach((json_t *)environment, name, values)
    {
        struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX);
        size_t shown = 0;
        buf_printf(&text, "%.200s:", name);
        json_object_foreach(values, host, value)
        {
            const char *its = json_string_value(value);
            if (shown++ < HOSTS_SHOWN)
                buf_printf(&text, "%s %.60s on %.60s", shown > 1 ? "," : "",
                           its == NULL ? "(unset)" : its, host);
        }
        if (shown > HOSTS_SHOWN)
            buf_printf(&text, " and %zu more", shown - HOSTS_SHOWN);
        strv_add(&out->facts.differ, buf_text(&text));
    }
}

static void put_ranks(const json_t *list, struct buf *out)
{
    size_t count = json_array_size(list) < RANKS_MAX ? json_array_size(list) : RANKS_MAX;
    int *ranks AUTO_FREE = mem_array(count + 1, sizeof(*ranks));
    for (size_t i = 0; i < count; i++) {
        json_int_t rank = json_integer_value(json_array_get(list, i));
        ranks[i] = rank >= 0 && rank <= INT_MAX ? (int)rank : 0;
    }
    rank_ranges(ranks, (int)count, out);
}

/* From the report (features/libraries/libraries_driver.c). What differs comes first. */
static void take_libraries(struct explain_case *out)
{
    const json_t *libraries = json_object_get(out->report, "libraries"),
                 *differences = json_object_get(libraries, "differences"),
                 *files = json_object_get(libraries, "files");
    for (size_t i = 0; i < json_array_size(differences); i++) {
        const char *text = json_string_value(json_array_get(differences, i));
        if (text != NULL)
            strv_add(&out->facts.loaded, text);
    }
    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *file = json_array_get(files, i);
        struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX);
        const char *path = text_of(file, "path"), *id = text_of(file, "build_id");
        if (path == NULL)
            continue;
        put_ranks(json_object_get(file, "ranks"), &text);
        buf_printf(&text, ": %.80s %.500s", control_text_of(file, "title", "?"), path);
        if (id != NULL)
            buf_printf(&text, " (build id %.12s)", id);
        strv_add(&out->facts.loaded, buf_text(&text));
    }
    if (json_array_size(json_object_get(libraries, "missing")) > 0) {
        struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX);
        put_ranks(json_object_get(libraries, "missing"), &text);
        buf_puts(&text, ": left out by the last look");
        strv_add(&out->facts.loaded, buf_text(&text));
    }
}

void explain_json_take(json_t *record, enum job_record_state state, json_t *evidence,
                       json_t *report, const char *lines, struct explain_case *out)
{
    *out = (struct explain_case){.record = record, .evidence = evidence, .report = report};
    if (report == NULL)
        out->report = json_incref(json_object_get(record, "report"));
    out->facts.has_folder = evidence != NULL;
    take_end(out, state);
    take_first(out);
    take_ranks(out);
    take_hosts(out);
    take_differences(out);
    take_libraries(out);
    take_names(out);
    buf_init(&out->said, SAID_MAX + TEXT_MAX + 1);
    buf_init(&out->printed, SAID_MAX + TEXT_MAX + 1);
    if (lines != NULL)
        take_file(lines, out);
    else
        take_record(out);
    out->facts.said = buf_text(&out->said);
    out->facts.printed = buf_text(&out->printed);
}

void explain_case_destroy(struct explain_case *explained)
{
    free(explained->ranks);
    free(explained->hosts);
    free(explained->gpus);
    buf_destroy(&explained->said);
    buf_destroy(&explained->printed);
    strv_destroy(&explained->facts.differ);
    strv_destroy(&explained->facts.loaded);
    json_decref(explained->record);
    json_decref(explained->evidence);
    json_decref(explained->report);
}
