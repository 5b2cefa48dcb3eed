/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a driver asks its agents about (ASK, ANSWER): one line for each topic. A number belongs to
 * its topic for ever.
 *
 * An answer stays fresh for `fresh_ms` after the question. Whoever asks meanwhile, or while the
 * question is under way, shares it. TOPIC_ANEW: each question is one of its own.
 */
#pragma once

#include "wire/frame.h"

#define TOPIC_ANEW (-1)
#define TOPIC_WHOLE 1, (size_t)64 << 20 /* the answer is one piece, and so long a frame may be */

/* name, number, request, answer, fresh_ms, pieces of an answer at most, bytes of these at most */
#define TOPIC_LIST(X)                                                                  \
    X(states, 1, state_request, state_report, 0, TOPIC_WHOLE)                          \
    X(usage, 2, nothing, usage, 400, TOPIC_WHOLE)                                      \
    X(pulse, 3, pulse_request, pulse, TOPIC_ANEW, TOPIC_WHOLE)                         \
    X(evidence, 4, evidence_request, evidence, TOPIC_ANEW, 1 << 16, (size_t)320 << 20) \
    X(facts, 5, nothing, facts, TOPIC_ANEW, TOPIC_WHOLE)                               \
    X(probe, 6, probe, probed, TOPIC_ANEW, TOPIC_WHOLE)                                \
    X(torch_waits, 7, torch_waits_request, torch_waits, TOPIC_ANEW, TOPIC_WHOLE)       \
    X(gpus, 8, gpus_request, gpus_answer, TOPIC_ANEW, TOPIC_WHOLE)                     \
    X(libraries, 9, nothing, libraries, 0, TOPIC_WHOLE)                                \
    X(session, 10, session_request, session_answer, TOPIC_ANEW, TOPIC_WHOLE)

struct topic {
    const char *name;
    uint32_t number; /* on the wire; never 0 */
    const ProtobufCMessageDescriptor *request, *answer;
    int fresh_ms;
    int pieces; /* that an answer may have, and their bytes in all */
    size_t bytes;
};

enum topic_number {
#define TOPIC_ENUM(name, number, ...) TOPIC_##name = (number),
    TOPIC_LIST(TOPIC_ENUM)
#undef TOPIC_ENUM
        TOPICS /* one more than the last */
};

#define TOPIC_DECLARE(name, ...) extern const struct topic topic_##name;
TOPIC_LIST(TOPIC_DECLARE)
#undef TOPIC_DECLARE
