/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of place need, and nobody else. */
#pragma once

#include "elastic/place.h"

/* Pure: "rank,size,local_rank,local_size,cross_rank,cross_size". HVD_ERR_REMOVED: rank -1.
 * HVD_ERR_ENGINE: the text has another form. */
enum hvd_status elastic_place_parse(const char *text, struct engine_place *place,
                                    struct error *err);

/* Pure. The milliseconds from `now_ns` (since 1970) until the deadline in `text`, at least 0.
 * `reason` receives the reason. -1: the text has another form. */
int64_t deadline_parse(const char *text, int64_t now_ns, char reason[DEADLINE_REASON_MAX]);
