/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/progress.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/text.h"
#include "wire/control.pb-c.h"

#define FRAME_REPORTS 64 /* in one frame: at most some 300 KiB */
/* Of the link to the driver: what workers say about their progress must not be what fills it. */
#define QUEUE_MAX (LINK_QUEUE_MAX / 8)

struct report {
    uint32_t epoch, seat;
    int64_t when_ns;
    struct progress progress;
};

#define TOKEN_BYTES 16
#define TOKEN_LENGTH (2 * TOKEN_BYTES)

struct progress_desk {
    const struct post *post;
    bool (*has_seat)(void *context, uint32_t epoch, uint32_t seat);
    void *context;
    char token[TOKEN_LENGTH + 1]; /* of the status endpoint; "": there is none yet */
    struct loop_timer *timer;     /* set: a frame was sent less than a period ago */
    struct report *reports;       /* that wait */
    size_t count;
};

static void period_over(void *context);

static void make_token(char *out)
{
    uint8_t random[TOKEN_BYTES];
    if (getrandom(random, sizeof(random), GRND_NONBLOCK) == (ssize_t)sizeof(random))
        text_hex(random, sizeof(random), out);
}

struct progress_desk *
progress_desk_create(struct loop *loop, const struct post *post,
                     bool (*has_seat)(void *context, uint32_t epoch, uint32_t seat), void *context)
{
    struct progress_desk *desk =
        MEM_NEW((struct progress_desk){.post = post, .has_seat = has_seat, .context = context});
    desk->timer = loop_timer_create(loop, period_over, desk);
    return desk;
}

static void clear(struct progress_desk *desk)
{
    for (size_t i = 0; i < desk->count; i++)
        progress_clear(&desk->reports[i].progress);
    free(desk->reports);
    desk->reports = NULL;
    desk->count = 0;
}

void progress_desk_destroy(struct progress_desk *desk)
{
    if (desk == NULL)
        return;
    clear(desk);
    loop_timer_destroy(desk->timer);
    free(desk);
}

/* The message borrows the texts of the report. */
static void fill(Hvdrun__RankProgress *message, const struct report *report)
{
    const struct progress *progress = &report->progress;
    size_t count = progress->metric_count;
    hvdrun__rank_progress__init(message);
    message->seat = report->seat;
    message->epoch = report->epoch;
    message->when_ns = (uint64_t)report->when_ns;
    message->percent = progress->percent;
    message->eta_s = progress->eta_s;
    message->text = progress->text != NULL ? progress->text : "";
    message->names = mem_array(count + 1, sizeof(char *));
    message->values = mem_array(count + 1, sizeof(char *));
    message->n_names = message->n_values = count;
    for (size_t i = 0; i < count; i++) {
        message->names[i] = progress->metrics[i].name;
        message->values[i] = progress->metrics[i].value;
    }
}

static void send_some(const struct progress_desk *desk, size_t from, size_t count)
{
    Hvdrun__RankProgress items[FRAME_REPORTS], *list[FRAME_REPORTS];
    Hvdrun__Progress message = HVDRUN__PROGRESS__INIT;
    for (size_t i = 0; i < count; i++) {
        fill(&items[i], &desk->reports[from + i]);
        list[i] = &items[i];
    }
    message.workers = list;
    message.n_workers = count;
    post_message(desk->post, FRAME_PROGRESS, &message.base);
    for (size_t i = 0; i < count; i++) {
        free(items[i].names);
        free(items[i].values);
    }
}

void progress_desk_flush(struct progress_desk *desk)
{
    const struct link *link = post_link(desk->post);
    if (desk->count == 0)
        return;
    loop_timer_set(desk->timer, PROGRESS_PERIOD_MS);
    if (link != NULL && link_queued(link) > QUEUE_MAX)
        return;
    for (size_t at = 0; at < desk->count; at += FRAME_REPORTS) {
        size_t left = desk->count - at;
        send_some(desk, at, left < FRAME_REPORTS ? left : FRAME_REPORTS);
    }
    clear(desk);
}

static void period_over(void *context)
{
    progress_desk_flush(context);
}

static struct report *find(struct progress_desk *desk, uint32_t epoch, uint32_t seat)
{
    for (size_t i = 0; i < desk->count; i++) {
        if (desk->reports[i].seat == seat && desk->reports[i].epoch == epoch)
            return &desk->reports[i];
    }
    struct report *report = &MEM_ADD(desk->reports, desk->count);
    *report = (struct report){epoch, seat, 0, PROGRESS_INIT};
    return report;
}

void progress_desk_take(struct progress_desk *desk, uint32_t epoch, uint32_t seat, int64_t when_ns,
                        struct progress *progress)
{
    struct report *report = find(desk, epoch, seat);
    progress_move(&report->progress, progress);
    report->when_ns = when_ns;
    if (!loop_timer_is_set(desk->timer))
        progress_desk_flush(desk);
}

/* The status endpoint */

#define BEARER "Bearer "
#define NUMBER_MAX 10 /* digits of an epoch or a seat */

/* "3.17" */
static bool read_key(const char *key, uint32_t *epoch, uint32_t *seat)
{
    const char *dot = strchr(key, '.');
    char text[NUMBER_MAX + 1] = "";
    int64_t one = 0, other = 0;
    if (dot == NULL || dot - key > NUMBER_MAX)
        return false;
    memcpy(text, key, (size_t)(dot - key));
    if (parse_int(text, 0, UINT32_MAX, &one, NULL) < 0 ||
        parse_int(dot + 1, 0, UINT32_MAX, &other, NULL) < 0)
        return false;
    *epoch = (uint32_t)one;
    *seat = (uint32_t)other;
    return true;
}

/* Takes as long for a token that begins like ours as for any other one. */
static bool has_token(const struct progress_desk *desk, const char *authorization)
{
    if (authorization == NULL || strncmp(authorization, BEARER, strlen(BEARER)) != 0 ||
        strlen(authorization) != strlen(BEARER) + TOKEN_LENGTH)
        return false;
    const char *given = authorization + strlen(BEARER);
    unsigned different = 0;
    for (size_t i = 0; i < TOKEN_LENGTH; i++)
        different |= (unsigned char)(given[i] ^ desk->token[i]);
    return different == 0;
}

/* Values are strings in today's clients. */
static void take_metric(const json_t *metric, struct progress *out)
{
    char number[PROGRESS_VALUE_MAX];
    const json_t *value = json_object_get(metric, "value");
    const char *name = json_string_value(json_object_get(metric, "name"));
    const char *text = json_string_value(value);
    if (json_is_number(value)) {
        snprintf(number, sizeof(number), "%.10g", json_number_value(value));
        text = number;
    }
    if (name != NULL && text != NULL)
        progress_add_metric(out, name, text);
}

static void take_status(const json_t *status, struct progress *out)
{
    const json_t *percent = json_object_get(status, "progressPercentage");
    const json_t *eta = json_object_get(status, "estimatedRemainingSeconds");
    const json_t *metrics = json_object_get(status, "metrics");
    if (json_is_number(percent))
        progress_set_percent(out, json_number_value(percent), NULL);
    if (json_is_number(eta))
        progress_set_eta(out, json_number_value(eta), NULL);
    for (size_t i = 0; i < json_array_size(metrics); i++)
        take_metric(json_array_get(metrics, i), out);
}

int progress_json_parse(const void *body, size_t length, struct progress *out, struct error *err)
{
    json_error_t why;
    json_t *root = json_loadb(body != NULL ? body : "", length, 0, &why);
    if (root == NULL && json_error_code(&why) == json_error_out_of_memory)
        mem_exhausted();
    const json_t *status = json_object_get(root, "trainerStatus");
    bool right = json_is_object(status);
    if (right)
        take_status(status, out);
    json_decref(root);
    return right ? 0 : error_set(err, "the body is not JSON with a trainerStatus");
}

/* In the form of Kubernetes. */
static int refuse(char **body, int status, const char *reason, const char *message)
{
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "apiVersion", "v1", "kind", "Status", "status",
                  "Failure", "message", message, "reason", reason, "code", status);
    char *text = object == NULL ? NULL : json_dumps(object, JSON_COMPACT);
    json_decref(object);
    *body = mem_strdup(text != NULL ? text : "{}");
    free(text);
    return status;
}

int progress_desk_post(struct progress_desk *desk, const struct rendezvous_request *request,
                       char **body)
{
    struct progress progress AUTO_PROGRESS = PROGRESS_INIT;
    struct error err = ERROR_INIT;
    uint32_t epoch = 0, seat = 0;
    if (!read_key(request->key, &epoch, &seat) || !desk->has_seat(desk->context, epoch, seat))
        return refuse(body, HTTP_NOT_FOUND, "NotFound", "there is no such worker on this host");
    if (!has_token(desk, request->authorization))
        return refuse(body, HTTP_FORBIDDEN, "Forbidden", "the token is wrong or missing");
    if (progress_json_parse(request->body, request->length, &progress, &err) < 0)
        return refuse(body, HTTP_UNREADABLE, "Invalid", err.text);
    progress_desk_take(desk, epoch, seat, clock_mono_ns(), &progress);
    *body = mem_strndup(request->body, request->length); /* the real server echoes it, too */
    return HTTP_OK;
}

char *progress_desk_write_token(struct progress_desk *desk, const char *folder)
{
    if (desk->token[0] == '\0')
        make_token(desk->token);
    if (desk->token[0] == '\0')
        return NULL;
    char *path = mem_printf("%s/progress.token", folder);
    int fd AUTO_FD = fd_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && fd_write_all(fd, desk->token, TOKEN_LENGTH) == 0)
        return path;
    free(path);
    return NULL;
}

char *progress_desk_url(int port, uint32_t epoch, uint32_t seat)
{
    return mem_printf("http://127.0.0.1:%d/" STATUS_SCOPE "/%u.%u", port, epoch, seat);
}
