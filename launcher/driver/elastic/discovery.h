/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out, again and again, which hosts an elastic job may use: from a script
 * (--host-discovery-script) or from a hostfile that changes (--hosts-watch). Nothing here blocks
 * the loop.
 *
 * The script runs as a helper process, and runs again `period_ms` after it has ended. The file is
 * read soon after a change, and every `poll_ms`, because not every file system reports changes. A
 * helper process reads the file too, because a file server that hangs must not stop the job.
 * Content counts when two reads in a row agree (discovery.c says when).
 *
 * A failure before the first list is final: nothing is tried again. A later failure keeps the last
 * list. It is reported once, until something else fails or a run succeeds. Two failures that differ
 * only in digits (times, process ids) count as the same.
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

/* Called from the loop only, never from within a call below and never while paused. Each may
 * destroy the discovery. */
struct discovery_ops {
    /* The hosts that are available now, perhaps none: the first time, and whenever the list
     * changes. Borrowed for the call. */
    void (*hosts)(void *context, const struct host_list *hosts);
    /* One line. `first`: there has never been a list, and there will be none. */
    void (*failed)(void *context, const char *why, bool first);
};

struct discovery_config { /* copied; loop, helpers and log outlive the discovery */
    struct loop *loop;
    struct helpers *helpers;
    const struct log *log; /* gets the script's stderr, at LOG_INFO */
    /* Exactly one of the two. The script is looked up as a program in PATH. If there is no such
     * program and the text has blanks, it is a line for /bin/sh, as with horovodrun. */
    const char *script;
    const char *watch;
    int64_t period_ms;  /* from the end of a run of the script to the next */
    int64_t poll_ms;    /* of the file; 0: 5 s */
    int64_t limit_ms;   /* of one run; a run that takes longer is killed with all its processes */
    int slots_per_host; /* of a host without a number; 0: one */
};

/* NULL: the script cannot be run. */
struct discovery *discovery_create(const struct discovery_config *config,
                                   const struct discovery_ops *ops, void *context,
                                   struct error *err);
void discovery_begin(struct discovery *discovery);
/* While the job is suspended, nothing is reported. When it resumes, the next look follows at
 * once. */
void discovery_pause(struct discovery *discovery, bool paused);
void discovery_destroy(struct discovery *discovery); /* kills what runs; accepts NULL */
