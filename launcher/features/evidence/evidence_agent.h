/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers about the topic "evidence". The first piece comes at once: what this host knows after a
 * failure (features/evidence/host_evidence.h), and the environment of one of its workers, without
 * secrets. Files follow: the dumps of PyTorch's flight recorder, what NCCL says (RAS), and what
 * NVIDIA's library knows of the GPUs.
 */
#pragma once

#include "agent/ask.h"
#include "agent/crews.h"
#include "io/helpers.h"

struct evidence_desk;

/* All are borrowed. `program`: a path of hvdrun-agent. */
struct evidence_desk *evidence_desk_create(struct loop *loop, struct helpers *helpers,
                                           const char *program);
void evidence_desk_destroy(struct evidence_desk *desk); /* accepts NULL */

/* A question that comes while files of an earlier one are collected takes its place. `file_bytes`:
 * of all dumps. */
void evidence_desk_ask(struct evidence_desk *desk, const struct crews *crews,
                       const struct asked *asked, uint64_t file_bytes);
