/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about the topic "torch_waits". */
#pragma once

#include "agent/ask.h"
#include "agent/crews.h"
#include "features/torch_store/torch_server.h"

/* `server`: the store that this node serves; NULL: none. */
void torch_waits_answer(const struct crews *crews, const struct torch_server *server,
                        const struct asked *asked, const Hvdrun__TorchWaitsRequest *request);
