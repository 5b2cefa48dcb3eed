/* SPDX-License-Identifier: Apache-2.0 */
/* What stands out in the evidence of a host: memory kills, GPUs, pressure, full folders, lines of
 * the kernel. Pure. */
#pragma once

#include "features/evidence/facts.h"

#define HOST_SIGN_PRESSURE                                                \
    10.0 /* percent of the last 10 s in which all tasks waited for memory \
          */

/* `host` is one of the facts. The text is borrowed. */
void host_signs(const struct explain_facts *facts, const struct explain_host *host,
                void (*each)(void *context, const char *host, const char *text), void *context);

/* "oom_kill", of the cgroup; 0: none, or not known. */
long host_signs_memory_kills(const struct explain_host *host);
/* A folder that is full. The caller frees it. NULL: none. */
char *host_signs_full_folder(const struct explain_host *host);

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
