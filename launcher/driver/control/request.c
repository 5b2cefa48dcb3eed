/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/control/request.h"

#include <signal.h>
#include <string.h>

#include "base/parse.h"
#include "model/exit/signal_name.h"
#include "model/hosts/entry.h"

#define TIME_MAX_S 1e9

struct control_asked {
    const json_t *request;
    bool by_root;
    const struct control_ops *ops;
    void *context;
    struct control_later *later;
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

static json_t *status(const struct control_asked *asked, struct error *err)
{
    json_t *answer = asked->ops->status(asked->context);
    if (answer == NULL)
        error_set(err, "the job has no status to show");
    return answer;
}

static json_t *usage(const struct control_asked *asked, struct error *err)
{
    (void)err;
    return asked->ops->usage(asked->context);
}

/* The time under a key, in milliseconds; `*has` says whether there is one. */
static int time_of(const json_t *request, const char *key, bool *has, int64_t *ms,
                   struct error *err)
{
    const json_t *value = json_object_get(request, key);
    *has = value != NULL && !json_is_null(value);
    *ms = 0;
    if (!*has)
        return 0;
    double seconds = json_number_value(value);
    if (!json_is_number(value) || !(seconds >= 0 && seconds <= TIME_MAX_S))
        return error_set(err, "\"%s\" is not a time; expected a number of seconds, 0 or more", key);
    *ms = (int64_t)(seconds * 1000 + 0.5);
    return 0;
}

static json_t *accepted(int result)
{
    return result < 0 ? NULL : json_pack("{s:b}", "ok", 1);
}

static json_t *drain(const struct control_asked *asked, struct error *err)
{
    const char *host = host_of(asked->request, err);
    bool has_deadline;
    int64_t within_ms;
    if (host == NULL || time_of(asked->request, "within_s", &has_deadline, &within_ms, err) < 0)
        return NULL;
    return accepted(asked->ops->drain(asked->context, host, has_deadline, within_ms, err));
}

static json_t *undrain(const struct control_asked *asked, struct error *err)
{
    const char *host = host_of(asked->request, err);
    return host == NULL ? NULL : accepted(asked->ops->undrain(asked->context, host, err));
}

static json_t *add(const struct control_asked *asked, struct error *err)
{
    const char *text = text_of(asked->request, "hosts", err);
    struct host_list hosts = {0};
    bool added = text != NULL && hosts_parse(text, &hosts, err) == 0 &&
                 asked->ops->add(asked->context, &hosts, err) == 0;
    hosts_destroy(&hosts);
    return added ? json_pack("{s:b}", "ok", 1) : NULL;
}

static const char *name_of(const json_t *request, const char *key)
{
    const char *name = json_string_value(json_object_get(request, key));
    return name != NULL && name_is_safe(name, strlen(name)) ? name : NULL;
}

/* A client of this user may say what it likes, but it is not root. */
static struct control_asker asker_of(const struct control_asked *asked)
{
    const char *user = name_of(asked->request, "user");
    if (asked->by_root)
        user = "root";
    else if (user != NULL && strcmp(user, "root") == 0)
        user = NULL;
    return (struct control_asker){name_of(asked->request, "command"), user};
}

static json_t *stop(const struct control_asked *asked, struct error *err)
{
    bool has_grace;
    int64_t grace_ms;
    if (time_of(asked->request, "grace_s", &has_grace, &grace_ms, err) < 0)
        return NULL;
    struct control_asker asker = asker_of(asked);
    return accepted(asked->ops->stop(asked->context, &asker, has_grace ? grace_ms : -1, err));
}

/* `*ranks` is NULL if there are none. */
static int ranks_of(const json_t *request, const char **ranks, struct error *err)
{
    const json_t *list = json_object_get(request, "ranks");
    *ranks = json_string_value(list);
    if (*ranks == NULL && list != NULL && !json_is_null(list))
        return error_set(err, "\"ranks\" is not a string");
    return 0;
}

/* Those that stop or continue processes would do so behind the back of the job's time limits. */
static json_t *send_signal(const struct control_asked *asked, struct error *err)
{
    const char *name = text_of(asked->request, "signal", err), *ranks = NULL;
    if (name == NULL)
        return NULL;
    int number = signal_number(name);
    if (number == 0 || (signal_is_barred(number) && number != SIGKILL)) {
        error_set(err, number == 0
                           ? "no signal has that name"
                           : "hvdrun does not send signals that stop or continue processes");
        return NULL;
    }
    if (ranks_of(asked->request, &ranks, err) < 0)
        return NULL;
    struct control_asker asker = asker_of(asked);
    return accepted(asked->ops->signal(asked->context, &asker, number, ranks, err));
}

/* It answers later. */
static json_t *stacks(const struct control_asked *asked, struct error *err)
{
    const char *ranks = NULL;
    bool native = json_is_true(json_object_get(asked->request, "native"));
    if (ranks_of(asked->request, &ranks, err) == 0)
        asked->ops->stacks(asked->context, ranks, native, asked->later, err);
    return NULL;
}

/* The control answers when the job ends. */
static json_t *wait_for_end(const struct control_asked *asked, struct error *err)
{
    (void)asked, (void)err;
    return NULL;
}

struct kind {
    const char *name;
    json_t *(*answer)(const struct control_asked *asked, struct error *err);
};

static const struct kind kinds[] = {
    {"status", status},     {"usage", usage}, {"stop", stop}, {"signal", send_signal},
    {"wait", wait_for_end}, {"drain", drain}, {"add", add},   {"undrain", undrain},
    {"stacks", stacks},     {NULL, NULL}};

static json_t *answer_request(const struct control_asked *asked, struct error *err)
{
    const json_t *protocol = json_object_get(asked->request, "protocol");
    const char *name = text_of(asked->request, "do", err);
    if (name == NULL)
        return NULL;
    if (json_integer_value(protocol) > CONTROL_PROTOCOL) {
        error_set(err, "this job runs an older version of hvdrun (" HVDRUN_VERSION
                       "), which does not know this command");
        return NULL;
    }
    const struct kind *kind = kinds;
    while (kind->name != NULL && strcmp(kind->name, name) != 0)
        kind++;
    if (kind->name != NULL)
        return kind->answer(asked, err);
    error_set(err, "this version of hvdrun does not know that \"do\"; expected status, usage, "
                   "stop, signal, stacks, wait, drain, undrain or add");
    return NULL;
}

json_t *control_request_answer(const char *line, size_t length, bool by_root,
                               const struct control_ops *ops, void *context,
                               struct control_later *later)
{
    struct error err = ERROR_INIT;
    json_error_t where;
    json_t *request = json_loadb(line, length, JSON_REJECT_DUPLICATES, &where);
    struct control_asked asked = {request, by_root, ops, context, later};
    json_t *answer = NULL;
    if (json_is_object(request))
        answer = answer_request(&asked, &err);
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
