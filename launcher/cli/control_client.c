/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_client.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/plain.h"
#include "base/text.h"
#include "cli/control_show.h"
#include "driver/control/control.h"
#include "driver/control/folder.h"
#include "driver/control/record.h"
#include "driver/control/request.h"
#include "io/child.h"

#define ANSWER_MAX ((size_t)256 << 20)
#define POLL_MS 60000
#define PAUSE_MS 10
#define COMMAND_WIDTH 40 /* of a command in a list of jobs */
#define END_TRIES 100    /* of a driver that closes its socket and then its record */

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

/* What the record of a job says; "": nothing. The caller frees it. */
static char *recorded(int folder, const char *id, const char *key)
{
    enum job_record_state state;
    json_t *record = job_record_read(folder, id, &state);
    char *text = mem_strdup(control_text_of(record, key, ""));
    json_decref(record);
    return text;
}

char *job_list_name(const struct job_list *list, const char *id)
{
    char *name = recorded(list->folder, id, "name");
    if (!name_is_safe(name, strlen(name)))
        mem_free_at(&name);
    return name;
}

/* It is "hvdrun-a-17 (python train.py)" in the list. */
static void take(struct job_search *search, const char *id)
{
    char *command AUTO_FREE = recorded(search->folder, id, "command");
    buf_printf(search->names, "%s%s", search->names->length > 0 ? ", " : "", id);
    if (command[0] != '\0') {
        buf_puts(search->names, " (");
        control_show_cut(command, COMMAND_WIDTH, search->names);
        buf_putc(search->names, ')');
    }
    search->found = search->count++ == 0 ? id : search->found;
}

/* NULL: any job. */
static void look_in(struct job_search *search, const struct strv *ids, const char *word)
{
    bool exact = word != NULL && strv_has(ids, word);
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
    char *squeue AUTO_FREE = child_in_path("squeue");
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
    bool named = word != NULL && word[0] != '\0' && !strv_has(&list->running, word) &&
                 !strv_has(&list->over, word);
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

/* Connects to the socket `name` in a folder. -1 and errno: no process listens there, or its queue
 * of connections stays full. */
static int dial_in(int dir, const char *folder, const char *name, int64_t until_ms)
{
    struct sockaddr_un address;
    if (control_address(dir, folder, name, &address) < 0)
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const struct sockaddr *to = (const struct sockaddr *)&address;
    while (fd >= 0 && TEMP_FAILURE_RETRY(connect(fd, to, sizeof(address))) < 0) {
        if (errno == EAGAIN && clock_mono_ms() < until_ms)
            poll(NULL, 0, PAUSE_MS); /* a full queue gives no event */
        else
            fd_close(&fd);
    }
    return fd;
}

static int dial_path(const char *path, struct error *err)
{
    const char *name = strrchr(path, '/') + 1;
    char *folder AUTO_FREE = mem_strndup(path, (size_t)(name - path));
    int dir AUTO_FD = fd_open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    int fd = dir < 0 ? -1 : dial_in(dir, folder, name, clock_mono_ms() + CONTROL_DIAL_MS);
    return fd < 0 ? error_errno(err, errno, "cannot connect to the job at %s", path) : fd;
}

static int lost(const char *job, struct error *err)
{
    return error_set(err, "job %s is lost: its hvdrun is gone and did not write how the job ended",
                     job);
}

/* A job that has just started has a record before it has a socket. */
int control_client_dial_in(const struct job_list *list, const char *job, int64_t until_ms,
                           struct error *err)
{
    char *name AUTO_FREE = mem_printf("%s" JOB_CONTROL_SUFFIX, job);
    int fd = dial_in(list->folder, list->path, name, until_ms);
    while (fd < 0 && (errno == ENOENT || errno == ECONNREFUSED) && clock_mono_ms() < until_ms &&
           job_folder_runs(list->folder, job)) {
        poll(NULL, 0, PAUSE_MS);
        fd = dial_in(list->folder, list->path, name, until_ms);
    }
    if (fd >= 0)
        return fd;
    int errnum = errno;
    enum job_record_state state = JOB_RECORD_RUNNING;
    json_decref(job_record_read(list->folder, job, &state));
    if (state == JOB_RECORD_LOST)
        return lost(job, err);
    if (state == JOB_RECORD_ENDED)
        return error_set(err, "job %s has ended", job);
    if (errnum != EAGAIN && errnum != ENOENT && errnum != ECONNREFUSED)
        return error_errno(err, errnum, "cannot connect to job %s", job);
    /* its queue of connections is full, or it could not make the socket */
    return error_set(err, "job %s does not answer; is it suspended?", job);
}

int control_client_dial(const struct job_list *list, const char *job, struct error *err)
{
    if (job != NULL && strchr(job, '/') != NULL)
        return dial_path(job, err);
    const char *id = job_list_find(list, job, false, err);
    int64_t until_ms = clock_mono_ms() + CONTROL_DIAL_MS;
    return id == NULL ? -1 : control_client_dial_in(list, id, until_ms, err);
}

/* False: the time is over. Each poll(2) waits for POLL_MS at most: its time is an int. */
static bool wait_for(int fd, short what, int64_t until_ms)
{
    for (;;) {
        int64_t rest = until_ms - clock_mono_ms();
        int64_t left = rest < POLL_MS ? rest : POLL_MS;
        struct pollfd entry = {.fd = fd, .events = what};
        int count = poll(&entry, 1, left > 0 ? (int)left : 0);
        if (count > 0 || rest <= 0)
            return count > 0;
    }
}

static int send_line(int fd, const char *line, int64_t until_ms, struct error *err)
{
    for (size_t left = strlen(line); left > 0;) {
        ssize_t put = send(fd, line, left, MSG_NOSIGNAL);
        if (put > 0) {
            line += put;
            left -= (size_t)put;
        } else if (errno != EAGAIN && errno != EINTR) {
            return error_errno(err, errno, "cannot talk to the job");
        } else if (!wait_for(fd, POLLOUT, until_ms)) {
            return error_set(err, "the job does not answer; is it suspended?");
        }
    }
    return 0;
}

static int read_line(int fd, struct buf *line, int64_t until_ms, struct error *err)
{
    char bytes[65536];
    while (memchr(buf_text(line), '\n', line->length) == NULL) {
        ssize_t got = fd_read(fd, bytes, sizeof(bytes));
        if (got == 0 || (got < 0 && errno != EAGAIN))
            return error_set(err, "the job has ended or closed the connection without an answer");
        if (got > 0 && buf_append(line, bytes, (size_t)got) < 0)
            return error_set(err, "the job's answer is too long");
        if (got < 0 && !wait_for(fd, POLLIN, until_ms))
            return error_set(err, "the job does not answer; is it suspended?");
    }
    return 0;
}

int control_client_send(int fd, json_t *request_take, int64_t until_ms, struct error *err)
{
    if (json_object_get(request_take, "protocol") == NULL)
        json_object_set_new(request_take, "protocol", json_integer(CONTROL_PROTOCOL));
    char *text AUTO_FREE = json_dumps(request_take, JSON_COMPACT);
    char *line AUTO_FREE = mem_printf("%s\n", text == NULL ? "{}" : text);
    json_decref(request_take);
    return fd < 0 ? -1 : send_line(fd, line, until_ms, err);
}

json_t *control_client_receive(int fd, int64_t until_ms, struct error *err)
{
    struct buf answer_line AUTO_BUF = BUF_INIT(ANSWER_MAX);
    if (read_line(fd, &answer_line, until_ms, err) < 0)
        return NULL;
    json_t *answer =
        json_loadb(buf_text(&answer_line), answer_line.length, JSON_DISABLE_EOF_CHECK, NULL);
    const char *refused = json_string_value(json_object_get(answer, "error"));
    char *why AUTO_FREE = mem_strdup(refused);
    if (why != NULL)
        plain_text(why); /* text from outside must not control the terminal */
    if (why != NULL && why[0] != '\0')
        error_set(err, "%s", why);
    else if (why != NULL || !json_is_object(answer))
        error_set(err,
                  "cannot read the job's answer; most likely it runs another version of hvdrun");
    else
        return answer;
    json_decref(answer);
    return NULL;
}

int control_client_ask_end(int fd, struct error *err)
{
    return control_client_send(fd, json_pack("{s:s}", "do", "wait"),
                               clock_mono_ms() + CONTROL_ANSWER_MS, err);
}

json_t *control_client_end(const struct job_list *list, const char *id, struct error *err)
{
    enum job_record_state state = JOB_RECORD_RUNNING;
    json_t *record = NULL;
    for (int i = 0; i < END_TRIES && state == JOB_RECORD_RUNNING; i++) {
        json_decref(record);
        record = job_record_read(list->folder, id, &state);
        if (state == JOB_RECORD_RUNNING)
            poll(NULL, 0, PAUSE_MS);
    }
    if (record != NULL && state == JOB_RECORD_ENDED)
        return record;
    json_decref(record);
    if (state != JOB_RECORD_RUNNING)
        lost(id, err);
    return NULL;
}

void control_client_sign(json_t *request, const char *command)
{
    const struct passwd *me = getpwuid(geteuid());
    json_object_set_new(request, "command", json_string(command));
    if (me != NULL)
        json_object_set_new(request, "user", json_string(me->pw_name));
}

json_t *control_client_ask(int fd, json_t *request_take, struct error *err)
{
    int64_t until_ms = clock_mono_ms() + CONTROL_ANSWER_MS;
    if (control_client_send(fd, request_take, until_ms, err) < 0)
        return NULL;
    return control_client_receive(fd, until_ms, err);
}
