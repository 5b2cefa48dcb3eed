/* SPDX-License-Identifier: Apache-2.0 */
#include "features/evidence/explain_cli_test.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/plain.h"
#include "cli/control_client.h"
#include "cli/control_show.h"
#include "cli/features.h"
#include "driver/control/record.h"
#include "features/evidence/evidence.h"
#include "features/evidence/explain_json_cli.h"

/* The story of a failure, as `hvdrun explain` prints it. */

static void put_json(const struct explain_case *explained, const struct explain_story *story,
                     struct buf *out)
{
    const struct explain_facts *facts = &explained->facts;
    json_t *root = json_object();
    json_object_set_new(root, "job", facts->job != NULL ? json_string(facts->job) : json_null());
    json_object_set_new(root, "status", facts->ended ? json_integer(facts->status) : json_null());
    json_object_set_new(root, "rank", facts->rank >= 0 ? json_integer(facts->rank) : json_null());
    json_object_set_new(root, "headline", json_string(story->headline));
    for (int part = 0; part < EXPLAIN_PARTS; part++) {
        json_t *list = json_array();
        for (size_t i = 0; i < story->parts[part].count; i++)
            json_array_append_new(list, json_string(story->parts[part].items[i]));
        json_object_set_new(root, explain_titles[part].key, list);
    }
    control_show_json(root, out);
    json_decref(root);
}

/* One line that may be shown on a terminal: it can be of a rank or a kernel, and cut within a
 * character. */
static void make_line(char *text)
{
    for (char *at = text; (at = strpbrk(at, "\n\t")) != NULL;)
        *at = ' ';
    plain_valid(text, strlen(text));
    plain_text(text);
}

static void make_plain(struct explain_story *story)
{
    make_line(story->headline);
    for (int part = 0; part < EXPLAIN_PARTS; part++) {
        for (size_t i = 0; i < story->parts[part].count; i++)
            make_line(story->parts[part].items[i]);
    }
}

void explain_json_show(const struct explain_case *explained, bool json, struct buf *out)
{
    struct explain_story story;
    explain_tell(&explained->facts, &story);
    make_plain(&story);
    if (json)
        put_json(explained, &story, out);
    else
        explain_story_text(&story, out);
    explain_story_destroy(&story);
}

/* What the story is about. */

#define FILE_BYTES_MAX ((size_t)16 << 20)

/* -1 and errno. */
static int read_file(const char *folder, const char *name, struct buf *out)
{
    char *path AUTO_FREE = mem_printf("%s/%s", folder, name);
    int fd AUTO_FD = fd_open_regular(path);
    return fd < 0 ? -1 : fd_read_rest(fd, out);
}

/* The caller owns it. NULL: there is none, or it is damaged and `err` says so. */
static json_t *read_object(const char *folder, const char *name, struct error *err)
{
    struct buf text AUTO_BUF = BUF_INIT(FILE_BYTES_MAX);
    json_error_t why;
    if (read_file(folder, name, &text) < 0) {
        error_errno(err, errno, "cannot read '%s/%s'", folder, name);
        return NULL;
    }
    json_t *object = json_loadb(buf_text(&text), text.length, 0, &why);
    if (!json_is_object(object)) {
        json_decref(object);
        error_set(err, "'%s/%s' is damaged: it is not a JSON object", folder, name);
        return NULL;
    }
    return object;
}

/* Takes the record, which may be NULL. */
static int take_folder(const char *folder, json_t *record, struct explain_case *out,
                       struct error *err)
{
    struct buf lines AUTO_BUF = BUF_INIT(FILE_BYTES_MAX);
    struct error other = ERROR_INIT;
    json_t *facts = read_object(folder, "facts.json", err);
    if (facts == NULL)
        return -1;
    json_t *report = read_object(folder, "report.json", &other);
    bool has_lines = read_file(folder, "lines.txt", &lines) == 0;
    explain_json_take(record, JOB_RECORD_ENDED, facts, report, has_lines ? buf_text(&lines) : NULL,
                      out);
    return 0;
}

/* What happened first has caused the rest. But an elastic job has survived all failures but the
 * last one. Borrowed. NULL: there is none. */
static const char *chosen_folder(const json_t *record)
{
    const json_t *folders = json_object_get(record, "evidence"),
                 *elastic = json_object_get(json_object_get(record, "report"), "elastic");
    size_t count = json_array_size(folders);
    return json_string_value(json_array_get(folders, json_is_object(elastic) ? count - 1 : 0));
}

static int take_job(const struct job_list *list, const char *word, struct explain_case *out,
                    struct error *err)
{
    enum job_record_state state;
    struct error other = ERROR_INIT;
    const char *id =
        word == NULL ? job_list_last(list, NULL) : job_list_find(list, word, true, err);
    if (id == NULL && word != NULL)
        return -1;
    if (id == NULL && list->over.count > 0)
        return error_set(err, "cannot read the record of any job that has ended here");
    if (id == NULL)
        return error_set(err, "no job has ended here in the last day");
    json_t *record = job_record_read(list->folder, id, &state);
    if (record == NULL)
        return error_set(err, "cannot read the record of job %s", id);
    if (state == JOB_RECORD_RUNNING) {
        json_decref(record);
        return error_set(err,
                         "job %s still runs; 'hvdrun status' and 'hvdrun stacks' show what "
                         "it does",
                         id);
    }
    const char *folder = chosen_folder(record);
    if (folder != NULL && take_folder(folder, record, out, &other) == 0)
        return 0;
    explain_json_take(record, state, NULL, NULL, NULL, out);
    return 0;
}

static bool is_folder(const char *word)
{
    struct stat info;
    return strchr(word, '/') != NULL || (stat(word, &info) == 0 && S_ISDIR(info.st_mode));
}

int control_explain(const struct job_list *list, const struct control_words *words, struct buf *out,
                    struct error *err)
{
    struct explain_case explained;
    const char *word = words->job;
    int result = word != NULL && is_folder(word) ? take_folder(word, NULL, &explained, err)
                                                 : take_job(list, word, &explained, err);
    if (result < 0)
        return -1;
    explain_json_show(&explained, words->json, out);
    explain_case_destroy(&explained);
    return 0;
}
