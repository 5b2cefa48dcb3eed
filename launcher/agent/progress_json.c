/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/progress_json.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

/* Values are strings in today's clients. */
static void take_metric(const json_t *metric, struct progress *out)
{
    char number[PROGRESS_VALUE_MAX];
    const json_t *value = json_object_get(metric, "value");
    const char *name = json_string_value(json_object_get(metric, "name"));
    const char *text = json_string_value(value);
    if (json_is_number(value)) {
        snprintf(number, sizeof(number), "%.10g", json_number_value(value));
        text = number;
    }
    if (name != NULL && text != NULL)
        progress_add_metric(out, name, text);
}

static void take_status(const json_t *status, struct progress *out)
{
    const json_t *percent = json_object_get(status, "progressPercentage");
    const json_t *eta = json_object_get(status, "estimatedRemainingSeconds");
    const json_t *metrics = json_object_get(status, "metrics");
    if (json_is_number(percent))
        progress_set_percent(out, json_number_value(percent), NULL);
    if (json_is_number(eta))
        progress_set_eta(out, json_number_value(eta), NULL);
    for (size_t i = 0; i < json_array_size(metrics); i++)
        take_metric(json_array_get(metrics, i), out);
}

int progress_json_parse(const void *body, size_t length, struct progress *out, struct error *err)
{
    json_error_t why;
    json_t *root = json_loadb(body != NULL ? body : "", length, 0, &why);
    if (root == NULL && json_error_code(&why) == json_error_out_of_memory)
        mem_exhausted();
    const json_t *status = json_object_get(root, "trainerStatus");
    bool right = json_is_object(status);
    if (right)
        take_status(status, out);
    json_decref(root);
    return right ? 0 : error_set(err, "the body is not JSON with a trainerStatus");
}

char *progress_json_refusal(int status, const char *reason, const char *message)
{
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "apiVersion", "v1", "kind", "Status", "status",
                  "Failure", "message", message, "reason", reason, "code", status);
    char *text = object == NULL ? NULL : json_dumps(object, JSON_COMPACT);
    json_decref(object);
    char *copy = mem_strdup(text != NULL ? text : "{}");
    free(text);
    return copy;
}
