/* SPDX-License-Identifier: Apache-2.0 */
/* --stop-at-start: the ranks that wait at their start until a debugger comes. */
#pragma once

#include "driver/job/job.h"

bool debug_holds_any(const struct job *job); /* a rank waits */
/* A debugger has come to the worker on this seat: it is the one that holds it now. */
void debug_holds_forget(struct job *job, int seat);
/* Lets the worker on this seat go on; -1: all that wait. -1: none waits. */
int debug_holds_release(struct job *job, int seat, struct error *err);
