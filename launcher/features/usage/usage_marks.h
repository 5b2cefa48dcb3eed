/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ranks differ from the others in what they use (model/usage/outliers.h). Pure. `usage` is as
 * in usage_driver.h, of which nothing is taken for granted.
 */
#pragma once

struct json_t;

/* Puts the ranks that differ from the others first, and says in "marks" in which values they do:
 * {"cpus": "less", "resident_bytes": "more", "last_output_s": "none"}. "none": the rank has never
 * had a value that most others have. */
void usage_marks_set(struct json_t *usage);

/* A number of a rank or a host; of progress, its percent. NAN: there is none. */
double usage_value(const struct json_t *object, const char *key);
