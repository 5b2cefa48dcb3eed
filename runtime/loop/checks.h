/* SPDX-License-Identifier: Apache-2.0 */
/* What only this rank can get wrong: arguments, before they become a request. */
#pragma once

#include "core/request.h"
#include "loop/set.h"

/* Copies the part that the caller's `size` covers; the rest has its defaults. -1: `size` is not
 * set, or the pointer is NULL where it must not be. */
int checks_tensor_copy(const struct hvd_tensor *from, struct hvd_tensor *to, struct error *err);
int checks_options_copy(const struct hvd_options *from, struct hvd_options *to, struct error *err);

/* What an operation is called with. */
struct call {
    enum kind kind;
    const struct hvd_tensor *tensor; /* complete; NULL: it has none */
    const struct hvd_options *options;
    const int64_t *splits;
    int root;
    struct gpu_mark *ready; /* of the tensor before it in the same call; NULL: none */
};

/* HVD_ERR_ARGUMENT or HVD_ERR_UNSUPPORTED, or fills `request` and `token`. */
enum hvd_status checks_call(const struct process_set *set, const struct call *call,
                            struct request *request, struct submission *token, struct error *err);
