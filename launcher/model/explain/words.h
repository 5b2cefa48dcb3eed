/* SPDX-License-Identifier: Apache-2.0 */
/* Fills facts into the texts of cause.def. Pure. */
#pragma once

#include "model/explain/view.h"

/* {NAME} becomes the fact of that name, {NAME:TEXT} becomes TEXT if it is not known. The caller
 * frees it. */
char *words_fill(const struct view *v, const char *text);
