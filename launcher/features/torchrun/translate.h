/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of torchrun, deepspeed or accelerate launch as options and a program of hvdrun. Pure.
 *
 * An option that has the same value in hvdrun without it is left out. So a line that says little
 * becomes a short one.
 */
#pragma once

#include "features/torchrun/translation.h"

/* As line_translate. */
int translate_line(char *const *words, char *const *envp, const struct line_machine *machine,
                   struct line *out, struct error *err);
