/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hosts an elastic job may use now, again and again: from a script (--host-discovery-script)
 * or from a hostfile that others change (--hosts-watch). Nothing here blocks the loop.
 *
 * The script is run as a helper process, the next time `period_ms` after its end. The file is read
 * soon after it changed, and every `poll_ms`, since not every file system tells of changes; by a
 * helper process as well, for a file server that does not answer must not stop the job. What is
 * read counts when it was read twice alike (driver/elastic/discovery_settle.h).
 *
 * A failure before there was any list is the end: nothing is tried again. After that a failure
 * leaves the last list as it is; it is told once, until something else fails or all is well again.
 * Two failures that differ in digits only (times, process numbers) are one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "io/helpers.h"
#include "io/loop.h"
#include "model/hosts/hosts.h"

struct discovery;

/* Come from the loop only, never from within a call below and never while paused; each may destroy
 * the discovery. */
struct discovery_ops {
    /* What is available now, perhaps nothing: the first time, and when it differs from the last.
     * Borrowed for the call. */
    void (*hosts)(void *context, const struct host_list *hosts);
    /* One line; `first`: no list has ever come, and none will. */
    void (*failed)(void *context, const char *why, bool first);
};

struct discovery_config { /* copied; loop, helpers and log outlive the discovery */
    struct loop *loop;
    struct helpers *helpers;
    const struct log *log; /* gets the script's stderr, at LOG_INFO */
    /* Exactly one of the two. The script is found as a program of the user's is; what is no
     * program's name and has blanks is a line for /bin/sh, as with horovodrun. */
    const char *script;
    const char *watch;
    int64_t period_ms;  /* from the end of a run of the script to the next */
    int64_t poll_ms;    /* of the file; 0: 5 s */
    int64_t limit_ms;   /* of one run; then it is killed with all its processes */
    int slots_per_host; /* of a host without a number; 0: one */
};

/* NULL: the script cannot be run. */
struct discovery *discovery_create(const struct discovery_config *config,
                                   const struct discovery_ops *ops, void *context,
                                   struct error *err);
void discovery_begin(struct discovery *discovery);
/* The job is suspended: nothing is told; resumed: it is looked at once. */
void discovery_pause(struct discovery *discovery, bool paused);
void discovery_destroy(struct discovery *discovery); /* kills what runs; accepts NULL */
