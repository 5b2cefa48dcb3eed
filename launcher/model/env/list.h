/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists that are the value of one environment variable. Pure. The caller owns what is returned;
 * NULL means that the list is unknown or would be larger than a variable can be.
 */
#pragma once

char *env_list_numbers(const int *numbers, int count); /* "1 3 2" */
char *env_list_sums(const int *numbers, int count);    /* of all before: "0 1 4" */
char *env_list_commas(const int *numbers, int count);  /* "4,5,6" */

/* Slurm's notation of sizes per node: "4(x2),2" for 4, 4, 2. */
char *env_list_sizes(const int *sizes, int count);

/* "NAME=" and the folders of `value` (NULL or empty: none), with `folder` as the last one,
 * where it may be already. */
char *env_list_path(const char *name, const char *value, const char *folder);

/* "NAME=" and `value` (NULL: empty), with those of the NULL-ended `words` appended that it does not
 * have and that no `*` in it covers, separated by commas. NULL when the result is empty and
 * `value` is NULL. */
char *env_list_with(const char *name, const char *value, const char *const *words);
