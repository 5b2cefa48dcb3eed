/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Horovod's knobs as variables, from the options that horovodrun has too. Pure.
 *
 * Names, units and conditions are those of horovodrun 0.28 (horovod/runner/common/util/
 * config_parser.py): megabytes become bytes, --no-stall-check becomes
 * HOROVOD_STALL_CHECK_DISABLE=1, the autotune details count only with --autotune, marking cycles
 * only with a timeline. An option that was not given sets nothing, so the user's own variable
 * stays.
 */
#pragma once

#include "base/strv.h"
#include "model/settings/settings.h"

/* Appends "NAME=value" for each option that was given. */
void horovod_env_build(const struct settings *settings, struct strv *out);
