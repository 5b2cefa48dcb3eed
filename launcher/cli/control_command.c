/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "cli/control_client.h"
#include "cli/control_show.h"
#include "cli/control_words.h"
#include "cli/features.h"
#include "cli/texts.h"
#include "driver/control/folder.h"

#define TEXT_MAX ((size_t)1 << 30)
#define STATUS_REFUSED 1
#define COMMAND_WIDTH 60

struct command {
    struct control_words words;
    struct job_list list;
    struct job_lists more; /* of ps --slurm-job */
    struct buf out;
};

static json_t *request_of(const struct control_words *words)
{
    static const struct {
        const char *object, *time; /* keys of the operand and the time */
    } keys[CONTROL_COMMANDS] = {
        [CONTROL_STOP] = {NULL, "grace_s"},     [CONTROL_SIGNAL] = {"signal", NULL},
        [CONTROL_DRAIN] = {"host", "within_s"}, [CONTROL_UNDRAIN] = {"host", NULL},
        [CONTROL_ADD] = {"hosts", NULL},
    };
    json_t *request = json_pack("{s:s}", "do", control_forms[words->command].word);
    if (words->command == CONTROL_STOP || words->command == CONTROL_SIGNAL)
        control_client_sign(request, control_forms[words->command].word);
    if (words->object != NULL)
        json_object_set_new(request, keys[words->command].object, json_string(words->object));
    if (words->has_time)
        json_object_set_new(request, keys[words->command].time,
                            json_real((double)words->time_ms / 1000));
    if (words->ranks != NULL)
        json_object_set_new(request, "ranks", json_string(words->ranks));
    return request;
}

static void describe(const struct control_words *words, const json_t *answer, struct buf *out)
{
    if (words->json) {
        control_show_json(answer, out);
        return;
    }
    switch (words->command) {
    case CONTROL_STATUS: control_status_text(answer, out); break;
    case CONTROL_SIGNAL: buf_printf(out, "sent %s\n", words->object); break;
    case CONTROL_DRAIN: buf_printf(out, "draining %s\n", words->object); break;
    case CONTROL_UNDRAIN: buf_printf(out, "the job may use %s again\n", words->object); break;
    case CONTROL_ADD: buf_printf(out, "the job may use %s\n", words->object); break;
    default: break;
    }
}

/* The answer is in `command->out`. */
static int ask(struct command *command, int fd, struct error *err)
{
    json_t *answer = control_client_ask(fd, request_of(&command->words), err);
    if (answer == NULL)
        return -1;
    describe(&command->words, answer, &command->out);
    json_decref(answer);
    return 0;
}

static int show_record(struct command *command, const char *id, struct error *err)
{
    enum job_record_state state;
    json_t *record = job_record_read(command->list.folder, id, &state);
    if (record == NULL)
        return error_set(err, "cannot read the record of job %s", id);
    if (command->words.json) {
        json_object_set_new(record, "state",
                            json_string(state == JOB_RECORD_ENDED ? "ended" : "lost"));
        control_show_json(record, &command->out);
    } else {
        control_record_text(record, state, (double)clock_wall_ns() / 1e9, &command->out);
    }
    json_decref(record);
    return 0;
}

/* The id of a job that has ended. NULL: it runs, or there is none, and dialling it says so. */
static const char *find_over(const struct command *command, const char *word)
{
    bool is_path = word != NULL && strchr(word, '/') != NULL;
    const char *id = is_path ? NULL : job_list_find(&command->list, word, true, NULL);
    return id != NULL && !job_folder_runs(command->list.folder, id) ? id : NULL;
}

/* The id of a running job. The caller frees it. NULL: it is given by a path, or does not exist. */
static char *running_id(const struct command *command)
{
    const char *word = command->words.job;
    if (word != NULL && strchr(word, '/') != NULL)
        return NULL;
    return mem_strdup(job_list_find(&command->list, word, false, NULL));
}

static int status(struct command *command, struct error *err)
{
    const char *over = find_over(command, command->words.job);
    if (over != NULL)
        return show_record(command, over, err);
    int fd AUTO_FD = control_client_dial(&command->list, command->words.job, err);
    char *id AUTO_FREE = running_id(command);
    if (ask(command, fd, err) == 0)
        return 0;
    bool has_ended = id != NULL && !job_folder_runs(command->list.folder, id);
    return has_ended ? show_record(command, id, err) : -1; /* while we asked it */
}

/* Waits at `fd` for the end of a job. `id` is NULL if only the path of its socket is known. A job
 * that ends just now may close the connection first; then its record has the end. */
static json_t *await_end(const struct command *command, int fd, const char *id, struct error *err)
{
    json_t *end = NULL;
    if (control_client_ask_end(fd, err) == 0)
        end = control_client_receive(fd, CONTROL_FOREVER_MS, err);
    return end != NULL || id == NULL ? end : control_client_end(&command->list, id, err);
}

static int describe_end(struct command *command, const json_t *end, const char *id)
{
    long long status = (long long)json_integer_value(json_object_get(end, "status"));
    if (command->words.json)
        control_show_json(end, &command->out);
    else
        buf_printf(&command->out, "%s ended with status %lld\n", id == NULL ? "the job" : id,
                   status);
    return (int)status;
}

/* Returns the status of the job. -1: it is not known. */
static int wait_for(struct command *command, struct error *err)
{
    char *id AUTO_FREE = mem_strdup(find_over(command, command->words.job));
    json_t *end = id == NULL ? NULL : control_client_end(&command->list, id, err);
    if (id == NULL) {
        int fd AUTO_FD = control_client_dial(&command->list, command->words.job, err);
        id = running_id(command);
        end = fd < 0 ? NULL : await_end(command, fd, id, err);
    }
    int result = end == NULL ? -1 : describe_end(command, end, id);
    json_decref(end);
    if (result < 0 && err->status == 0)
        err->status = STATUS_LAUNCHER;
    return result;
}

/* A script that lost the name of its job must not end another one. A user at a terminal sees which
 * job it is. */
static int check_target(const struct command *command, struct error *err)
{
    const struct control_words *words = &command->words;
    const char *id = words->job != NULL ? NULL : job_list_find(&command->list, NULL, false, err);
    if (id == NULL)
        return words->job != NULL ? 0 : -1;
    enum job_record_state state;
    json_t *record = job_record_read(command->list.folder, id, &state);
    struct buf about AUTO_BUF = BUF_INIT(TEXT_MAX);
    control_show_cut(control_text_of(record, "command", "?"), COMMAND_WIDTH, &about);
    buf_puts(&about, ", in ");
    control_show_text(control_text_of(record, "folder", "?"), &about);
    json_decref(record);
    const char *verb = control_forms[words->command].word;
    const char *object = words->object != NULL ? words->object : "";
    if (isatty(STDIN_FILENO) == 0)
        return error_usage(err,
                           "%s needs the job unless you are at a terminal; 'hvdrun %s %s%s%s' is "
                           "for the one that runs here (%s)",
                           verb, verb, id, object[0] != '\0' ? " " : "", object, buf_text(&about));
    fprintf(stderr, "hvdrun: %s %s (%s)\n", verb, id, buf_text(&about));
    return 0;
}

static void ignore_once(int number)
{
    (void)number;
}

static int stop(struct command *command, struct error *err)
{
    /* Slurm ends this step soon after the batch script. A second SIGTERM is meant. */
    const struct sigaction once = {.sa_handler = ignore_once, .sa_flags = (int)SA_RESETHAND};
    if (check_target(command, err) < 0)
        return -1;
    int fd AUTO_FD = control_client_dial(&command->list, command->words.job, err);
    char *id AUTO_FREE = running_id(command);
    if (command->words.slurm_job != NULL)
        sigaction(SIGTERM, &once, NULL);
    if (ask(command, fd, err) < 0)
        return -1;
    buf_clear(&command->out);
    json_t *end = await_end(command, fd, id, err);
    if (end == NULL)
        return -1;
    describe_end(command, end, id);
    json_decref(end);
    return 0;
}

static int simple(struct command *command, struct error *err)
{
    int fd AUTO_FD = control_client_dial(&command->list, command->words.job, err);
    return ask(command, fd, err);
}

/* Who asks for logs without a job after a failure means the job that has failed. */
static const char *find_log(const struct command *command, struct error *err)
{
    const struct control_words *words = &command->words;
    bool only =
        words->command == CONTROL_LOGS && words->job == NULL && command->list.running.count == 0;
    const char *last = only ? job_list_last(&command->list, NULL) : NULL;
    if (last != NULL)
        fprintf(stderr, "hvdrun: no job runs; this is the output of %s, which ended last\n", last);
    return last != NULL ? last : job_list_find(&command->list, words->job, true, err);
}

/* Shows the log of the job. Returns its id, borrowed. NULL: there is no such job, or no log. */
static const char *logs(const struct command *command, enum control_log_end *end, struct error *err)
{
    const char *id = find_log(command, err);
    if (id == NULL)
        return NULL;
    *end = control_log(&command->list, id, &command->words, err);
    return *end == CONTROL_LOG_FAILED ? NULL : id;
}

/* Who follows the output of a job that is then lost should know that more is missing. */
static int show_logs(const struct command *command, struct error *err)
{
    enum control_log_end end = CONTROL_LOG_FAILED;
    struct error lost = ERROR_INIT;
    const char *id = logs(command, &end, err);
    if (id == NULL)
        return -1;
    if (end == CONTROL_LOG_OVER)
        json_decref(control_client_end(&command->list, id, &lost));
    return lost.text[0] == '\0' ? 0 : error_set(err, "%s", lost.text);
}

/* Returns the status of the job, or 0 if the user has left it. */
static int attach(const struct command *command, struct error *err)
{
    enum control_log_end end = CONTROL_LOG_FAILED;
    const char *id = logs(command, &end, err);
    json_t *record =
        id == NULL || end == CONTROL_LOG_LEFT ? NULL : control_client_end(&command->list, id, err);
    int result = record == NULL ? -1 : (int)json_integer_value(json_object_get(record, "status"));
    json_decref(record);
    if (end == CONTROL_LOG_LEFT) {
        fprintf(stderr, "\nhvdrun: detached; 'hvdrun attach %s' attaches again\n", id);
        return 0;
    }
    if (result < 0 && err->status == 0)
        err->status = STATUS_LAUNCHER;
    return result;
}

/* The path of a socket in a folder of jobs says the same as the id of a job in it, so that every
 * command can read the record and the log there, too. */
static void take_path(struct command *command, char **id)
{
    const char *path = command->words.job, *slash = path == NULL ? NULL : strrchr(path, '/');
    *id = slash == NULL || slash == path ? NULL : job_folder_job(slash + 1, JOB_CONTROL_SUFFIX);
    if (*id == NULL)
        return;
    char *folder AUTO_FREE = mem_strndup(path, (size_t)(slash - path));
    struct job_list there;
    enum job_record_state state;
    job_list_read_at(folder, NULL, &there);
    json_t *record = there.folder < 0 ? NULL : job_record_read(there.folder, *id, &state);
    if (record == NULL) {
        job_list_destroy(&there);
        return;
    }
    json_decref(record);
    job_list_destroy(&command->list);
    command->list = there;
    command->words.job = *id;
}

static bool take_if_there(void *context, const char *path, const char *user)
{
    struct command *command = context;
    struct job_list there;
    (void)user;
    job_list_read_at(path, command->words.slurm_job, &there);
    bool found = job_list_find(&there, command->words.job, true, NULL) != NULL;
    if (!found) {
        job_list_destroy(&there);
        return false;
    }
    job_list_destroy(&command->list);
    command->list = there;
    return true;
}

/* Root means the job of another user if there is no own one. */
static void look_at_others(struct command *command)
{
    const char *word = command->words.job;
    if (geteuid() == 0 && word != NULL && word[0] != '\0' && strchr(word, '/') == NULL &&
        job_list_find(&command->list, word, true, NULL) == NULL)
        job_list_others(take_if_there, command);
}

static int check_folder(const struct command *command, struct error *err)
{
    const char *place = getenv("TMPDIR"), *job = command->words.job;
    bool is_path = job != NULL && strchr(job, '/') != NULL;
    if (command->list.folder >= 0 || is_path || place == NULL || place[0] == '\0' ||
        access(place, F_OK) == 0)
        return 0;
    return error_errno(err, errno, "cannot look for jobs in TMPDIR=%s", place);
}

/* 0: stdout is not a terminal. */
static size_t terminal_width(void)
{
    struct winsize size = {.ws_col = 0};
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static int run(struct command *command, struct error *err)
{
    control_run *of_feature;
    if (features_command(command->words.command, &of_feature, err) < 0)
        return -1;
    if (of_feature != NULL)
        return of_feature(&command->list, &command->words, &command->out, err);
    switch (command->words.command) {
    case CONTROL_PS:
        control_ps(&command->list, &command->more, &command->words, terminal_width(),
                   &command->out);
        return 0;
    case CONTROL_STATUS: return status(command, err);
    case CONTROL_LOGS: return show_logs(command, err);
    case CONTROL_ATTACH: return attach(command, err);
    case CONTROL_WAIT: return wait_for(command, err);
    case CONTROL_STOP: return stop(command, err);
    case CONTROL_SIGNAL: return check_target(command, err) < 0 ? -1 : simple(command, err);
    case CONTROL_DRAIN:
    case CONTROL_UNDRAIN:
    case CONTROL_ADD: return simple(command, err);
    default: break;
    }
    return -1;
}

static int find_and_run(struct command *command, int argc, char *const *argv, struct error *err)
{
    char *id AUTO_FREE = NULL;
    if (command->words.slurm_job == NULL)
        job_list_read(&command->list);
    else if (control_slurm_enter(&command->words, argc, argv, err) < 0 ||
             control_slurm_jobs(&command->words, &command->list, &command->more, err) < 0)
        return -1;
    take_path(command, &id);
    look_at_others(command);
    return check_folder(command, err) < 0 ? -1 : run(command, err);
}

int control_command(int argc, char *const *argv)
{
    struct command command = {.list = {.folder = -1}, .out = BUF_INIT(TEXT_MAX)};
    struct error err = ERROR_INIT;
    int result = control_words_parse(argc, argv, &command.words, &err);
    if (result == 0)
        return -1;
    if (result > 0 && command.words.help) {
        control_help(command.words.command, &command.out);
        result = 0;
    } else if (result > 0) {
        result = find_and_run(&command, argc, argv, &err);
    }
    job_list_destroy(&command.list);
    job_lists_destroy(&command.more);
    if (result >= 0 &&
        fd_write_all(STDOUT_FILENO, buf_text(&command.out), command.out.length) < 0 &&
        errno != EPIPE)
        result = error_errno(&err, errno, "cannot write");
    buf_destroy(&command.out);
    if (result >= 0)
        return result;
    fprintf(stderr, "hvdrun: %s\n", err.text);
    return err.status != 0 ? err.status : STATUS_REFUSED;
}
