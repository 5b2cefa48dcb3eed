/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts that the next epoch of an elastic job would use. Spare hosts count only as far as they
 * are needed.
 */
#pragma once

#include "model/elastic/job.h"
#include "model/elastic/placement.h"

struct elastic_choice {
    int *hosts; /* owned; in the order in which they get new workers */
    int count;
    int size;       /* how many workers it would have */
    int64_t usable; /* slots of all usable hosts, spare ones too */
};

void elastic_choice_make(const struct elastic *e, struct elastic_choice *choice);
void elastic_choice_clear(struct elastic_choice *choice);

/* Gives the survivors, and new workers up to the size of the choice, their ranks. */
void elastic_choice_place(const struct elastic *e, const struct elastic_choice *choice,
                          const struct elastic_survivor *survivors, int count,
                          struct elastic_placement *out);
