/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain_json_gpus.h"

#include <string.h>

#include "model/explain/gpu_words.h"

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static int64_t number_of(const json_t *object, const char *key, int64_t most)
{
    json_int_t number = json_integer_value(json_object_get(object, key));
    return number < 0 ? 0 : number > most ? most : number;
}

/* The last one says the most: a GPU that is too hot is also slowed down by its hardware. */
static const char *alarm_of(const json_t *reasons)
{
    const char *alarm = NULL;
    for (size_t i = 0; i < json_array_size(reasons); i++) {
        const char *name = json_string_value(json_array_get(reasons, i));
        if (name != NULL && clock_reason_is_alarm(name))
            alarm = name;
    }
    return alarm;
}

static struct explain_gpu gpu_of(const json_t *object)
{
    const json_t *rows = json_object_get(object, "remapped_rows"),
                 *ecc = json_object_get(json_object_get(object, "ecc_errors"), "uncorrected");
    return (struct explain_gpu){.index = (int)number_of(object, "index", 9999),
                                .pci = text_of(object, "pci"),
                                .trouble = text_of(object, "trouble"),
                                .slowed_by = alarm_of(json_object_get(object, "clock_reasons")),
                                .celsius = (int)number_of(object, "temperature_celsius", 9999),
                                .remapping_pending = json_is_true(json_object_get(rows, "pending")),
                                .remapping_failed = json_is_true(json_object_get(rows, "failed")),
                                .uncorrected = number_of(ecc, "volatile", INT64_MAX)};
}

void explain_json_gpus(const json_t *list, struct explain_gpu *out)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        out[i] = gpu_of(json_array_get(list, i));
}
