/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_jobs.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "driver/control/folder.h"
#include "driver/control/journal.h"

#define LIST_MAX 700 /* bytes of the list of jobs in an error */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(struct strv *ids)
{
    if (ids->count > 1)
        qsort(ids->items, ids->count, sizeof(*ids->items), by_name);
}

static void add_short(void *context, const json_t *record)
{
    struct strv *ids = context;
    const char *id = json_string_value(json_object_get(record, "job"));
    for (size_t i = 0; i < ids->count; i++) {
        if (strcmp(ids->items[i], id) == 0)
            return;
    }
    if (name_is_safe(id, strlen(id)))
        strv_add(ids, id);
}

void job_list_read(struct job_list *out)
{
    *out = (struct job_list){.folder = job_folder_find()};
    int fd = out->folder < 0 ? -1 : fd_openat(out->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        fd_close(&fd);
        return;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char *id AUTO_FREE = job_folder_job(entry->d_name, JOB_RECORD_SUFFIX);
        if (id != NULL)
            strv_add(job_folder_runs(out->folder, id) ? &out->running : &out->over, id);
    }
    closedir(dir);
    int64_t since_s = clock_wall_ns() / 1000000000 - JOB_RECORD_AGE_S;
    job_journal_walk(out->folder, since_s, add_short, &out->over);
    sort(&out->running);
    sort(&out->over);
}

void job_list_destroy(struct job_list *list)
{
    fd_close(&list->folder);
    strv_destroy(&list->running);
    strv_destroy(&list->over);
}

static bool begins(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0;
}

/* The number at the end of an id is the pid of its hvdrun. */
static bool is_meant(const char *id, const char *word)
{
    const char *number = id + strlen(id);
    while (number > id && isdigit((unsigned char)number[-1]))
        number--;
    return begins(id, word) || begins(number, word);
}

struct job_search {
    const char *found; /* the first one */
    size_t count;
    struct buf names;
};

static void look_in(struct job_search *search, const struct strv *ids, const char *word)
{
    for (size_t i = 0; i < ids->count; i++) {
        const char *id = ids->items[i];
        bool exact = word != NULL && strcmp(id, word) == 0;
        if (exact) {
            search->count = 1;
            search->found = id;
            return;
        }
        if (word != NULL && (word[0] == '\0' || !is_meant(id, word)))
            continue;
        buf_printf(&search->names, "%s%s", search->count > 0 ? ", " : "", id);
        search->found = search->count++ == 0 ? id : search->found;
    }
}

static void say_none(const struct job_list *list, const char *word, struct error *err)
{
    struct job_search over = {.names = BUF_INIT(LIST_MAX)};
    char *folder AUTO_FREE = job_folder_path();
    if (word == NULL) {
        error_set(err, "found no running job of this user in %s (TMPDIR sets that folder)%s",
                  folder,
                  list->over.count > 0 ? "; 'hvdrun ps -a' lists the jobs that have ended" : "");
        return;
    }
    look_in(&over, &list->over, word);
    if (over.count > 1)
        error_set(err, "'%s' matches %zu jobs: %s", word, over.count, buf_text(&over.names));
    else if (over.count == 1)
        error_set(err, "job %s does not run any more; 'hvdrun status %s' shows how it ended",
                  over.found, over.found);
    else
        error_set(err, "found no job '%s' of this user in %s (TMPDIR sets that folder)", word,
                  folder);
    buf_destroy(&over.names);
}

const char *job_list_find(const struct job_list *list, const char *word, bool over_too,
                          struct error *err)
{
    struct job_search search = {.names = BUF_INIT(LIST_MAX)};
    look_in(&search, &list->running, word);
    bool runs = search.count > 0;
    if (!runs && over_too && word != NULL)
        look_in(&search, &list->over, word);
    if (search.count == 0)
        say_none(list, word, err);
    else if (search.count > 1 && word == NULL)
        error_set(err, "%zu jobs run here; name one of them: %s", search.count,
                  buf_text(&search.names));
    else if (search.count > 1)
        error_set(err, "'%s' matches %zu jobs: %s", word, search.count, buf_text(&search.names));
    buf_destroy(&search.names);
    return search.count == 1 ? search.found : NULL;
}
