/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which lines of a rank's stderr say the most about its end? Pure.
 *
 * If the last error in the text can be recognised (model/exit/symptom.h), its line is the last one
 * that is quoted. What follows is about the clean-up. Otherwise the last lines are quoted. Lines
 * that say nothing about an error are left out, such as those that PyTorch writes when hvdrun asks
 * for its flight recorder.
 */
#pragma once

#include <stddef.h>

#include "base/strv.h"

#define QUOTE_LINES 3

/* `text`: whole lines. Adds at most QUOTE_LINES of them, without blanks in front. */
void explain_quote(const char *text, struct strv *out);
