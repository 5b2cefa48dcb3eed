/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "features/torch_store/torch_server.h"

void torch_server_limit(struct torch_server *server, size_t clients);
