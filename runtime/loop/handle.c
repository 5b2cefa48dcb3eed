/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/handle.h"

#include <stdlib.h>
#include <string.h>

/* Of hvd.h; here, because a handle owns results until somebody takes them. */
void hvd_result_free(struct hvd_result *result)
{
    if (result == NULL)
        return;
    if (!cuda_free_if_device(result->data))
        free(result->data);
    free(result->splits);
    result->data = NULL;
    result->splits = NULL;
}

void handle_destroy(struct handle *handle)
{
    for (size_t i = 0; i < handle->count; i++) {
        free(handle->submissions[i].splits);
        hvd_result_free(&handle->answers[i].result);
        gpu_mark_release(handle->submissions[i].ready);
    }
    free(handle->text);
    free(handle);
}

/* The lower half of a number is the slot plus 1. */
size_t handle_slot(hvd_handle number)
{
    return (size_t)(uint32_t)number - 1;
}

struct handle *handle_find(const struct handles *handles, hvd_handle number)
{
    size_t slot = handle_slot(number);
    struct handle *handle = slot < handles->used ? handles->slots[slot] : NULL;
    return handle != NULL && handle->number == number ? handle : NULL;
}

void handle_release(struct handles *handles, struct handle *handle)
{
    size_t slot = handle_slot(handle->number);
    handles->slots[slot] = NULL;
    handles->free_slots[handles->free_count++] = slot;
    handle_destroy(handle);
}

enum hvd_status handle_status(const struct handle *handle, char *text, size_t room)
{
    const char *from = handle == NULL ? "there is not a handle with this number" : handle->text;
    if (from != NULL) {
        strncpy(text, from, room - 1);
        text[room - 1] = '\0';
    }
    return handle == NULL        ? HVD_ERR_UNKNOWN_HANDLE
           : handle->pending > 0 ? HVD_IN_PROGRESS
                                 : handle->status;
}
