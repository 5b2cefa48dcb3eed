/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status endpoint of this node, to which Hugging Face Transformers and others report their
 * progress: `POST /progress/EPOCH.SEAT` at the HTTP server of the rendezvous (D11), which listens
 * on loopback, serves this user's processes alone, and bounds its clients. A request must also have
 * the token, which the agent writes into a file in the runtime folder of each crew. Answers have
 * the form of Kubeflow's server.
 */
#pragma once

#include "agent/progress_desk.h"
#include "rendezvous/http.h"

struct progress_door;

/* `has_seat`: a worker of this node was started on the seat in that epoch. NULL: there is no
 * randomness for a token. */
struct progress_door *
progress_door_create(struct progress_desk *desk,
                     bool (*has_seat)(void *context, uint32_t epoch, uint32_t seat), void *context);
void progress_door_destroy(struct progress_door *door); /* accepts NULL */

/* Returns the status of HTTP and makes the body of the answer, which the caller frees. */
int progress_door_post(const struct progress_door *door, const struct rendezvous_request *request,
                       char **body);

/* Writes the token into the folder. Returns the path of the file, the caller's; NULL: it cannot. */
char *progress_door_write_token(const struct progress_door *door, const char *folder);
char *progress_door_url(int port, uint32_t epoch, uint32_t seat); /* the caller frees it */
