/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the control socket, one a line. The answer is one object. */
#include <jansson.h>
#include <string.h>

#include "base/parse.h"
#include "driver/control/request.h"
#include "fuzz.h"

static json_t *status(void *context, const struct control_asked *asked, struct error *err)
{
    (void)context, (void)err;
    json_t *answer = json_pack("{s:s}", "job", "j");
    control_sign(asked, answer);
    return answer;
}

static json_t *drain(void *context, const struct control_asked *asked, struct error *err)
{
    const char *host = control_host(asked, "host", err);
    int64_t within_ms;
    (void)context;
    if (host == NULL || control_time(asked, "within_s", &within_ms, err) < 0)
        return NULL;
    FUZZ_CHECK(name_is_safe(host, strlen(host)) && within_ms >= -1);
    return control_accepted(host[0] == 'x' ? error_set(err, "no host is called '%s'", host) : 0);
}

static json_t *add(void *context, const struct control_asked *asked, struct error *err)
{
    const char *text = control_text(asked, "hosts", err);
    (void)context;
    return control_accepted(text == NULL ? -1 : 0);
}

static void check_asker(const struct control_asker *asker, bool by_root)
{
    FUZZ_CHECK(asker->command == NULL || name_is_safe(asker->command, strlen(asker->command)));
    FUZZ_CHECK(asker->user == NULL || name_is_safe(asker->user, strlen(asker->user)));
    FUZZ_CHECK((asker->user != NULL && strcmp(asker->user, "root") == 0) == by_root);
}

static json_t *stop(void *context, const struct control_asked *asked, struct error *err)
{
    int64_t grace_ms;
    check_asker(&asked->asker, *(const bool *)context);
    int result = control_time(asked, "grace_s", &grace_ms, err);
    FUZZ_CHECK(grace_ms >= -1);
    return control_accepted(result);
}

static json_t *stacks(void *context, const struct control_asked *asked, struct error *err)
{
    const char *ranks;
    (void)context;
    if (control_ranks(asked, "ranks", &ranks, err) < 0)
        return NULL;
    if (ranks != NULL)
        return control_accepted(error_set(err, "no rank '%s' runs", ranks));
    control_later_take(asked->later);
    return NULL;
}

static json_t *wait_for_end(void *context, const struct control_asked *asked, struct error *err)
{
    (void)context, (void)asked, (void)err;
    return NULL;
}

static const struct control_rule *find_rule(void *context, const char *name)
{
    static const struct control_rule rules[] = {
        {"status", status}, {"drain", drain},       {"add", add}, {"stop", stop},
        {"stacks", stacks}, {"wait", wait_for_end}, {NULL}};
    (void)context;
    return control_rule_of(rules, name);
}

static void answered(void *context, const json_t *reply)
{
    *(bool *)context = json_is_object(reply);
}

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    while (bytes.left > 0) {
        char *line AUTO_FREE = fuzz_line(&bytes);
        bool came = false;
        struct control_later *later = control_later_create(answered, NULL, &came);
        bool by_root = bytes.left % 2 == 0;
        struct control_answers answers = {"j", find_rule, &by_root};
        json_t *answer = control_request_answer(&answers, line, strlen(line), by_root, later);
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
