/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of one known_hosts file by the names in them, so that many hosts can be looked up in a
 * file that has a line for each without reading all of it every time. It only chooses lines: what
 * they say about a host, known_hosts_read_line() decides. Pure.
 *
 * A plain scan of 1,000 lines for each of 1,000 hosts takes 100 ms, or 2 s with hashed names; with
 * the index it is 3 ms, or 0.3 s.
 *
 * Lines with a pattern are for every host. A hashed name is tried with each host until one is
 * found to be meant; it can be no other's, so it is not tried again.
 */
#pragma once

#include "base/buf.h"
#include "transport/ssh_module/known_hosts.h"
#include "transport/ssh_module/name_hash.h"

struct known_index;

/* `file`: its name for messages. The hasher is borrowed, until destroy. */
struct known_index *known_index_create(const char *file, struct name_hasher *hasher);
void known_index_destroy(struct known_index *index); /* accepts NULL */

/* The file's text is this now (at most 4 GiB); its bytes are taken, and `text` left empty. Where
 * lines have only been added to what it was, only those are read. */
void known_index_set(struct known_index *index, struct buf *text);

/* Adds what the file says about this host, in the order of its lines. */
void known_index_find(struct known_index *index, struct known_hosts *known);
