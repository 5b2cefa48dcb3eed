/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/gpu_health_json.h"

#include <jansson.h>

#include "driver/tell/json_text.h"
#include "model/explain/gpu_words.h"

#define UNKNOWN UINT64_MAX /* a count of errors */

static json_t *reasons_json(uint64_t bits)
{
    json_t *list = json_array();
    for (int i = 0; clock_reason_name(i) != NULL; i++) {
        if (bits & clock_reason_bit(i))
            json_array_append_new(list, json_string(clock_reason_name(i)));
    }
    return list;
}

static void set_count(json_t *object, const char *key, uint64_t count)
{
    if (count != UNKNOWN)
        json_object_set_new(object, key,
                            json_integer(count > INT64_MAX ? INT64_MAX : (json_int_t)count));
}

static json_t *counts_json(const uint64_t *counts)
{
    json_t *object = json_object();
    set_count(object, "volatile", counts[0]);
    set_count(object, "aggregate", counts[1]);
    return object;
}

static json_t *ecc_json(const uint64_t *counts)
{
    json_t *object = json_object();
    json_object_set_new(object, "corrected", counts_json(counts));
    json_object_set_new(object, "uncorrected", counts_json(counts + 2));
    return object;
}

static json_t *rows_json(const Hvdrun__GpuHealth *gpu)
{
    json_t *object = json_object();
    json_object_set_new(object, "corrected", json_integer(gpu->remapped_rows[0]));
    json_object_set_new(object, "uncorrected", json_integer(gpu->remapped_rows[1]));
    json_object_set_new(object, "pending", json_boolean(gpu->remapping_pending));
    json_object_set_new(object, "failed", json_boolean(gpu->remapping_failed));
    return object;
}

static json_t *gpu_json(const Hvdrun__GpuHealth *gpu)
{
    json_t *object = json_object();
    const char *trouble = gpu_trouble_text((int)gpu->trouble);
    json_object_set_new(object, "index", json_integer(gpu->index));
    if (gpu->uuid[0] != '\0')
        json_object_set_new(object, "uuid", json_text(gpu->uuid));
    if (gpu->pci[0] != '\0')
        json_object_set_new(object, "pci", json_text(gpu->pci));
    if (trouble != NULL)
        json_object_set_new(object, "trouble", json_string(trouble));
    if (gpu->has_temperature)
        json_object_set_new(object, "temperature_celsius", json_integer(gpu->celsius));
    if (gpu->has_reasons)
        json_object_set_new(object, "clock_reasons", reasons_json(gpu->reasons));
    if (gpu->n_ecc_errors == 4)
        json_object_set_new(object, "ecc_errors", ecc_json(gpu->ecc_errors));
    if (gpu->n_remapped_rows == 2)
        json_object_set_new(object, "remapped_rows", rows_json(gpu));
    return object;
}

json_t *gpu_health_json(const Hvdrun__GpuHealths *message)
{
    json_t *list = json_array();
    for (size_t i = 0; i < message->n_gpus; i++)
        json_array_append_new(list, gpu_json(message->gpus[i]));
    return list;
}
