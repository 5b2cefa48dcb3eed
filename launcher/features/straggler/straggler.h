/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that are far behind the others or silent, and have been for a while. Pure.
 *
 * By progress: at least STRAGGLERS_LEAST ranks, and more than a half, say how many percent they
 * have done. A rank is far behind if the median is ahead of it by more than each of these: one
 * percent, a tenth of the median, and 5 times the spread (model/usage/outliers.h). It must be so in
 * all samples of a whole window.
 *
 * By output: in each of three windows, a rank wrote at least half the median. In the next one, it
 * writes less than a quarter of it. Windows in which the median is below STRAGGLER_BYTES do not
 * count: nobody says much then. So ranks that never write much are never behind.
 *
 * Silent: at least STRAGGLERS_LEAST ranks run, and more than a half of them have written something,
 * or have said how many percent they have done. A rank is silent if it never has, in all samples of
 * a whole window. Such a rank may hang in its imports or at its first file.
 *
 * A rank has caught up when its distance is half of what it must be. All begins again when a rank
 * starts or ends, and after a gap without samples.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define STRAGGLERS_LEAST 4
#define STRAGGLER_BYTES 512
#define STRAGGLER_SAMPLES 6 /* of a window */

struct stragglers;

struct stragglers *stragglers_create(int64_t window_ms);
void stragglers_destroy(struct stragglers *stragglers);            /* accepts NULL */
int64_t stragglers_period_ms(const struct stragglers *stragglers); /* between two samples */

void stragglers_seat(struct stragglers *stragglers, int seat, bool runs);
/* `percent`: -1: it does not say; `output`: bytes since its start. */
void stragglers_sample(struct stragglers *stragglers, int seat, double percent, uint64_t output);

enum straggler_kind { STRAGGLER_BEHIND, STRAGGLER_SILENT };

/* `text` is borrowed: "it has done 40.0 %, and the others 62.5 %"; NULL: not any more. */
typedef void straggler_each(void *context, int seat, enum straggler_kind kind, const char *text);

/* After the samples of all ranks. Calls `each` for those that are far behind or silent from now on,
 * or not any more. */
void stragglers_tick(struct stragglers *stragglers, int64_t now_ms, straggler_each *each,
                     void *context);
