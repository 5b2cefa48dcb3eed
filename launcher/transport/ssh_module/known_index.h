/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of one known_hosts file by the names in them, so that a lookup does not read the whole
 * file. It only chooses lines; known_hosts_read_line() decides what they say about a host. Pure.
 *
 * A plain scan of 1,000 lines for each of 1,000 hosts takes 100 ms, or 2 s with hashed names. With
 * the index it is 3 ms, or 0.3 s.
 *
 * Lines with a pattern are for every host. A hashed name is tried with each host until it matches
 * one. It cannot match another, so it is not tried again.
 */
#pragma once

#include "base/buf.h"
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
