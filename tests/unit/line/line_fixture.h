/* SPDX-License-Identifier: Apache-2.0 */
/* An agent's end of a line, which does what a test says. Included behind cmocka.h. */
#pragma once

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "line/line.h"

struct line_agent {
    int listener, peer;
    char *address; /* for the worker's end */
};

static inline void line_agent_listen(struct line_agent *agent)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t length = sizeof(name);
    agent->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(agent->listener, (struct sockaddr *)&name, sizeof(sa_family_t)), 0);
    assert_int_equal(listen(agent->listener, 5), 0);
    assert_int_equal(getsockname(agent->listener, (struct sockaddr *)&name, &length), 0);
    agent->address = line_address_text(&name, length);
    assert_non_null(agent->address);
}

/* Once the worker's end is open. */
static inline void line_agent_accept(struct line_agent *agent)
{
    agent->peer = accept(agent->listener, NULL, NULL);
    assert_true(agent->peer >= 0);
}

static inline void line_agent_close(struct line_agent *agent)
{
    close(agent->peer);
    close(agent->listener);
    free(agent->address);
}

static inline void line_agent_say(const struct line_agent *agent, const struct line_packet *packet)
{
    uint8_t bytes[LINE_PACKET_MAX];
    size_t length = line_packet_put(packet, bytes);
    assert_int_equal(send(agent->peer, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
}
