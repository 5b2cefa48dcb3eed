/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/control/later.h"

#include <stdlib.h>

#include "base/mem.h"

struct control_later {
    void (*answer)(void *context, const json_t *reply); /* NULL: nobody wants it any more */
    int (*give)(void *context, const json_t *reply);
    void *context;
    bool taken;
};

struct control_later *control_later_create(void (*answer)(void *context, const json_t *reply),
                                           int (*give)(void *context, const json_t *reply),
                                           void *context)
{
    struct control_later *later = mem_alloc(sizeof(*later));
    *later = (struct control_later){.answer = answer, .give = give, .context = context};
    return later;
}

bool control_later_is_taken(const struct control_later *later)
{
    return later->taken;
}

void control_later_leave(struct control_later *later)
{
    if (later != NULL && later->taken)
        later->answer = NULL;
    else
        free(later);
}

void control_later_take(struct control_later *later)
{
    later->taken = true;
}

void control_later_answer(struct control_later *later, json_t *reply_take)
{
    if (later->answer != NULL)
        later->answer(later->context, reply_take);
    json_decref(reply_take);
    free(later);
}

int control_later_take_over(struct control_later *later, json_t *reply_take)
{
    bool wanted = later->answer != NULL && later->give != NULL;
    int fd = wanted ? later->give(later->context, reply_take) : -1;
    json_decref(reply_take);
    free(later);
    return fd;
}

void control_wait_begin(struct control_waits *waits, struct control_wait *wait,
                        struct control_later *later)
{
    control_later_take(later);
    wait->later = later;
    LIST_INSERT_HEAD(waits, wait, others);
}

void control_wait_answer(struct control_wait *wait, json_t *reply_take)
{
    json_t *reply =
        reply_take != NULL ? reply_take : json_pack("{s:s}", "error", "the job has ended");
    LIST_REMOVE(wait, others);
    control_later_answer(wait->later, reply);
    free(wait);
}
