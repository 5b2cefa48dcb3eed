/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_jobs.h"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "cli/control_show.h"
#include "driver/control/folder.h"
#include "driver/control/record.h"
#include "node/runtime_dir.h"

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(struct strv *ids)
{
    if (ids->count > 1)
        qsort(ids->items, ids->count, sizeof(*ids->items), by_name);
}

static bool is_in(const json_t *record, const char *slurm_job)
{
    return slurm_job == NULL || strcmp(control_text_of(record, "slurm_job", ""), slurm_job) == 0;
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
    if (is_in(record, jobs->slurm_job) && name_is_safe(id, strlen(id)) && !strv_has(jobs->ids, id))
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
