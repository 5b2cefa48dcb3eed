/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this machine knows after a failure: pressure, memory kills, the kernel's log, where core
 * files go, full folders. It reads files of the kernel and asks two folders; nothing here waits for
 * the network. What cannot be read is left out, or its text says why. Lines of the kernel begin
 * with their time in seconds since 1970, "[1795398087.414] ".
 */
#pragma once

#include "base/buf.h"

#define EVIDENCE_ITEM_MAX ((size_t)32 << 10) /* bytes of one text */

/* What a file of evidence has. */
enum evidence_file_kind {
    EVIDENCE_FILE_FLIGHT = 1, /* a dump of PyTorch's flight recorder */
    EVIDENCE_FILE_RAS = 2,    /* the answer of NCCL's RAS, JSON */
    EVIDENCE_FILE_GPUS = 3,   /* GpuHealths; `missing`: why some of it is not there */
};

/* `name` is static. The text has whole lines, and is borrowed. */
typedef void evidence_take(void *context, const char *name, const char *text);

/* `root` is put in front of /proc, /sys and /dev: "" except in tests. */
void evidence_collect(const char *root, evidence_take *take, void *context);
