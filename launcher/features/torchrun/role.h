/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this copy of hvdrun is, when its line names a number of hosts. Pure.
 *
 * torchrun is started on each host, and its copies meet at an address. hvdrun can be started once,
 * with all hosts. If it knows fewer hosts than the line wants, and the line has that address, it is
 * one of several copies (meeting_cli.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/settings/line.h"

enum role {
    ROLE_ALONE,  /* the hosts that it knows are all: an ordinary job */
    ROLE_DRIVER, /* the other copies come to this one, at nodes->meeting_port */
    ROLE_DIAL,   /* it goes to the one at nodes->meeting_host */
    ROLE_WRONG,  /* there are too few hosts, and nothing says where the others are */
};

/* `hosts`: how many it knows. `meets_here`: the meeting address is one of this machine. */
enum role role_of(const struct line_nodes *nodes, size_t hosts, bool meets_here);
