/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to each PMI-1 command. */
#pragma once

#include "base/error.h"
#include "pmi1/dialogue.h"

/* -1: the line is not a command, or not one that may come now. */
int pmi1_command(struct pmi1_engine *engine, struct member *member, const struct pmi1_line *line,
                 struct error *err);
/* A line inside a block; -1 never. */
void pmi1_block_line(struct pmi1_engine *engine, struct member *member, const char *bytes,
                     size_t length);
/* Answers a request for a name: `port` for a lookup that found something, "" for the others, NULL:
 * failed. */
void pmi1_answer_name(struct pmi1_engine *engine, const struct member *member,
                      enum pmi1_name_request request, const char *port);
