/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of known_files alone. */
#pragma once

#include "base/buf.h"
#include "transport/ssh_module/known_files.h"
#include "transport/ssh_module/known_hosts.h"
#include "transport/ssh_module/name_hash.h"

struct known_index;

/* `file`: its name for messages. The hasher is borrowed, until destroy. */
struct known_index *known_index_create(const char *file, struct name_hasher *hasher);
void known_index_destroy(struct known_index *index); /* accepts NULL */

/* Sets the file's text (at most 4 GiB). Takes its bytes and leaves `text` empty. If lines were only
 * added since the last call, only those are read. */
void known_index_set(struct known_index *index, struct buf *text);

/* Adds what the file says about this host, in the order of its lines. */
void known_index_find(struct known_index *index, struct known_hosts *known);
