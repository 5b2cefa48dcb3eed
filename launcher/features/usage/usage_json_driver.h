/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job uses, for `hvdrun top`:
 *
 *   {"protocol": N, "job": ID, "state": TEXT, "size": N (ranks), "up_s": SECONDS,
 *    "sampled_s": SECONDS (age of the values; no key: there are none yet),
 *    "sampling": true if newer values are on their way,
 *    "hosts": [{"host": NAME, "load": N, "memory_bytes": N, "memory_available_bytes": N,
 *               "pressure": {"cpu": PERCENT, "memory": PERCENT, "io": PERCENT},
 *               "gpus": [{"index": N, "uuid": TEXT, "use_percent": N, "memory_use_percent": N,
 *                         "power_w": N, "energy_j": N, "memory_bytes": N,
 *                         "memory_used_bytes": N, "trouble": TEXT}, ...]}, ...],
 *    "ranks": [{"rank": N, "host": NAME, "pid": N, "up_s": SECONDS, "cpus": N, "cpu_s": SECONDS,
 *               "resident_bytes": N, "threads": N, "processes": N, "read_bytes": N,
 *               "written_bytes": N, "last_output_s": SECONDS,
 *               "gpus": N, "gpu_use_percent": N, "gpu_power_w": N, "gpu_energy_j": N,
 *               "gpu_memory_bytes": N,
 *               "progress": {...} (tell/progress_json.h; no key: it reports none)}, ...]}
 *
 * "ranks" has those that run. A value that is not known has no key. Pressure is how much of the
 * last 10 s some task waited. CPUs are between the last two samples, and 1 is one CPU. A rank whose
 * processes use no GPU has no key of a GPU. The energy is since the driver was loaded.
 */
#pragma once

#include "driver/job/job.h"

struct json_t;

/* Also asks for new values. The caller's. */
struct json_t *usage_json(struct job *job);

/* At the end of the job: "hosts" and "ranks" with the last values, those of ranks that have ended
 * included. The caller's. */
struct json_t *usage_json_last(const struct job *job);
