/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the control socket, one a line. The answer is one object. */
#include <jansson.h>
#include <string.h>

#include "base/parse.h"
#include "driver/control/later.h"
#include "driver/control/request.h"
#include "fuzz.h"

static json_t *status(void *context)
{
    (void)context;
    return json_pack("{s:s}", "job", "j");
}

static int drain(void *context, const char *host, bool has_deadline, int64_t within_ms,
                 struct error *err)
{
    (void)context;
    FUZZ_CHECK(within_ms >= 0 && (has_deadline || within_ms == 0));
    return host[0] == 'x' ? error_set(err, "no host is called '%s'", host) : 0;
}

static int undrain(void *context, const char *host, struct error *err)
{
    return drain(context, host, false, 0, err);
}

static int add(void *context, const struct host_list *hosts, struct error *err)
{
    (void)context;
    (void)err;
    FUZZ_CHECK(hosts->count > 0);
    return 0;
}

static void check_asker(const struct control_asker *asker, bool by_root)
{
    FUZZ_CHECK(asker->command == NULL || name_is_safe(asker->command, strlen(asker->command)));
    FUZZ_CHECK(asker->user == NULL || name_is_safe(asker->user, strlen(asker->user)));
    FUZZ_CHECK((asker->user != NULL && strcmp(asker->user, "root") == 0) == by_root);
}

static int stop(void *context, const struct control_asker *asker, int64_t grace_ms,
                struct error *err)
{
    (void)err;
    check_asker(asker, *(const bool *)context);
    FUZZ_CHECK(grace_ms >= -1);
    return 0;
}

static int send_signal(void *context, const struct control_asker *asker, int number,
                       const char *ranks, struct error *err)
{
    check_asker(asker, *(const bool *)context);
    FUZZ_CHECK(number > 0 && number <= 64);
    return ranks != NULL ? error_set(err, "no rank '%s' runs", ranks) : 0;
}

static int stacks(void *context, const char *ranks, bool native, struct control_later *later,
                  struct error *err)
{
    (void)context, (void)native;
    if (ranks != NULL)
        return error_set(err, "no rank '%s' runs", ranks);
    control_later_take(later);
    return 0;
}

static void answered(void *context, const json_t *reply)
{
    *(bool *)context = json_is_object(reply);
}

FUZZ_TARGET
{
    static const struct control_ops ops = {.status = status,
                                           .usage = status,
                                           .stop = stop,
                                           .signal = send_signal,
                                           .stacks = stacks,
                                           .drain = drain,
                                           .undrain = undrain,
                                           .add = add};
    struct fuzz_bytes bytes = {data, size};
    while (bytes.left > 0) {
        char *line AUTO_FREE = fuzz_line(&bytes);
        bool came = false;
        struct control_later *later = control_later_create(answered, &came);
        bool by_root = bytes.left % 2 == 0;
        json_t *answer = control_request_answer(line, strlen(line), by_root, &ops, &by_root, later);
        if (control_later_is_taken(later))
            control_later_answer(later, json_pack("{s:b}", "ok", 1));
        else
            control_later_leave(later);
        FUZZ_CHECK(answer == NULL || !came);
        FUZZ_CHECK(answer == NULL || json_is_object(answer)); /* NULL: it waits for the end */
        json_decref(answer);
    }
    return 0;
}
