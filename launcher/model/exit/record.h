/* SPDX-License-Identifier: Apache-2.0 */
/* The end of one rank, and the loss of a node, as far as they are known. Pure; model/exit/policy.h
 * is built on it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* An exit as it was reported. `when_ns` is on the driver's monotonic clock; `uncertainty_ns` is how
 * far the node's clock may be off it (0 on the driver's own node). `ending_ns` is when its agent
 * saw that it was ending, but could not be waited for yet; 0: it did not see that. */
struct exit_event {
    int seat; /* in a static job the rank */
    bool signaled;
    int code; /* exit code or, when signaled, the signal */
    bool core;
    int64_t when_ns, ending_ns, uncertainty_ns;
};

/* What was ending before our kill reached its node is not ended by it. The times are of one clock;
 * `ending_ns` is that of exit_event. */
bool exit_is_after_kill(int64_t ended_ns, int64_t ending_ns, int64_t killed_ns);

/* When the end counts, among others. A fault or a kill from outside (exit_record_grade() 2) answers
 * no other end. So it counts from when its agent saw that it was ending. All others count from when
 * they could be waited for. */
int64_t exit_event_time(const struct exit_event *event);

/* The loss of a node happened between these two times. */
struct exit_loss {
    int64_t alive_ns;       /* the latest time that its agent wrote into a frame, on our clock */
    int64_t uncertainty_ns; /* of that */
    int64_t by_ns;          /* the driver could not but know */
    bool silent; /* it did not answer any more. Else its connection ended, and peers may know too */
};

enum exit_fact {
    FACT_NONE,    /* no report: not started */
    FACT_STARTED, /* runs, or ended without a status */
    FACT_EXITED,
    FACT_SIGNALED,
    FACT_ABORTED,      /* asked for the end of the job, as with MPI_Abort */
    FACT_NOT_EXECUTED, /* the program could not be executed */
};

struct exit_record {
    enum exit_fact fact;
    bool core;
    int code; /* exit code, signal, asked code, or 126/127 */
    int64_t when_ns, ending_ns, uncertainty_ns;
    char *text; /* owned; of an abort or a failed execution; may be NULL */
};

/* Merges an event. An abort or a failed execution explains the exit that it comes with. It replaces
 * the exit in either order, and the earlier of the two times counts. Of two events of the same
 * weight the first one stays. */
void exit_record_merge(struct exit_record *record, enum exit_fact fact,
                       const struct exit_event *event, const char *text);
void exit_record_clear(struct exit_record *record);

bool exit_record_ended(const struct exit_record *record);  /* has a status */
bool exit_record_failed(const struct exit_record *record); /* has one other than exit code 0 */

/* 0..255: the code, 128 + signal, or the code of an abort (never 0). */
int exit_record_status(const struct exit_record *record);

/* How likely an exit is a cause and not a consequence, when clocks cannot order them:
 * 2 a fault (SEGV, BUS, ILL, FPE, SYS, TRAP), a kill from outside (KILL, XCPU, XFSZ) or a program
 *   that could not be executed: no other rank's death does that;
 * 1 an abort (ABRT, MPI_Abort): mostly a failed check, but also how libraries answer a lost peer;
 * 0 an exit code or another signal (PIPE, TERM...): the usual answer to a lost peer. */
int exit_record_grade(const struct exit_record *record);
const char *exit_record_grade_reason(const struct exit_record *record); /* "it crashed" */

/* A process ends later than its connections, and an agent on a busy machine sees that later. */
#define EXIT_LATE_NS (INT64_C(100) * 1000000)
/* An error of a rank is not the reason of what happens later than this. */
#define EXIT_ERROR_NS (INT64_C(60) * 1000000000)

/* "rank 3 was killed by SIGSEGV (core dumped)" */
void exit_record_describe(const struct exit_record *record, int rank, struct buf *out);

/* No clock shows more. Sums and differences of such times do not overflow. */
#define EXIT_TIME_MAX ((int64_t)1 << 60)
int64_t exit_time(int64_t when_ns); /* within these limits */

/* Text as one line of at most `max` bytes that the caller owns, without control characters or torn
 * UTF-8. NULL and empty text give NULL. Text of programs is cut short. Our own messages are not
 * cut, since they may hold a remedy with the name of a file. */
#define EXIT_TEXT_FOREIGN 240
#define EXIT_TEXT_OWN 960
char *exit_text(const char *text, size_t max);
void exit_signal_name(int number, struct buf *out); /* "SIGSEGV", "signal 40" */
