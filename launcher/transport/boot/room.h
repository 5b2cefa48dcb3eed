/* SPDX-License-Identifier: Apache-2.0 */
/* What all transports of a driver share. It outlives their calls. */
#pragma once

#include "io/helpers.h"
#include "io/loop.h"
#include "transport/boot/agent_image.h"

struct transport_room {
    struct loop *loop;
    struct helpers *helpers;
    struct agent_image *image;
    const char *job_id;
    int64_t limit_ms;   /* for one stage of one call */
    int64_t silence_ms; /* after which the job gives a node up, for TCP_USER_TIMEOUT */
};
