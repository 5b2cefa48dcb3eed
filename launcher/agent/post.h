/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of an agent use to speak to the driver: the link, the epoch, and the log. */
#pragma once

#include "base/log.h"
#include "io/link.h"

struct post {
    struct link *link;
    uint32_t epoch;
    struct log log; /* becomes LOG frames */
};

void post_init(struct post *post, struct link *link);
void post_message(const struct post *post, enum frame_type type, const ProtobufCMessage *message);
void post_empty(const struct post *post, enum frame_type type);
