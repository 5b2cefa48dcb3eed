/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_slurm.h"

#include <ctype.h>
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
#include "cli/control_jobs.h"
#include "cli/env_options.h"
#include "driver/control/folder.h"
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

static void use_tmpdir(const char *value)
{
    if (value != NULL)
        setenv("TMPDIR", value, 1);
    else
        unsetenv("TMPDIR");
}

/* The running job whose hvdrun is this process; the caller's. NULL: the process is another one. */
static char *job_of(const char *pid)
{
    struct job_list list;
    char *found = NULL;
    job_list_read(&list);
    for (size_t i = 0; i < list.running.count && found == NULL; i++) {
        enum job_record_state state;
        json_t *record = job_record_read(list.folder, list.running.items[i], &state);
        if (json_integer_value(json_object_get(record, "pid")) == strtoll(pid, NULL, 10))
            found = mem_strdup(list.running.items[i]);
        json_decref(record);
    }
    job_list_destroy(&list);
    return found;
}

/* The job of this process if that belongs to the Slurm job. TMPDIR is then that of the process. */
static char *look_at(const char *pid, const char *slurm_job)
{
    struct buf text AUTO_BUF = BUF_INIT(ENVIRON_MAX);
    char *path AUTO_FREE = mem_printf("/proc/%s/environ", pid);
    struct stat info;
    if (stat(path, &info) < 0 || info.st_uid != geteuid() || fd_read_file(path, &text, NULL) < 0)
        return NULL;
    const char *job = proc_variable(&text, "SLURM_JOB_ID");
    if (job == NULL || strcmp(job, slurm_job) != 0)
        return NULL;
    use_tmpdir(proc_variable(&text, "TMPDIR"));
    return job_of(pid);
}

/* Sets TMPDIR and returns the job of hvdrun; the caller's. NULL: there is none, or several. */
static char *find_job(const char *slurm_job)
{
    const char *before = getenv("TMPDIR");
    char *own AUTO_FREE = before == NULL ? NULL : mem_strdup(before);
    char *tmpdir AUTO_FREE = NULL, *found = NULL;
    int count = 0;
    DIR *dir = opendir("/proc");
    for (struct dirent *entry = dir == NULL ? NULL : readdir(dir); entry != NULL;
         entry = readdir(dir)) {
        char *job =
            isdigit((unsigned char)entry->d_name[0]) ? look_at(entry->d_name, slurm_job) : NULL;
        if (job == NULL)
            continue;
        const char *there = getenv("TMPDIR");
        free(found);
        free(tmpdir);
        found = job;
        tmpdir = there == NULL ? NULL : mem_strdup(there);
        count++;
    }
    if (dir != NULL)
        closedir(dir);
    use_tmpdir(count > 0 ? tmpdir : own);
    if (count > 1)
        mem_free_at(&found);
    return found;
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
