/* SPDX-License-Identifier: Apache-2.0 */
/* Where the metrics of a job go: the HTTP server of --metrics, which has the status page too, and
 * the file of --metrics-file. Also opens the history of the job if the page needs one. */
#pragma once

#include "driver/job/job.h"

const char *metrics_out_url(const struct job *job);  /* of the server; NULL: there is none */
const char *metrics_out_page(const struct job *job); /* likewise */
/* Why there is no server although the user wants one; NULL otherwise. */
const char *metrics_out_problem(const struct job *job);
