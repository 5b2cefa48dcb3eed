/* SPDX-License-Identifier: Apache-2.0 */
#include "elastic/notices.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "elastic/notices_test.h"
#include "line/line.h"

#define SECONDS_MAX 100000000000 /* the year 5138 */
#define FILE_MAX 4096

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

/* ---- Notices --------------------------------------------------------------------------------- */

struct elastic_notices {
    struct line *line; /* NULL: it has ended */
};

struct elastic_notices *elastic_notices_open(const char *address, struct error *err)
{
    struct line *line = line_open(address, err);
    if (line == NULL)
        return NULL;
    struct elastic_notices *notices = mem_alloc(sizeof(*notices));
    notices->line = line;
    return notices;
}

void elastic_notices_close(struct elastic_notices *notices)
{
    if (notices == NULL)
        return;
    line_close(notices->line);
    free(notices);
}

bool elastic_notices_take(struct elastic_notices *notices)
{
    struct line_packet packet;
    bool news = false;
    int result =
        notices == NULL || notices->line == NULL ? 0 : line_receive(notices->line, &packet, NULL);
    for (; result > 0; result = line_receive(notices->line, &packet, NULL))
        news = news || packet.type == LINE_HOSTS;
    if (result < 0) {
        line_close(notices->line);
        notices->line = NULL;
    }
    return news;
}
