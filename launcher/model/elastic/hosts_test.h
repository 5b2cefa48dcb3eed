/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of hosts alone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/elastic/hosts.h"

void elastic_record_blacklist(struct elastic_record *record, const struct elastic_config *config,
                              int64_t now_ms);

/* True: the cooldown has just ended. */
bool elastic_record_expire(struct elastic_record *record, int64_t now_ms);
