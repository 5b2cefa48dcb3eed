/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_slurm.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "cli/config.h"
#include "cli/control_jobs.h"
#include "driver/control/record.h"
#include "io/child.h"
#include "io/proc.h"

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

static int become_srun(const struct control_words *words, int argc, char *const *argv,
                       struct error *err)
{
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

/* The running job whose hvdrun is this process, below this TMPDIR; the caller's. NULL: the process
 * is another one. */
static char *job_of(int64_t pid, const char *tmpdir)
{
    struct job_list list;
    char *found = NULL;
    job_list_read_in(tmpdir, &list);
    for (size_t i = 0; i < list.running.count && found == NULL; i++) {
        enum job_record_state state;
        json_t *record = job_record_read(list.folder, list.running.items[i], &state);
        if (json_integer_value(json_object_get(record, "pid")) == pid)
            found = mem_strdup(list.running.items[i]);
        json_decref(record);
    }
    job_list_destroy(&list);
    return found;
}

struct found {
    char *job, *tmpdir; /* NULL: that process has none */
    int count;
};

/* The job of this process if that belongs to the Slurm job. */
static void look_at(int64_t pid, const char *slurm_job, struct found *found)
{
    struct buf text AUTO_BUF = BUF_INIT(ENVIRON_MAX);
    char *path AUTO_FREE = mem_printf("/proc/%lld/environ", (long long)pid);
    struct stat info;
    if (stat(path, &info) < 0 || info.st_uid != geteuid() || fd_read_file(path, &text, NULL) < 0)
        return;
    const char *job = proc_variable(&text, "SLURM_JOB_ID");
    const char *tmpdir = proc_variable(&text, "TMPDIR");
    char *id = job == NULL || strcmp(job, slurm_job) != 0 ? NULL : job_of(pid, tmpdir);
    if (id == NULL)
        return;
    free(found->job);
    free(found->tmpdir);
    found->job = id;
    found->tmpdir = tmpdir == NULL ? NULL : mem_strdup(tmpdir);
    found->count++;
}

/* Returns the job of hvdrun, and sets TMPDIR to that of its process. If there are several, the
 * result is NULL, and TMPDIR that of one of them. The caller frees the result. */
static char *find_job(const char *slurm_job)
{
    struct found found = {.count = 0};
    DIR *dir = opendir("/proc");
    for (struct dirent *entry = dir == NULL ? NULL : readdir(dir); entry != NULL;
         entry = readdir(dir)) {
        int64_t pid;
        if (parse_int(entry->d_name, 1, INT32_MAX, &pid, NULL) == 0)
            look_at(pid, slurm_job, &found);
    }
    if (dir != NULL)
        closedir(dir);
    if (found.tmpdir != NULL)
        setenv("TMPDIR", found.tmpdir, 1);
    else if (found.count > 0)
        unsetenv("TMPDIR");
    free(found.tmpdir);
    if (found.count > 1)
        mem_free_at(&found.job);
    return found.job;
}

int control_slurm_enter(struct control_words *words, int argc, char *const *argv, char **id,
                        struct error *err)
{
    const char *job = words->slurm_job;
    if (job == NULL)
        return 0;
    if (!control_slurm_is_there(job, environ))
        return become_srun(words, argc, argv, err);
    *id = find_job(job);
    if (words->job == NULL && words->command != CONTROL_PS)
        words->job = *id;
    return 0;
}
