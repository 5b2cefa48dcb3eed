/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_client.h"

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
#include "base/plain.h"
#include "driver/control/control.h"
#include "driver/control/folder.h"
#include "driver/control/record.h"

#define ANSWER_MAX ((size_t)256 << 20)
#define POLL_MS 60000
#define PAUSE_MS 10
#define END_TRIES 100 /* of a driver that closes its socket and then its record */

/* Connects to the socket `name` in a folder. -1 and errno: no process listens there, or its queue
 * of connections stays full. */
static int dial_in(int dir, const char *folder, const char *name, int64_t until_ms)
{
    struct sockaddr_un address;
    if (control_address(dir, folder, name, &address) < 0)
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    while (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
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
    enum job_record_state state = JOB_RECORD_RUNNING;
    json_decref(job_record_read(list->folder, job, &state));
    if (state == JOB_RECORD_LOST)
        return lost(job, err);
    if (state == JOB_RECORD_ENDED)
        return error_set(err, "job %s has ended", job);
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

int control_client_send(int fd, const json_t *request, int64_t until_ms, struct error *err)
{
    char *text AUTO_FREE = json_dumps(request, JSON_COMPACT);
    char *line AUTO_FREE = mem_printf("%s\n", text == NULL ? "{}" : text);
    return send_line(fd, line, until_ms, err);
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
    json_t *request = json_pack("{s:s, s:i}", "do", "wait", "protocol", CONTROL_PROTOCOL);
    int result = control_client_send(fd, request, clock_mono_ms() + CONTROL_ANSWER_MS, err);
    json_decref(request);
    return result;
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

json_t *control_client_ask(int fd, const json_t *request, struct error *err)
{
    int64_t until_ms = clock_mono_ms() + CONTROL_ANSWER_MS;
    if (control_client_send(fd, request, until_ms, err) < 0)
        return NULL;
    return control_client_receive(fd, until_ms, err);
}
