/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The warnings of stall inspectors: that a tensor waits for ranks that did not submit it. Horovod
 * repeats its warning for as long as the stall lasts, so such lines are not progress. They name
 * the ranks that are missing. Pure.
 *
 * Horovod 0.28 writes these lines, with one call:
 *   [...] One or more tensors were submitted to be reduced, gathered or broadcasted by subset of
 *   ranks and are waiting for remainder of ranks for more than 60 seconds. [...]
 *   Missing ranks:
 *   2: [grad.1, grad.2]
 * libhvd writes one, if no agent takes its report: "libhvd: warning: rank 0 waits for rank 2 in
 * [...]".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define STALL_TEXT_RANKS 256
#define STALL_TEXT_NAME 120

/* An all-zero struct is ready for use. */
struct stall_text {
    bool inside, listing;          /* the last line was of a warning, and of its list */
    int missing[STALL_TEXT_RANKS]; /* of the last warning, ascending; of more, nothing is kept */
    int count;
    char name[STALL_TEXT_NAME + 1]; /* the first tensor for which the first of them is missing; any
                                       bytes */
};

/* Takes the next line of a rank's stderr, without its end. Whether it is a part of a warning. */
bool stall_text_line(struct stall_text *text, const char *line, size_t length);
