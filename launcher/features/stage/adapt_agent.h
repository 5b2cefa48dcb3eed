/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the copies are on this host, and what follows from it for the workers. Their program,
 * folders and variables below a root become those below its copy. HVDRUN_STAGED has all copies, in
 * the order of the options, with colons between them.
 */
#pragma once

#include "base/strv.h"
#include "features/stage/stage.h"
#include "wire/control.pb-c.h"

struct stage_place {
    struct strv names;             /* of the root on the driver's machine */
    char *dest;                    /* "": no link; as the user gave it */
    char *to;                      /* NULL: not yet */
    const struct stage_list *list; /* borrowed */
    char *link;                    /* that was made for `dest`; NULL: none */
};

struct stage_places {
    struct stage_place *items;
    size_t count;
    char *problem; /* NULL, or why a link could not be made */
};

void stage_places_add(struct stage_places *places, const Hvdrun__Stage *message);
void stage_places_destroy(struct stage_places *places);

/* Rewrites PREPARE, and makes the links: again for each epoch. */
void stage_places_adapt(struct stage_places *places, Hvdrun__Prepare *prepare);
/* Removes the link of a root, if this process has made it, and it still leads to the copy. */
void stage_places_unlink(const struct stage_places *places, size_t root);
