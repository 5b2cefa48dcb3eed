/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The holder: what `hvdrun warm start` leaves on a host. Its folder is for this user alone:
 * ${TMPDIR:-/tmp}/hvdrun-UID/.warm-HOST, mode 0700.
 *
 *   lock       locked while the holder lives
 *   busy       locked while it serves a job
 *   inherits   what its processes have inherited (inherited_cli.h)
 *   list       fields for each mother: pid, birth (struct warm_kept), program
 *   socket     takes a message of a word: "stop", or "job" with two descriptors, a file with the
 *              folder and the environment of the job (below) and the stream of its agent. The
 *              answer is "yes", or why not.
 *
 * Both ends of the socket check that the other one is of this user.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/strv.h"

#define WARM_WORD "--warm" /* of hvdrun-agent; then the number of a descriptor (holder_agent.c) */
#define WARM_ANSWER_MAX 256
#define WARM_TEXT_MAX ((size_t)1 << 24)

int warm_folder_open(struct error *err); /* makes it. -1: it is not of this user alone */
char *warm_folder_path(void);            /* the caller frees it */
bool warm_is_locked(int folder, const char *name);
bool warm_is_ours(int socket, pid_t *pid); /* the other end is of this user; its process */

/* A file in memory with these bytes, at its beginning. -1 and errno. */
int warm_file(const void *bytes, size_t length);

/* A message with descriptors, at most WARM_FILES_MAX. -1 and errno, also if it would have to wait.
 */
#define WARM_FILES_MAX 253
int warm_send(int socket, const struct buf *text, const int *fds, size_t count);

int64_t warm_bytes(pid_t pid); /* of memory, with its share of what others use too; 0: unknown */

/* Texts, each of which ends with NUL: what the agent, mothers and the holder tell each other. */

void fields_put(struct buf *out, const char *text);
void fields_put_number(struct buf *out, uint64_t number);
void fields_put_all(struct buf *out, const struct strv *list);
void fields_put_list(struct buf *out, const struct strv *list); /* its length first */

struct field_reader { /* what is left to read */
    const char *at, *end;
};

/* Borrowed; empty if there is none, or if it does not end with NUL. */
const char *fields_next(struct field_reader *fields);
int64_t fields_next_number(struct field_reader *fields); /* -1: it is none */
void fields_next_list(struct field_reader *fields, struct strv *out);
