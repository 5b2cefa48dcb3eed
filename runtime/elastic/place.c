/* SPDX-License-Identifier: Apache-2.0 */
#include "elastic/place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "elastic/place_test.h"
#include "engine/store.h"

#define TIMEOUT_SECONDS 600 /* of horovodrun and of hvdrun */
#define LONGER_SECONDS 60
#define RANKS_MAX (1 << 24)
#define KEY_MAX 512
#define FIELDS 6
#define SECONDS_MAX 100000000000 /* the year 5138 */
#define FILE_MAX 4096

/* ---- The place ------------------------------------------------------------------------------- */

int elastic_self_read(struct elastic_self *self, setup_get *get, struct error *err)
{
    int64_t elastic = 0, port = 0, local_rank = 0, seconds = TIMEOUT_SECONDS;
    *self = (struct elastic_self){.host = get("HOROVOD_HOSTNAME")};
    if (setup_number(get, "HOROVOD_ELASTIC", 0, 1, &elastic, err) < 0 ||
        setup_number(get, "HOROVOD_GLOO_RENDEZVOUS_PORT", 1, 65535, &port, err) < 0 ||
        setup_number(get, "HOROVOD_LOCAL_RANK", 0, RANKS_MAX, &local_rank, err) < 0 ||
        setup_number(get, "HOROVOD_ELASTIC_TIMEOUT", 0, 1000000000, &seconds, err) < 0)
        return -1;
    if (elastic == 0 || port == 0)
        return 0;
    if (self->host == NULL || !name_is_safe(self->host, strlen(self->host)))
        return error_set(err, "HOROVOD_HOSTNAME is not the name of a host");
    self->address = get("HOROVOD_GLOO_RENDEZVOUS_ADDR");
    self->port = (int)port;
    self->local_rank = (int)local_rank;
    self->timeout_ms = (seconds + LONGER_SECONDS) * 1000;
    return 0;
}

/* Six numbers and nothing else but a newline. */
static int split(const char *text, int64_t numbers[FIELDS])
{
    for (int i = 0; i < FIELDS; i++) {
        char field[16];
        size_t length = strcspn(text, ",\n");
        if (length == 0 || length >= sizeof(field))
            return -1;
        memcpy(field, text, length);
        field[length] = '\0';
        if (parse_int(field, -1, RANKS_MAX, &numbers[i], NULL) < 0)
            return -1;
        text += length;
        if (i + 1 < FIELDS && *text++ != ',')
            return -1;
    }
    return text[0] == '\0' || strcmp(text, "\n") == 0 ? 0 : -1;
}

static bool fits(int64_t number, int64_t size)
{
    return number >= 0 && number < size;
}

enum hvd_status elastic_place_parse(const char *text, struct engine_place *place, struct error *err)
{
    int64_t n[FIELDS] = {0};
    if (split(text, n) == 0 && n[0] == -1) {
        error_set(err, "the launcher has removed this rank from the job");
        return HVD_ERR_REMOVED;
    }
    if (split(text, n) < 0 || !fits(n[0], n[1]) || !fits(n[2], n[3]) || !fits(n[4], n[5])) {
        error_set(err, "the launcher's answer '%.60s' is not a place in the job", text);
        return HVD_ERR_ENGINE;
    }
    *place =
        (struct engine_place){(int)n[0], (int)n[1], (int)n[2], (int)n[3], (int)n[4], (int)n[5]};
    return HVD_OK;
}

static void key_of(const struct elastic_self *self, char key[KEY_MAX])
{
    snprintf(key, KEY_MAX, "%s:%d", self->host, self->local_rank);
}

enum hvd_status elastic_place_ask(struct elastic_self *self, struct engine_place *place,
                                  struct error *err)
{
    static const atomic_bool never = false;
    struct store store = {self->address, self->port, self->timeout_ms, &never};
    AUTO_BUF struct buf answer = BUF_INIT(STORE_VALUE_LEAST);
    char key[KEY_MAX];
    key_of(self, key);
    enum hvd_status status = store_wait(&store, "rank_and_size", key, &answer, err);
    if (status == HVD_OK)
        status = elastic_place_parse(buf_text(&answer), place, err);
    if (status == HVD_OK)
        self->local_rank = place->local_rank;
    return status;
}

enum hvd_status elastic_register(const struct elastic_self *self, struct error *err)
{
    static const atomic_bool never = false;
    struct store store = {self->address, self->port, self->timeout_ms, &never};
    char key[KEY_MAX];
    key_of(self, key);
    return store_put(&store, "worker_addresses", key, LINE_REGISTRATION, strlen(LINE_REGISTRATION),
                     err);
}

void elastic_place_export(const struct engine_place *place)
{
    const struct {
        const char *name;
        int value;
    } variables[FIELDS] = {{"HOROVOD_RANK", place->rank},
                           {"HOROVOD_SIZE", place->size},
                           {"HOROVOD_LOCAL_RANK", place->local_rank},
                           {"HOROVOD_LOCAL_SIZE", place->local_size},
                           {"HOROVOD_CROSS_RANK", place->cross_rank},
                           {"HOROVOD_CROSS_SIZE", place->cross_size}};
    for (size_t i = 0; i < FIELDS; i++) {
        char number[16];
        snprintf(number, sizeof(number), "%d", variables[i].value);
        setenv(variables[i].name, number, 1);
    }
}

/* ---- Notices --------------------------------------------------------------------------------- */

bool elastic_notices_take(struct line **line)
{
    struct line_packet packet;
    bool news = false;
    int result = *line == NULL ? 0 : line_receive(*line, &packet, NULL);
    for (; result > 0; result = line_receive(*line, &packet, NULL))
        news = news || packet.type == LINE_HOSTS;
    if (result < 0) {
        line_close(*line);
        *line = NULL;
    }
    return news;
}

/* ---- The deadline ---------------------------------------------------------------------------- */

int64_t deadline_parse(const char *text, int64_t now_ns, char reason[DEADLINE_REASON_MAX])
{
    char number[32];
    size_t length = strcspn(text, " \n");
    int64_t seconds = 0;
    reason[0] = '\0';
    if (length == 0 || length >= sizeof(number))
        return -1;
    memcpy(number, text, length);
    number[length] = '\0';
    if (parse_int(number, 0, SECONDS_MAX, &seconds, NULL) < 0)
        return -1;
    text += length + (text[length] == ' ');
    length = strcspn(text, "\n");
    length = length < DEADLINE_REASON_MAX ? length : DEADLINE_REASON_MAX - 1;
    memcpy(reason, text, length);
    reason[length] = '\0';
    int64_t left = seconds * 1000 - now_ns / 1000000;
    return left > 0 ? left : 0;
}

int64_t deadline_read(const char *path, char reason[DEADLINE_REASON_MAX], struct error *err)
{
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX);
    struct error local = ERROR_INIT;
    reason[0] = '\0';
    if (fd_read_file(path, &text, &local) < 0) {
        if (local.errnum == ENOENT)
            return -1;
        error_set(err, "%s", local.text);
        return -2;
    }
    int64_t left = deadline_parse(buf_text(&text), clock_wall_ns(), reason);
    if (left >= 0)
        return left;
    error_set(err, "%s does not begin with a time in seconds", path);
    return -2;
}
