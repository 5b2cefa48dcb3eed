/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --leave-out-bad: before the job starts, another process checks its hosts and GPUs, as `hvdrun
 * check --gpu` does. Hosts with a problem or a bad GPU are left out of the job.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "cli/command_line.h"
#include "model/hosts/hosts.h"

/* Runs the check of `line` in this process, and writes its result to stdout. It returns the exit
 * status, or -1. */
typedef int preflight_check(void *context, const struct command_line *line, struct error *err);

/* Removes hosts, and appends to `told` which ones and why. Waits until the check is over: it has
 * its own time limits. -1: there was no result. */
int preflight_leave_out(const struct command_line *line, preflight_check *check, void *context,
                        struct host_list *hosts, struct buf *told, struct error *err);
