/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "driver/job/part.h"
#include "driver/tell/recent.h"
#include "features/metrics/metrics.h"
#include "features/metrics/metrics_driver.h"
#include "features/usage/usage_driver.h"

#define RANK_TEXT_ROOM 16

static size_t size_of(const json_t *value)
{
    return json_dumpb(value, NULL, 0, JSON_COMPACT);
}

/* Cuts the list. Returns how many entries are left out. */
static size_t keep_first(json_t *list, size_t most, size_t bytes)
{
    size_t count = json_array_size(list), kept = 0;
    for (size_t size = 0; kept < count && kept < most; kept++) {
        size += size_of(json_array_get(list, kept));
        if (size > bytes)
            break;
    }
    for (size_t i = count; i > kept; i--)
        json_array_remove(list, i - 1);
    return count - kept;
}

/* The key of an object that has a rank. */
static const char *rank_key(const json_t *object, char name[RANK_TEXT_ROOM])
{
    snprintf(name, RANK_TEXT_ROOM, "%d", (int)json_integer_value(json_object_get(object, "rank")));
    return name;
}

/* As on a page that was open at the end, the only failures are those that came before hvdrun ended
 * the ranks. */
static void set_ended(json_t *rank)
{
    const char *state = json_string_value(json_object_get(rank, "state"));
    if (state == NULL || strcmp(state, rank_state_name(RANK_PLANNED)) == 0)
        return;
    json_object_set_new(rank, "state", json_string("ended"));
    json_object_del(rank, "signal");
    json_object_del(rank, "exit_code");
}

/* Those that failed first; the others in the order in which they come. */
static json_t *sorted(const json_t *ranks, const json_t *failed)
{
    json_t *list = json_array(), *names = json_object();
    char name[RANK_TEXT_ROOM];
    for (size_t i = 0; i < json_array_size(failed); i++)
        json_object_set_new(names, rank_key(json_array_get(failed, i), name), json_true());
    for (int wanted = 1; wanted >= 0; wanted--) {
        for (size_t i = 0; i < json_array_size(ranks); i++) {
            json_t *rank = json_array_get(ranks, i);
            if ((json_object_get(names, rank_key(rank, name)) != NULL) == (wanted != 0))
                json_array_append(list, rank);
        }
    }
    json_decref(names);
    for (size_t i = 0; i < json_array_size(list); i++)
        set_ended(json_array_get(list, i));
    return list;
}

/* Returns how many of the ranks with output are left out. */
static size_t put_outputs(const struct job *job, const json_t *ranks, json_t *outputs)
{
    size_t size = 0, left_out = 0;
    for (size_t i = 0; i < json_array_size(ranks); i++) {
        char name[RANK_TEXT_ROOM];
        int rank = (int)json_integer_value(json_object_get(json_array_get(ranks, i), "rank"));
        json_t *output = page_json_output(job, rank);
        size_t lines = json_array_size(json_object_get(output, "lines"));
        bool empty = lines == 0 && json_object_get(output, "bar") == NULL;
        size += empty ? 0 : size_of(output);
        snprintf(name, sizeof(name), "%d", rank);
        if (!empty && size <= PAGE_FILE_OUTPUT_BYTES)
            json_object_set(outputs, name, output);
        else if (!empty)
            left_out++;
        json_decref(output);
    }
    return left_out;
}

json_t *page_file_json(const struct job *job)
{
    json_t *shown = page_json_job(job, usage_json_last(job)), *end = page_json_end(job);
    json_t *outputs = json_object(), *left_out = json_object(), *root = json_object();
    json_t *ranks = sorted(json_object_get(shown, "ranks"), json_object_get(end, "ranks"));
    size_t hosts =
        keep_first(json_object_get(shown, "hosts"), PAGE_FILE_RANKS, PAGE_FILE_LIST_BYTES);
    size_t cut = keep_first(ranks, PAGE_FILE_RANKS, PAGE_FILE_LIST_BYTES);
    size_t silent = put_outputs(job, ranks, outputs);
    json_object_set_new(shown, "ranks", ranks);
    json_object_set_new(left_out, "ranks", json_integer((json_int_t)cut));
    json_object_set_new(left_out, "hosts", json_integer((json_int_t)hosts));
    json_object_set_new(left_out, "outputs", json_integer((json_int_t)silent));
    json_object_set_new(root, "job", shown);
    json_object_set_new(root, "end", end);
    json_object_set_new(root, "output", page_json_output(job, -1));
    json_object_set_new(root, "outputs", outputs);
    json_object_set_new(root, "history", job_history_json(job_part(job, job_history), 0));
    json_object_set_new(root, "left_out", left_out);
    return root;
}

/* The job has its verdict. A file that cannot be written is a warning. */
static void tell(struct job *job)
{
    const char *path = job->settings->page_file;
    struct buf json AUTO_BUF = BUF_INIT(PAGE_FILE_MAX / 2),
                    document AUTO_BUF = BUF_INIT(PAGE_FILE_MAX);
    if (path == NULL || job_part(job, job_history) == NULL)
        return;
    job_history_end(job_part(job, job_history));
    page_json_put(page_file_json(job), &json);
    if (json.length == 0 || page_kept_text(&json, &document) < 0) {
        log_warning(&job->log, "--page-file: cannot make %s: %s", path,
                    json.length == 0 ? "the page is too large"
                                     : "the kernel has no randomness yet");
        return;
    }
    struct output_file *file = output_file_open_new(job->output, path);
    output_file_write(file, buf_text(&document), document.length);
    output_file_close(file);
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    if (job->settings->page_file != NULL)
        rank_tails_want(job);
    return 0;
}

const struct driver_part page_file_part = {.name = "page_file", .open = open_part, .tell = tell};
