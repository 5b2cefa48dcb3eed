/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_jobs.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/control_show.h"
#include "driver/control/folder.h"
#include "driver/control/record.h"
#include "io/child.h"
#include "node/runtime_dir.h"

#define COMMAND_WIDTH 40 /* of a command in this list */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(struct strv *ids)
{
    if (ids->count > 1)
        qsort(ids->items, ids->count, sizeof(*ids->items), by_name);
}

static bool has(const struct strv *ids, const char *word)
{
    bool found = false;
    for (size_t i = 0; i < ids->count; i++)
        found = found || strcmp(ids->items[i], word) == 0;
    return found;
}

static bool is_in(const json_t *record, const char *slurm_job)
{
    return strcmp(control_text_of(record, "slurm_job", ""), slurm_job) == 0;
}

static void add_job(struct job_list *list, const char *id, const char *slurm_job)
{
    if (slurm_job != NULL) {
        enum job_record_state state;
        json_t *record = job_record_read(list->folder, id, &state);
        bool wanted = is_in(record, slurm_job);
        json_decref(record);
        if (!wanted)
            return;
    }
    strv_add(job_folder_runs(list->folder, id) ? &list->running : &list->over, id);
}

struct short_jobs {
    struct strv *ids;
    const char *slurm_job; /* NULL: any */
};

static void add_short(void *context, const json_t *record)
{
    struct short_jobs *jobs = context;
    const char *id = json_string_value(json_object_get(record, "job"));
    bool wanted = jobs->slurm_job == NULL || is_in(record, jobs->slurm_job);
    if (wanted && name_is_safe(id, strlen(id)) && !has(jobs->ids, id))
        strv_add(jobs->ids, id);
}

/* Takes `path` and the descriptor, -1 if there is no folder. */
static void read_folder(char *path_take, int folder_take, const char *slurm_job,
                        struct job_list *out)
{
    *out = (struct job_list){.folder = folder_take, .path = path_take};
    int fd = out->folder < 0 ? -1 : fd_openat(out->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        fd_close(&fd);
        return;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char *id AUTO_FREE = job_folder_job(entry->d_name, JOB_RECORD_SUFFIX);
        if (id != NULL)
            add_job(out, id, slurm_job);
    }
    closedir(dir);
    struct short_jobs short_jobs = {&out->over, slurm_job};
    int64_t since_s = clock_wall_ns() / 1000000000 - JOB_RECORD_AGE_S;
    job_journal_walk(out->folder, since_s, add_short, &short_jobs);
    sort(&out->running);
    sort(&out->over);
}

void job_list_read(struct job_list *out)
{
    job_list_read_in(runtime_dir_tmpdir(), NULL, out);
}

void job_list_read_in(const char *tmpdir, const char *slurm_job, struct job_list *out)
{
    read_folder(job_folder_path_in(tmpdir), job_folder_find_in(tmpdir), slurm_job, out);
}

void job_list_read_at(const char *path, const char *slurm_job, struct job_list *out)
{
    read_folder(mem_strdup(path), fd_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0),
                slurm_job, out);
}

/* The user of a folder "hvdrun-UID", if it is the user's own. */
static bool owner_of(int parent, const char *name, uid_t *user)
{
    static const char begin[] = "hvdrun-";
    struct stat info;
    int64_t number;
    if (strncmp(name, begin, strlen(begin)) != 0 ||
        parse_int(name + strlen(begin), 0, UINT32_MAX, &number, NULL) < 0 ||
        fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(info.st_mode))
        return false;
    *user = info.st_uid;
    return (int64_t)info.st_uid == number && info.st_uid != geteuid();
}

void job_list_others(bool (*each)(void *context, const char *path, const char *user), void *context)
{
    char *own AUTO_FREE = job_folder_path(), *base AUTO_FREE = mem_strdup(own);
    const char *folder = strrchr(own, '/');
    *strrchr(base, '/') = '\0';
    *strrchr(base, '/') = '\0'; /* the temporary folder */
    DIR *dir = opendir(base);
    bool done = dir == NULL;
    for (struct dirent *entry = done ? NULL : readdir(dir); entry != NULL && !done;
         entry = readdir(dir)) {
        uid_t user;
        if (!owner_of(dirfd(dir), entry->d_name, &user))
            continue;
        char *path AUTO_FREE = mem_printf("%s/%s%s", base, entry->d_name, folder);
        const struct passwd *known = getpwuid(user);
        char *name AUTO_FREE =
            known != NULL ? mem_strdup(known->pw_name) : mem_printf("%u", (unsigned)user);
        done = each(context, path, name);
    }
    if (dir != NULL)
        closedir(dir);
}

void job_list_destroy(struct job_list *list)
{
    fd_close(&list->folder);
    mem_free_at(&list->path);
    strv_destroy(&list->running);
    strv_destroy(&list->over);
}

void job_lists_destroy(struct job_lists *lists)
{
    for (size_t i = 0; i < lists->count; i++)
        job_list_destroy(&lists->items[i]);
    mem_free_at(&lists->items);
    lists->count = 0;
}

/* The number at the end of an id is the pid of its hvdrun. */
static bool is_meant(const char *id, const char *word)
{
    const char *number = id + strlen(id);
    while (number > id && isdigit((unsigned char)number[-1]))
        number--;
    return text_begins(id, word) || text_begins(number, word);
}

struct job_search {
    int folder;
    const char *found; /* the first one */
    size_t count;
    struct buf *names;
};

/* "hvdrun-a-17 (python train.py)" */
static void add_name(struct job_search *search, const char *id)
{
    enum job_record_state state;
    json_t *record = job_record_read(search->folder, id, &state);
    buf_printf(search->names, "%s%s", search->names->length > 0 ? ", " : "", id);
    const char *command = control_text_of(record, "command", "");
    if (command[0] != '\0') {
        buf_puts(search->names, " (");
        control_show_cut(command, COMMAND_WIDTH, search->names);
        buf_putc(search->names, ')');
    }
    json_decref(record);
}

char *job_list_name(const struct job_list *list, const char *id)
{
    enum job_record_state state;
    json_t *record = job_record_read(list->folder, id, &state);
    const char *name = control_text_of(record, "name", "");
    char *copy = name_is_safe(name, strlen(name)) ? mem_strdup(name) : NULL;
    json_decref(record);
    return copy;
}

static void take(struct job_search *search, const char *id)
{
    add_name(search, id);
    search->found = search->count++ == 0 ? id : search->found;
}

/* NULL: any job. */
static void look_in(struct job_search *search, const struct strv *ids, const char *word)
{
    bool exact = word != NULL && has(ids, word);
    for (size_t i = 0; i < ids->count; i++) {
        const char *id = ids->items[i];
        bool meant = word == NULL || (word[0] != '\0' && is_meant(id, word));
        if (exact ? strcmp(id, word) == 0 : meant)
            take(search, id);
    }
}

static void look_for_name(struct job_search *search, const struct job_list *list, const char *word)
{
    for (size_t i = 0; i < list->running.count; i++) {
        char *name AUTO_FREE = job_list_name(list, list->running.items[i]);
        if (name != NULL && strcmp(name, word) == 0)
            take(search, list->running.items[i]);
    }
}

/* An id, "hvdrun-HOST-NUMBER", names the host of its hvdrun. */
static bool say_other_host(const char *word, struct error *err)
{
    static const char begin[] = "hvdrun-";
    char here[256] = "";
    gethostname(here, sizeof(here) - 1);
    const char *end = strrchr(word, '-');
    const char *host = word + strlen(begin);
    if (strncmp(word, begin, strlen(begin)) != 0 || end <= host || end[1] == '\0' ||
        end[1 + strspn(end + 1, "0123456789")] != '\0')
        return false;
    size_t length = (size_t)(end - host);
    if (strlen(here) == length && memcmp(host, here, length) == 0)
        return false;
    error_set(
        err,
        "found no job '%s': the id is one of host '%.*s', and this is '%s'; run the command there",
        word, (int)length, host, here);
    return true;
}

/* On the login node of a cluster, the job of who asks is most likely in Slurm. */
static const char *slurm_hint(void)
{
    char *squeue AUTO_FREE = child_find("squeue", getenv("PATH"), NULL, NULL);
    if (squeue == NULL || getenv("SLURMD_NODENAME") != NULL)
        return "";
    return "; for a job in Slurm, add --slurm-job and the number that squeue shows";
}

static void say_none(const struct job_list *list, const char *word, struct error *err)
{
    struct buf names AUTO_BUF = BUF_INIT(JOB_LIST_NAMES_MAX);
    struct job_search over = {.folder = list->folder, .names = &names};
    const char *named = word == NULL ? NULL : job_list_last(list, word);
    const char *folder = list->path;
    if (word == NULL) {
        error_set(err, "found no running job of this user in %s (TMPDIR sets that folder)%s%s",
                  folder,
                  list->over.count > 0 ? "; 'hvdrun ps -a' lists the jobs that have ended" : "",
                  slurm_hint());
        return;
    }
    if (named != NULL)
        take(&over, named);
    else
        look_in(&over, &list->over, word);
    if (over.count > 1)
        error_set(err, "'%s' matches %zu jobs: %s", word, over.count, buf_text(&names));
    else if (over.count == 1)
        error_set(err, "job %s does not run any more; 'hvdrun status %s' shows how it ended",
                  over.found, over.found);
    else if (!say_other_host(word, err))
        error_set(err, "found no job '%s' of this user in %s (TMPDIR sets that folder)", word,
                  folder);
}

size_t job_list_search(const struct job_list *list, const char *word, bool over_too,
                       const char **found, struct buf *names)
{
    struct job_search search = {.folder = list->folder, .names = names};
    bool named =
        word != NULL && word[0] != '\0' && !has(&list->running, word) && !has(&list->over, word);
    if (named)
        look_for_name(&search, list, word);
    if (search.count == 0)
        look_in(&search, &list->running, word);
    const char *last = named && over_too && search.count == 0 ? job_list_last(list, word) : NULL;
    if (last != NULL)
        take(&search, last);
    else if (search.count == 0 && over_too && word != NULL)
        look_in(&search, &list->over, word);
    *found = search.found;
    return search.count;
}

const char *job_list_find(const struct job_list *list, const char *word, bool over_too,
                          struct error *err)
{
    struct buf names AUTO_BUF = BUF_INIT(JOB_LIST_NAMES_MAX);
    const char *found = NULL;
    size_t count = job_list_search(list, word, over_too, &found, &names);
    if (count == 0)
        say_none(list, word, err);
    else if (count > 1 && word == NULL)
        error_set(err, "%zu jobs run here; name one of them: %s", count, buf_text(&names));
    else if (count > 1)
        error_set(err, "'%s' matches %zu jobs: %s", word, count, buf_text(&names));
    return count == 1 ? found : NULL;
}

const char *job_list_last(const struct job_list *list, const char *name)
{
    const char *last = NULL;
    double latest = -1;
    for (size_t i = 0; i < list->over.count; i++) {
        enum job_record_state state;
        json_t *record = job_record_read(list->folder, list->over.items[i], &state);
        double ended = json_number_value(json_object_get(record, "ended"));
        bool wanted = name == NULL || strcmp(control_text_of(record, "name", ""), name) == 0;
        if (record != NULL && wanted && ended > latest) {
            latest = ended;
            last = list->over.items[i];
        }
        json_decref(record);
    }
    return last;
}
