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

/* A variable that names the folder of hvdrun's own Python package `horovod`. The environment of a
 * worker then has this folder at the end of PYTHONPATH (worker.h). */
#define HOROVOD_PATH_VARIABLE "HVDRUN_HOROVOD_PATH"

/* Appends this variable, and HVDRUN_HOROVOD, which says whether the package gives way to a real
 * Horovod. Nothing with --horovod=none. `modules` is the folder of hvdrun's modules. */
void horovod_env_package(const struct settings *settings, const char *modules, struct strv *out);
