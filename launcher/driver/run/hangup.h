/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal or the reader of the output goes away. With --on-hangup detach, that does not end
 * the job. It goes on without a terminal, and `hvdrun attach` shows its output.
 */
#pragma once

#include "driver/job/job.h"

/* Of standard input, output and error, those that are a terminal become /dev/null; with
 * `output_too` also any other output and error. -1: there is no /dev/null. */
int hangup_leave(bool output_too);

/* HUP has come. True: the job has left its terminal, and the signal means nothing more. */
bool hangup_takes(struct job *job);

/* The reader of stdout is gone, such as an ssh without a terminal: the same. */
bool hangup_takes_reader(struct job *job);
