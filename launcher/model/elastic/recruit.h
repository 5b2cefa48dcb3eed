/* SPDX-License-Identifier: Apache-2.0 */
/* Starts newcomers beside the running epoch, for slots that it does not use. */
#pragma once

#include "model/elastic/choice.h"

/* Now is a good time: every member of the running epoch can stay, and the newcomers of an earlier
 * batch have joined or ended. */
bool elastic_recruit_may(const struct elastic *e);
void elastic_recruit_make(struct elastic *e, const struct elastic_choice *choice);
