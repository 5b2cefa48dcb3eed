/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/parts.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "driver/tell/events.h"

#define EPOCHS_KEPT 1000  /* in the report; of further ones only the totals */
#define HOSTS_KEPT 100000 /* likewise, in all these epochs: some 1 MB */
#define LINES_KEPT 10
#define EPOCHS_SHOWN 100 /* in the status */
#define LINE_MAX_BYTES 1024

/* The first report of progress in an epoch; epoch 0: none yet. */
struct first_progress {
    uint32_t epoch;
    int rank;
    int64_t at_ms;
};

struct elastic_story {
    struct job *job;
    json_t *epochs;
    json_t *names;               /* of the nodes; all epochs share them */
    json_t *last;                /* lines with their times */
    json_t *changes;             /* how many epochs each cause has led to */
    json_t *shown;               /* the last epochs, for the status */
    struct elastic_facts before; /* at the last epoch */
    int failures;                /* before the last epoch */
    json_t *epoch;               /* the last one; NULL: none yet */
    bool after_failure;          /* it came after one */
    uint32_t awaits_progress; /* this epoch came after a change, and no report was told; 0: none */
    struct first_progress first_progress;
    int dropped;        /* epochs that the report does not list */
    int kept_hosts;     /* in those that it lists */
    int64_t meeting_ms; /* from when the ranks ran until they were connected, in all epochs */
};

struct elastic_story *elastic_story_create(struct job *job)
{
    return MEM_NEW((struct elastic_story){.job = job,
                                          .epochs = json_array(),
                                          .names = json_array(),
                                          .last = json_array(),
                                          .changes = json_object(),
                                          .shown = json_array()});
}

void elastic_story_destroy(struct elastic_story *story)
{
    if (story == NULL)
        return;
    json_decref(story->epochs);
    json_decref(story->names);
    json_decref(story->last);
    json_decref(story->epoch);
    json_decref(story->changes);
    json_decref(story->shown);
    free(story);
}

/* Text that is not valid UTF-8 is left out, here and in the next function. */
static void remember(struct elastic_story *story, const char *line)
{
    json_t *text = json_string(line);
    if (text == NULL)
        return;
    if (json_array_size(story->last) >= LINES_KEPT)
        json_array_remove(story->last, 0);
    json_array_append_new(
        story->last,
        json_pack("{s:f, s:o}", "time", (double)(clock_wall_ns() / 1000) / 1e6, "text", text));
}

/* To the user, too. */
static void say(struct elastic_story *story, enum log_level level, const char *line)
{
    log_print(&story->job->log, level, "%s", line);
    remember(story, line);
}

void elastic_story_note(struct elastic_story *story, const char *line)
{
    remember(story, line);
    json_t *notice = json_pack("{s:s}", "text", line);
    if (notice != NULL)
        events_object(story->job, "notice", notice);
}

static double seconds(int64_t from_ms, int64_t to_ms)
{
    return from_ms == 0 || to_ms < from_ms ? 0 : (double)(to_ms - from_ms) / 1000;
}

/* The phases: until the change was noticed, until all survivors had asked, until the plan was
 * made, until every agent was ready, until all ranks ran. */
static json_t *phases_json(const struct elastic_facts *facts)
{
    int64_t agreed = facts->agreed_ms != 0 ? facts->agreed_ms : facts->detected_ms;
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "detect_s",
                     seconds(facts->happened_ms, facts->detected_ms), "agree_s",
                     seconds(facts->detected_ms, agreed), "plan_s",
                     seconds(agreed, facts->planned_ms), "start_s",
                     seconds(facts->planned_ms, facts->started_ms), "resumed_s",
                     seconds(facts->started_ms, facts->resumed_ms));
}

static json_t *name_of(const struct elastic_story *story, size_t node)
{
    for (size_t i = json_array_size(story->names); i <= node; i++) {
        json_t *name = json_string(story->job->nodes[i]->host);
        json_array_append_new(story->names, name != NULL ? name : json_string("(not UTF-8)"));
    }
    return json_array_get(story->names, node);
}

static json_t *epoch_json(const struct elastic_story *story, const struct elastic_facts *facts,
                          const struct elastic_plan *plan)
{
    json_t *hosts = json_array();
    for (int i = 0; i < plan->host_count; i++)
        json_array_append(hosts, name_of(story, (size_t)plan->hosts[i]));
    json_t *cause = json_string(facts->cause);
    return json_pack("{s:i, s:i, s:o, s:s, s:o, s:o, s:f}", "epoch", (int)facts->epoch, "size",
                     facts->size, "hosts", hosts, "mode", elastic_mode_name(facts->mode), "cause",
                     cause != NULL ? cause : json_string("(not UTF-8)"), "phases",
                     phases_json(facts), "lost_s", seconds(facts->happened_ms, facts->resumed_ms));
}

static void tell_progress(struct elastic_story *story, const struct elastic_facts *facts, int rank,
                          int64_t at_ms)
{
    double progress_s = seconds(facts->happened_ms, at_ms);
    json_t *event = json_pack("{s:i, s:i, s:f}", "epoch", (int)facts->epoch, "rank", rank,
                              "progress_s", progress_s);
    json_object_set_new(story->epoch, "progress_s", json_real(progress_s)); /* in the report, too */
    events_object(story->job, "epoch_progress", event);
    char *line AUTO_FREE =
        mem_printf("epoch %u: rank %d reports progress, %.2f s after the %s", facts->epoch, rank,
                   progress_s, story->after_failure ? "failure" : "change");
    say(story, LOG_NOTICE, line);
}

/* The epoch may have been told before its first report, or after it. */
static void tell_first_progress(struct elastic_story *story, const struct elastic_facts *facts)
{
    const struct first_progress *first = &story->first_progress;
    if (story->awaits_progress != facts->epoch || first->epoch != facts->epoch)
        return;
    story->awaits_progress = 0;
    tell_progress(story, facts, first->rank, first->at_ms);
}

/* An epoch can have several causes; the first of these counts. */
static const char *cause_of(const struct elastic_facts *before, const struct elastic_facts *facts)
{
    if (facts->hosts_lost > before->hosts_lost)
        return "host_lost";
    if (facts->crashes > before->crashes)
        return "crash";
    if (facts->preemptions > before->preemptions)
        return "preempted";
    return facts->grown > before->grown ? "host_added" : "other";
}

static void count_change(struct elastic_story *story, const struct elastic_facts *facts)
{
    if (story->before.epochs > 0) {
        const char *cause = cause_of(&story->before, facts);
        json_int_t count = json_integer_value(json_object_get(story->changes, cause));
        json_object_set_new(story->changes, cause, json_integer(count + 1));
    }
    story->before = *facts;
}

/* What an epoch of the report has too, with the time at which its ranks ran. */
static void show_epoch(const struct elastic_story *story, const struct elastic_facts *facts,
                       const json_t *epoch)
{
    json_t *shown = json_pack("{s:i, s:f, s:i, s:i, s:O, s:f}", "epoch", (int)facts->epoch, "time",
                              (double)(clock_wall_ns() / 1000) / 1e6, "size", facts->size, "hosts",
                              facts->host_count, "cause", json_object_get(epoch, "cause"), "lost_s",
                              seconds(facts->happened_ms, facts->resumed_ms));
    if (json_array_size(story->shown) >= EPOCHS_SHOWN)
        json_array_remove(story->shown, 0);
    json_array_append_new(story->shown, shown);
}

void elastic_story_resumed(struct elastic_story *story, const struct elastic_facts *facts,
                           const struct elastic_plan *plan)
{
    json_t *object = epoch_json(story, facts, plan);
    count_change(story, facts);
    show_epoch(story, facts, object);
    events_object(story->job, "epoch", json_incref(object));
    bool wanted = story->job->settings->report != NULL && story->dropped == 0 &&
                  json_array_size(story->epochs) < EPOCHS_KEPT &&
                  (story->kept_hosts == 0 || story->kept_hosts + facts->host_count <= HOSTS_KEPT);
    if (wanted) {
        json_array_append(story->epochs, object);
        story->kept_hosts += facts->host_count;
    } else {
        story->dropped++;
    }
    json_decref(story->epoch);
    story->epoch = object;

    AUTO_BUF struct buf line = BUF_INIT(LINE_MAX_BYTES);
    buf_printf(&line, "epoch %u: %d rank%s on %d host%s", facts->epoch, facts->size,
               facts->size == 1 ? "" : "s", facts->host_count, facts->host_count == 1 ? "" : "s");
    bool first = facts->epoch == 1 || facts->cause[0] == '\0';
    story->awaits_progress = first ? 0 : facts->epoch;
    story->after_failure = facts->crashes + facts->hosts_lost > story->failures;
    story->failures = facts->crashes + facts->hosts_lost;
    if (!first)
        buf_printf(&line, " (%s; started after %.2f s)", facts->cause,
                   seconds(facts->happened_ms, facts->resumed_ms));
    say(story, first ? LOG_INFO : LOG_NOTICE, buf_text(&line));
    tell_first_progress(story, facts);
}

void elastic_story_met(struct elastic_story *story, const struct elastic_facts *facts,
                       int64_t now_ms)
{
    if (story->epoch == NULL)
        return;
    double met_s = seconds(facts->happened_ms, now_ms);
    json_t *event = json_pack("{s:i, s:f}", "epoch", (int)facts->epoch, "met_s", met_s);
    json_object_set_new(story->epoch, "met_s", json_real(met_s)); /* in the report, too */
    json_object_set_new(story->epoch, "lost_s", json_real(met_s));
    if (facts->happened_ms != 0)
        story->meeting_ms += now_ms - facts->resumed_ms;
    events_object(story->job, "epoch_met", event);
    if (facts->cause[0] == '\0')
        return;
    char *line AUTO_FREE =
        mem_printf("epoch %u: all ranks are connected, %.2f s after the %s", facts->epoch, met_s,
                   story->after_failure ? "failure" : "change");
    say(story, LOG_NOTICE, line);
}

void elastic_story_progressed(struct elastic_story *story, const struct elastic_facts *facts,
                              int rank, int64_t at_ms)
{
    if (story->first_progress.epoch == facts->epoch)
        return;
    story->first_progress = (struct first_progress){facts->epoch, rank, at_ms};
    tell_first_progress(story, facts);
}

/* What the changes have taken, as a training sees it. */
static int64_t lost_ms(const struct elastic_story *story, const struct elastic_facts *facts)
{
    return facts->lost_ms + story->meeting_ms;
}

void elastic_story_end(const struct elastic_story *story, const struct elastic_facts *facts)
{
    if (facts->epochs < 2)
        return;
    log_notice(&story->job->log,
               "%d epochs: %d crash%s, %d host%s lost, %d preempted, %d joined; the changes took "
               "%.2f s in total",
               facts->epochs, facts->crashes, facts->crashes == 1 ? "" : "es", facts->hosts_lost,
               facts->hosts_lost == 1 ? "" : "s", facts->preemptions, facts->grown,
               (double)lost_ms(story, facts) / 1000);
}

void elastic_story_status(const struct elastic_story *story, const struct elastic_facts *facts,
                          json_t *root)
{
    json_object_set_new(root, "events", json_deep_copy(story->last));
    json_object_set_new(root, "epochs", json_deep_copy(story->shown));
    json_object_set_new(root, "changes", json_deep_copy(story->changes));
    json_object_set_new(root, "recovery_s", json_real((double)lost_ms(story, facts) / 1000));
}

void elastic_story_report(const struct elastic_story *story, const struct elastic_facts *facts,
                          json_t *root)
{
    json_t *part = json_pack("{s:i, s:i, s:i, s:i, s:i, s:f, s:O, s:i}", "epochs", facts->epochs,
                             "crashes", facts->crashes, "hosts_lost", facts->hosts_lost,
                             "preemptions", facts->preemptions, "grown", facts->grown, "lost_s",
                             (double)lost_ms(story, facts) / 1000, "list", story->epochs,
                             "not_listed", story->dropped);
    json_object_set_new(root, "elastic", part);
}
