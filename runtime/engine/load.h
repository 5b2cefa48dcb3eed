/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the module of an engine. So libhvd needs neither MPI nor Gloo, and a program that uses it
 * starts on a host without them. Modules are named hvd-NAME.so. A module that was loaded stays
 * loaded until the process ends, because MPI and Gloo have threads and handlers of their own.
 */
#pragma once

#include "engine/engine.h"

/* The engine of this name: self is always there. `folder` has the modules. HVD_ERR_UNSUPPORTED: the
 * engine is not installed, or a library that it needs is not; the error says which. */
enum hvd_status engine_load(const char *folder, const char *name, const struct engine **engine,
                            struct error *err);

/* Whether `folder` has the module, or the name is self. Loads nothing. */
bool engine_exists(const char *folder, const char *name);

/* The folder hvd/ beside the file that contains this function: libhvd.so, or else the program. If
 * it does not exist, the folder where libhvd is installed, or usually is. The caller frees it. */
char *engine_folder(void);
