/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/progress_door.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/progress_json.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "rendezvous/http.h"

#define TOKEN_BYTES 16
#define TOKEN_LENGTH (2 * TOKEN_BYTES)
#define BEARER "Bearer "
#define NUMBER_MAX 10 /* digits of an epoch or a seat */

struct progress_door {
    struct progress_desk *desk;
    bool (*has_seat)(void *context, uint32_t epoch, uint32_t seat);
    void *context;
    char token[TOKEN_LENGTH + 1];
};

struct progress_door *
progress_door_create(struct progress_desk *desk,
                     bool (*has_seat)(void *context, uint32_t epoch, uint32_t seat), void *context)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t random[TOKEN_BYTES];
    if (getrandom(random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
        return NULL;
    struct progress_door *door = mem_alloc(sizeof(*door));
    *door = (struct progress_door){.desk = desk, .has_seat = has_seat, .context = context};
    for (size_t i = 0; i < TOKEN_BYTES; i++) {
        door->token[2 * i] = digits[random[i] >> 4];
        door->token[2 * i + 1] = digits[random[i] & 15];
    }
    return door;
}

void progress_door_destroy(struct progress_door *door)
{
    free(door);
}

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
static bool has_token(const struct progress_door *door, const char *authorization)
{
    if (authorization == NULL || strncmp(authorization, BEARER, strlen(BEARER)) != 0 ||
        strlen(authorization) != strlen(BEARER) + TOKEN_LENGTH)
        return false;
    const char *given = authorization + strlen(BEARER);
    unsigned different = 0;
    for (size_t i = 0; i < TOKEN_LENGTH; i++)
        different |= (unsigned char)(given[i] ^ door->token[i]);
    return different == 0;
}

static int refuse(char **body, int status, const char *reason, const char *message)
{
    *body = progress_json_refusal(status, reason, message);
    return status;
}

int progress_door_post(const struct progress_door *door, const struct rendezvous_request *request,
                       char **body)
{
    struct progress progress AUTO_PROGRESS = PROGRESS_INIT;
    struct error err = ERROR_INIT;
    uint32_t epoch = 0, seat = 0;
    if (!read_key(request->key, &epoch, &seat) || !door->has_seat(door->context, epoch, seat))
        return refuse(body, HTTP_NOT_FOUND, "NotFound", "there is no such worker on this host");
    if (!has_token(door, request->authorization))
        return refuse(body, HTTP_FORBIDDEN, "Forbidden", "the token is wrong or missing");
    if (progress_json_parse(request->body, request->length, &progress, &err) < 0)
        return refuse(body, HTTP_UNREADABLE, "Invalid", err.text);
    progress_desk_take(door->desk, epoch, seat, clock_mono_ns(), &progress);
    *body = mem_strndup(request->body, request->length); /* the real server echoes it, too */
    return HTTP_OK;
}

char *progress_door_write_token(const struct progress_door *door, const char *folder)
{
    char *path = mem_printf("%s/progress.token", folder);
    int fd AUTO_FD = fd_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && fd_write_all(fd, door->token, TOKEN_LENGTH) == 0)
        return path;
    free(path);
    return NULL;
}

char *progress_door_url(int port, uint32_t epoch, uint32_t seat)
{
    return mem_printf("http://127.0.0.1:%d/" STATUS_SCOPE "/%u.%u", port, epoch, seat);
}
