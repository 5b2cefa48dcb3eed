/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the workers of this node are: what they post to the status endpoint, and the desk that
 * sends it to the driver.
 */
#pragma once

#include <stddef.h>

#include "agent/post.h"
#include "base/error.h"
#include "io/loop.h"
#include "model/progress/progress.h"
#include "rendezvous/http.h"

/*
 * Sends to the driver how far the workers of this node are. The first report goes at once, and
 * later ones at most every PROGRESS_PERIOD_MS, in one frame for all workers. If a worker reports
 * several times within that period, only its last report goes.
 */
#define PROGRESS_PERIOD_MS 500

struct progress_desk;

/* `post` is the agent's. `has_seat`: a worker of this node was started on the seat in that epoch.
 */
struct progress_desk *
progress_desk_create(struct loop *loop, const struct post *post,
                     bool (*has_seat)(void *context, uint32_t epoch, uint32_t seat), void *context);
void progress_desk_destroy(struct progress_desk *desk); /* accepts NULL */

/* Takes what `progress` owns. The worker sits on `seat`, was started in `epoch`, and said so at
 * `when_ns` of the monotonic clock. */
void progress_desk_take(struct progress_desk *desk, uint32_t epoch, uint32_t seat, int64_t when_ns,
                        struct progress *progress);

/* Sends now what waits: a worker has ended, and that frame comes next. */
void progress_desk_flush(struct progress_desk *desk);

/*
 * The status endpoint of this node, to which Hugging Face Transformers and others report their
 * progress: `POST /progress/EPOCH.SEAT` at the HTTP server of the rendezvous (D11), which listens
 * on loopback, serves this user's processes alone, and bounds its clients. A request must also have
 * the token, which the agent writes into a file in the runtime folder of each crew. Answers have
 * the form of Kubeflow's server.
 */

/* Returns the status of HTTP and makes the body of the answer, which the caller frees. */
int progress_desk_post(struct progress_desk *desk, const struct rendezvous_request *request,
                       char **body);

/* Writes the token into the folder. Returns the path of the file, the caller's; NULL: it cannot, or
 * there is no randomness for a token now. */
char *progress_desk_write_token(struct progress_desk *desk, const char *folder);
char *progress_desk_url(int port, uint32_t epoch, uint32_t seat); /* the caller frees it */

/*
 * The body that Hugging Face Transformers and the SDK of Kubeflow post to the status endpoint of a
 * Kubeflow TrainJob:
 *
 *   {"trainerStatus": {"lastUpdatedTime": TIME, "progressPercentage": N,
 *                      "estimatedRemainingSeconds": N, "metrics": [{"name": TEXT, "value": TEXT},
 *                                                                  ...]}}
 *
 * Every field of the status may be absent. A field that has another form is not an error, because
 * a later client may write it so: it is left out. Pure.
 *
 * `out` is empty before. -1: it is not JSON, or has no trainerStatus.
 */
int progress_json_parse(const void *body, size_t length, struct progress *out, struct error *err);
