/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/control/request.h"

#include <string.h>

#include "base/parse.h"
#include "model/hosts/entry.h"

#define WITHIN_MAX_S 1e9

struct asked {
    const json_t *request;
    const struct control_ops *ops;
    void *context;
};

/* The string under a key; NULL and an error: there is none. */
static const char *text_of(const json_t *request, const char *key, struct error *err)
{
    const char *text = json_string_value(json_object_get(request, key));
    if (text == NULL)
        error_set(err, "\"%s\" is missing or not a string", key);
    return text;
}

static const char *host_of(const json_t *request, struct error *err)
{
    const char *host = text_of(request, "host", err);
    if (host == NULL || name_is_safe(host, strlen(host)))
        return host;
    error_set(err, "\"host\" is not the name of a host");
    return NULL;
}

static json_t *status(const struct asked *asked, struct error *err)
{
    json_t *answer = asked->ops->status(asked->context);
    if (answer == NULL)
        error_set(err, "the job has no status to show");
    return answer;
}

static json_t *drain(const struct asked *asked, struct error *err)
{
    const char *host = host_of(asked->request, err);
    const json_t *within = json_object_get(asked->request, "within_s");
    bool has_deadline = within != NULL && !json_is_null(within);
    double seconds = has_deadline ? json_number_value(within) : 0;
    if (host == NULL)
        return NULL;
    if (has_deadline && (!json_is_number(within) || !(seconds >= 0 && seconds <= WITHIN_MAX_S))) {
        error_set(err, "\"within_s\" is not a time; expected a number of seconds, 0 or more");
        return NULL;
    }
    int64_t within_ms = (int64_t)(seconds * 1000 + 0.5);
    if (asked->ops->drain(asked->context, host, has_deadline, within_ms, err) < 0)
        return NULL;
    return json_pack("{s:b}", "ok", 1);
}

static json_t *undrain(const struct asked *asked, struct error *err)
{
    const char *host = host_of(asked->request, err);
    if (host == NULL || asked->ops->undrain(asked->context, host, err) < 0)
        return NULL;
    return json_pack("{s:b}", "ok", 1);
}

static json_t *add(const struct asked *asked, struct error *err)
{
    const char *text = text_of(asked->request, "hosts", err);
    struct host_list hosts = {0};
    bool added = text != NULL && hosts_parse(text, &hosts, err) == 0 &&
                 asked->ops->add(asked->context, &hosts, err) == 0;
    hosts_destroy(&hosts);
    return added ? json_pack("{s:b}", "ok", 1) : NULL;
}

struct kind {
    const char *name;
    json_t *(*answer)(const struct asked *asked, struct error *err);
};

static const struct kind kinds[] = {
    {"status", status}, {"drain", drain}, {"undrain", undrain}, {"add", add}, {NULL, NULL}};

static json_t *answer_request(const struct asked *asked, struct error *err)
{
    const char *name = text_of(asked->request, "do", err);
    if (name == NULL)
        return NULL;
    const struct kind *kind = kinds;
    while (kind->name != NULL && strcmp(kind->name, name) != 0)
        kind++;
    if (kind->name != NULL)
        return kind->answer(asked, err);
    error_set(
        err,
        "this version of hvdrun does not know that \"do\"; expected status, drain, undrain or add");
    return NULL;
}

json_t *control_request_answer(const char *line, size_t length, const struct control_ops *ops,
                               void *context)
{
    struct error err = ERROR_INIT;
    json_error_t where;
    json_t *request = json_loadb(line, length, JSON_REJECT_DUPLICATES, &where);
    struct asked asked = {request, ops, context};
    json_t *answer = NULL;
    if (json_is_object(request))
        answer = answer_request(&asked, &err);
    else
        error_set(&err, "not a valid request; expected one JSON object on a line%s%s",
                  request == NULL ? ": " : "", request == NULL ? where.text : "");
    json_decref(request);
    if (answer != NULL)
        return answer;
    answer = json_pack("{s:s}", "error", err.text);
    return answer != NULL ? answer
                          : json_pack("{s:s}", "error", "the error message is not valid UTF-8");
}
