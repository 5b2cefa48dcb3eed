/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does this host name or address mean this machine?
 *
 * The answer needs no resolver for localhost, loopback addresses, this machine's own name and the
 * addresses of its interfaces. Any other name must be resolved first, which is not done here.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

enum local_answer { LOCAL_NO, LOCAL_YES, LOCAL_UNKNOWN /* only the resolver could tell */ };

enum local_answer is_local_obviously(const char *name); /* never resolves */
bool is_local_address(const struct sockaddr *address);
