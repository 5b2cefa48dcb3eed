/* SPDX-License-Identifier: Apache-2.0 */
/* Where the metrics of a job go: the HTTP server of --metrics, which has the status page too, and
 * the file of --metrics-file. Also opens the history of the job if the page needs one. */
#pragma once

#include "driver/job/job.h"

/* Sets job->metrics if the user wants metrics, and job->history for the page or its file. -1: the
 * option is wrong. An address that cannot be used is a warning, since a job must not fail for it.
 */
int metrics_out_open(struct job *job, struct error *err);
void metrics_out_end(struct job *job);   /* the job has its verdict, and the loop runs no more */
void metrics_out_close(struct job *job); /* also if nothing is open; removes the file */

const char *metrics_out_url(const struct job *job);  /* of the server; NULL: there is none */
const char *metrics_out_page(const struct job *job); /* likewise */
/* Why there is no server although the user wants one; NULL otherwise. */
const char *metrics_out_problem(const struct job *job);
