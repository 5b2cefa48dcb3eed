/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/control/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "driver/tell/json_text.h"

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
    return MEM_NEW((struct control_later){.answer = answer, .give = give, .context = context});
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

#define TIME_MAX_S 1e9

const char *control_text(const struct control_asked *asked, const char *key, struct error *err)
{
    const char *text = json_string_value(json_object_get(asked->request, key));
    if (text == NULL)
        error_set(err, "\"%s\" is missing or not a string", key);
    return text;
}

const char *control_host(const struct control_asked *asked, const char *key, struct error *err)
{
    const char *host = control_text(asked, key, err);
    if (host == NULL || name_is_safe(host, strlen(host)))
        return host;
    error_set(err, "\"%s\" is not the name of a host", key);
    return NULL;
}

int control_time(const struct control_asked *asked, const char *key, int64_t *ms, struct error *err)
{
    const json_t *value = json_object_get(asked->request, key);
    *ms = -1;
    if (value == NULL || json_is_null(value))
        return 0;
    double seconds = json_number_value(value);
    if (!json_is_number(value) || !(seconds >= 0 && seconds <= TIME_MAX_S))
        return error_set(err, "\"%s\" is not a time; expected a number of seconds, 0 or more", key);
    *ms = (int64_t)(seconds * 1000 + 0.5);
    return 0;
}

int control_ranks(const struct control_asked *asked, const char *key, const char **ranks,
                  struct error *err)
{
    const json_t *list = json_object_get(asked->request, key);
    *ranks = json_string_value(list);
    if (*ranks == NULL && list != NULL && !json_is_null(list))
        return error_set(err, "\"%s\" is not a string", key);
    return 0;
}

json_t *control_accepted(int result)
{
    return result < 0 ? NULL : json_pack("{s:b}", "ok", 1);
}

void control_sign(const struct control_asked *asked, json_t *answer)
{
    json_object_set_new(answer, "protocol", json_integer(CONTROL_PROTOCOL));
    json_object_set_new(answer, "job", json_string(asked->job));
}

char *control_asker_text(const struct control_asker *asker)
{
    char now[DAY_TIME_SIZE];
    day_time_text(clock_wall_ns(), now);
    const char *user = asker->user;
    char *command AUTO_FREE = asker->command == NULL ? mem_strdup("a request to the control socket")
                                                     : mem_printf("'hvdrun %.20s'", asker->command);
    return mem_printf("%s (%s%.40s%s%s)", command, user != NULL ? "user " : "",
                      user != NULL ? user : "", user != NULL ? ", " : "", now);
}

static const char *name_of(const json_t *request, const char *key)
{
    const char *name = json_string_value(json_object_get(request, key));
    return name != NULL && name_is_safe(name, strlen(name)) ? name : NULL;
}

/* A client of this user may say what it likes, but it is not root. */
static struct control_asker asker_of(const json_t *request, bool by_root)
{
    const char *user = name_of(request, "user");
    if (by_root)
        user = "root";
    else if (user != NULL && strcmp(user, "root") == 0)
        user = NULL;
    return (struct control_asker){name_of(request, "command"), user};
}

const struct control_rule *control_rule_of(const struct control_rule *rules, const char *name)
{
    while (rules != NULL && rules->name != NULL && strcmp(rules->name, name) != 0)
        rules++;
    return rules != NULL && rules->name != NULL ? rules : NULL;
}

static json_t *answer_request(const struct control_answers *answers,
                              const struct control_asked *asked, struct error *err)
{
    const json_t *protocol = json_object_get(asked->request, "protocol");
    const char *name = control_text(asked, "do", err);
    if (name == NULL)
        return NULL;
    if (json_integer_value(protocol) > CONTROL_PROTOCOL) {
        error_set(err, "this job runs an older version of hvdrun (" HVDRUN_VERSION
                       "), which does not know this command");
        return NULL;
    }
    const struct control_rule *rule = answers->find(answers->context, name);
    if (rule != NULL)
        return rule->answer(answers->context, asked, err);
    error_set(err, "this job runs hvdrun " HVDRUN_VERSION ", which does not know that \"do\"");
    return NULL;
}

json_t *control_request_answer(const struct control_answers *answers, const char *line,
                               size_t length, bool by_root, struct control_later *later)
{
    struct error err = ERROR_INIT;
    json_error_t where;
    json_t *request = json_loadb(line, length, JSON_REJECT_DUPLICATES, &where);
    struct control_asked asked = {request, asker_of(request, by_root), answers->job, later};
    json_t *answer = NULL;
    if (json_is_object(request))
        answer = answer_request(answers, &asked, &err);
    else
        error_set(&err, "not a valid request; expected one JSON object on a line%s%s",
                  request == NULL ? ": " : "", request == NULL ? where.text : "");
    json_decref(request);
    if (answer != NULL || err.text[0] == '\0')
        return answer;
    answer = json_pack("{s:s}", "error", err.text);
    return answer != NULL ? answer
                          : json_pack("{s:s}", "error", "the error message is not valid UTF-8");
}
