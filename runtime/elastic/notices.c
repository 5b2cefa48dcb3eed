/* SPDX-License-Identifier: Apache-2.0 */
#include "elastic/notices.h"

#include <stdlib.h>

#include "base/mem.h"
#include "line/line.h"

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
