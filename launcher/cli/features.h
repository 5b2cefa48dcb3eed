/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which features this hvdrun has. cli/features.def lists all of them, with the options and commands
 * that need each. Every feature defines `const char NAME_feature[]`, one line that says what it is.
 * That is a weak symbol here: in a build without the feature it is NULL.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "model/settings/settings.h"

/* -1: the command `word`, or an option that was given, needs a feature that this hvdrun does not
 * have. The error says so. STATUS_USAGE. */
int features_allow_command(const char *word, struct error *err);
int features_allow_options(const struct settings *settings, struct error *err);

void features_text(struct buf *out); /* for --check-build: a line for each */
