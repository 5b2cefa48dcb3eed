/* SPDX-License-Identifier: Apache-2.0 */
/* What stands out about the GPUs of a host: errors, and clocks that are too low. Pure. */
#pragma once

#include "model/explain/facts.h"

/* One text for each GPU, those with errors first. It is borrowed. `since_s`: older lines of the
 * kernel are about something else; 0: not known. */
void gpu_signs(const struct explain_host *host, double since_s,
               void (*each)(void *context, const char *text), void *context);

enum gpu_fault {
    GPU_FAULT_NONE,
    GPU_FAULT_PROGRAM, /* most likely of the program that used it */
    GPU_FAULT_GPU,
};

/* The worst one. */
enum gpu_fault gpu_signs_fault(const struct explain_host *host, double since_s);
