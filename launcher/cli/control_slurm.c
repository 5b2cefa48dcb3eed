/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/status.h"
#include "cli/control_client.h"
#include "cli/sources.h"
#include "driver/control/folder.h"
#include "driver/control/record.h"
#include "io/child.h"
#include "io/proc.h"
#include "node/runtime_dir.h"

#define PATH_ROOM 4096
#define ENVIRON_MAX ((size_t)4 << 20)

extern char **environ;

bool control_slurm_is_there(const char *job, char *const *env)
{
    const char *here = env_value(env, "SLURM_JOB_ID");
    const char *node = env_value(env, "SLURM_NODEID");
    /* salloc sets the first one on the login node, too, but only slurmd sets the last one. */
    return here != NULL && strcmp(here, job) == 0 && node != NULL && strcmp(node, "0") == 0 &&
           env_value(env, "SLURMD_NODENAME") != NULL;
}

const char **control_slurm_srun(const struct control_words *words, int argc, char *const *argv,
                                const char *self, bool terminal, char **job_option)
{
    /* The step takes nothing from the ranks, and Ctrl-C reaches the command at once. */
    static const char *const options[] = {"srun", "--quiet",      "--overlap", "--disable-status",
                                          "-N1",  "--relative=0", "-n1",       "--mem=0"};
    enum { OPTIONS = sizeof(options) / sizeof(options[0]) };
    const char **line = mem_alloc((OPTIONS + (size_t)argc + 4) * sizeof(*line));
    size_t count = OPTIONS;
    memcpy(line, options, sizeof(options));
    *job_option = mem_printf("--jobid=%s", words->slurm_job);
    line[count++] = *job_option;
    if (terminal)
        line[count++] = "--pty";
    line[count++] = self;
    for (int i = 1; i < argc; i++)
        line[count++] = argv[i];
    line[count] = NULL;
    return line;
}

int control_slurm_enter(const struct control_words *words, int argc, char *const *argv,
                        struct error *err)
{
    if (control_slurm_is_there(words->slurm_job, environ))
        return 0;
    char self[PATH_ROOM], *job_option AUTO_FREE = NULL;
    char *srun AUTO_FREE = child_find("srun", getenv("PATH"), NULL, err);
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (srun == NULL) {
        err->status = 0; /* of a command, not of a program to start */
        return error_wrap(err, "--slurm-job needs srun");
    }
    self[length > 0 ? length : 0] = '\0';
    bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    const char **line =
        control_slurm_srun(words, argc, argv, length > 0 ? self : argv[0], terminal, &job_option);
    execve(srun, (char *const *)line, environ);
    int errnum = errno;
    free(line);
    return error_errno(err, errnum, "cannot execute %s", srun);
}

/* The temporary folders of the Slurm job, and the jobs of hvdrun in it. */
struct places {
    char **tmpdirs; /* NULL: a process without TMPDIR */
    struct job_lists lists;
};

static bool is_same_folder(const struct job_list *one, const struct job_list *two)
{
    struct stat first, second;
    return one->folder >= 0 && two->folder >= 0 && fstat(one->folder, &first) == 0 &&
           fstat(two->folder, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

static void add_place(struct places *places, const char *tmpdir, const char *slurm_job)
{
    char *path AUTO_FREE = job_folder_path_in(tmpdir);
    size_t count = places->lists.count;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(places->lists.items[i].path, path) == 0)
            return;
    }
    struct job_list list;
    job_list_read_in(tmpdir, slurm_job, &list);
    for (size_t i = 0; i < count; i++) {
        if (is_same_folder(&places->lists.items[i], &list)) { /* through a link */
            job_list_destroy(&list);
            return;
        }
    }
    MEM_ADD(places->tmpdirs, count) = mem_strdup(tmpdir);
    MEM_ADD(places->lists.items, places->lists.count) = list;
}

/* The place of a process of this user, if it belongs to the Slurm job. */
static void look_at(int64_t pid, const char *slurm_job, struct places *places)
{
    struct buf text AUTO_BUF = BUF_INIT(ENVIRON_MAX);
    char *path AUTO_FREE = mem_printf("/proc/%lld/environ", (long long)pid);
    struct stat info;
    if (stat(path, &info) < 0 || info.st_uid != geteuid() || fd_read_file(path, &text, NULL) < 0)
        return;
    const char *job = proc_variable(&text, "SLURM_JOB_ID");
    if (job != NULL && strcmp(job, slurm_job) == 0)
        add_place(places, proc_variable(&text, "TMPDIR"), slurm_job);
}

/* That of this process is the first one. */
static void find_places(const char *slurm_job, struct places *places)
{
    DIR *dir = opendir("/proc");
    add_place(places, runtime_dir_tmpdir(), slurm_job);
    for (struct dirent *entry = dir == NULL ? NULL : readdir(dir); entry != NULL;
         entry = readdir(dir)) {
        int64_t pid;
        if (parse_int(entry->d_name, 1, INT32_MAX, &pid, NULL) == 0)
            look_at(pid, slurm_job, places);
    }
    if (dir != NULL)
        closedir(dir);
}

/* In all places. *at: that of the first job, whose id is *found. */
static size_t search(const struct places *places, const char *word, bool over_too, size_t *at,
                     const char **found, struct buf *names)
{
    size_t total = 0;
    for (size_t i = 0; i < places->lists.count; i++) {
        const char *first = NULL;
        size_t count = job_list_search(&places->lists.items[i], word, over_too, &first, names);
        if (total == 0 && count > 0) {
            *at = i;
            *found = first;
        }
        total += count;
    }
    return total;
}

/* The place of the job that ended last. False: no job has. */
static bool find_last(const struct places *places, size_t *at)
{
    double latest = -1;
    bool found = false;
    for (size_t i = 0; i < places->lists.count; i++) {
        const struct job_list *list = &places->lists.items[i];
        const char *id = job_list_last(list, NULL);
        enum job_record_state state;
        json_t *record = id == NULL ? NULL : job_record_read(list->folder, id, &state);
        double ended = json_number_value(json_object_get(record, "ended"));
        json_decref(record);
        if (id == NULL || ended <= latest)
            continue;
        latest = ended;
        found = true;
        *at = i;
    }
    return found;
}

/* A running job comes before one that has ended. */
static int choose_named(struct control_words *words, const struct places *places, size_t *at,
                        struct error *err)
{
    struct buf names AUTO_BUF = BUF_INIT(JOB_LIST_NAMES_MAX);
    const char *found = NULL, *word = words->job;
    size_t count = search(places, word, false, at, &found, &names);
    if (count == 0)
        count = search(places, word, true, at, &found, &names);
    if (count > 1)
        return error_set(err, "'%s' matches %zu jobs: %s", word, count, buf_text(&names));
    if (count == 1)
        words->job = found;
    else if (geteuid() != 0 && words->command != CONTROL_EXPLAIN) /* another user's, or a folder */
        return error_set(err,
                         "found no job '%s' of this user in Slurm job %s; 'hvdrun ps -a "
                         "--slurm-job %s' lists those that it has",
                         word, words->slurm_job, words->slurm_job);
    return 0;
}

static int choose_only(struct control_words *words, const struct places *places, size_t *at,
                       struct error *err)
{
    struct buf names AUTO_BUF = BUF_INIT(JOB_LIST_NAMES_MAX);
    enum control_command command = words->command;
    const char *found = NULL;
    size_t last = 0, count = search(places, NULL, false, at, &found, &names);
    bool has_ended = (count == 0 || command == CONTROL_EXPLAIN) && find_last(places, &last);
    if (has_ended && (command == CONTROL_EXPLAIN || command == CONTROL_LOGS)) {
        *at = last;
        return 0;
    }
    if (command == CONTROL_EXPLAIN)
        return error_set(err, "found no job of this user that has ended in Slurm job %s",
                         words->slurm_job);
    if (count > 1)
        return error_set(err, "%zu jobs run in Slurm job %s; name one of them: %s", count,
                         words->slurm_job, buf_text(&names));
    if (count == 1) {
        words->job = found;
        return 0;
    }
    if (!has_ended)
        return error_set(err, "found no running job of this user in Slurm job %s",
                         words->slurm_job);
    return error_set(err,
                     "found no running job of this user in Slurm job %s; 'hvdrun ps -a --slurm-job "
                     "%s' lists those that have ended",
                     words->slurm_job, words->slurm_job);
}

static int choose(struct control_words *words, const struct places *places, size_t *at,
                  struct error *err)
{
    if (words->command == CONTROL_PS || (words->job != NULL && strchr(words->job, '/') != NULL))
        return 0;
    int result = words->job != NULL ? choose_named(words, places, at, err)
                                    : choose_only(words, places, at, err);
    if (result < 0 && (words->command == CONTROL_WAIT || words->command == CONTROL_ATTACH))
        err->status = STATUS_LAUNCHER;
    return result;
}

/* TMPDIR becomes that of the place. */
static void take(const struct places *places, size_t at, struct job_list *out)
{
    *out = places->lists.items[at];
    if (places->tmpdirs[at] != NULL)
        setenv("TMPDIR", places->tmpdirs[at], 1);
    else
        unsetenv("TMPDIR");
}

int control_slurm_jobs(struct control_words *words, struct job_list *list, struct job_lists *more,
                       struct error *err)
{
    struct places places = {.lists = {.count = 0}};
    find_places(words->slurm_job, &places);
    size_t count = places.lists.count, at = 0;
    for (size_t i = count; i-- > 0;)
        at = places.lists.items[i].folder < 0 ? at : i; /* the first one with a folder */
    int result = choose(words, &places, &at, err);
    for (size_t i = 0; i < count; i++) {
        if (result == 0 && i == at)
            take(&places, i, list);
        else if (result == 0 && words->command == CONTROL_PS)
            MEM_ADD(more->items, more->count) = places.lists.items[i];
        else
            job_list_destroy(&places.lists.items[i]);
        free(places.tmpdirs[i]);
    }
    free(places.tmpdirs);
    free(places.lists.items);
    return result;
}
