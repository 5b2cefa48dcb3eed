/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which user may see the status page, which shows the command and the output of the job.
 *
 * A Unix socket lets only its owner and root in. On 127.0.0.1, the gate asks the kernel for the
 * user of the connection, and lets in the user of the job and root. It refuses a page of another
 * site in this user's browser, which cannot name this server by its address. At any other address,
 * a request must have the token of the gate in its query.
 */
#pragma once

#include "io/http_server.h"

struct gate;

/* NULL: there is no randomness for a token. */
struct gate *gate_create(const struct listen_address *address, struct error *err);
void gate_destroy(struct gate *gate); /* accepts NULL */

/* NULL: let in. Else one line that says why not. */
const char *gate_refusal(const struct gate *gate, const struct http_request *request,
                         const struct http_question *question);

const char *gate_token(const struct gate *gate); /* NULL: it needs none */
