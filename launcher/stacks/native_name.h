/* SPDX-License-Identifier: Apache-2.0 */
/* How native functions are called in a tree. Pure. */
#pragma once

#include <stdbool.h>

#include "stacks/module/unwind_module.h"

/* The function without its arguments, and with "<...>" for those of templates. "+0x1b40", the place
 * in the file, if it has no name. At most 160 bytes. The caller's. */
char *native_name(const struct unwind_frame *frame);

/* It runs Python frames: the interpreter's loop. */
bool native_name_is_python(const char *function);

/* At the outer end of a stack: it begins every program or thread, and says nothing. Without the C
 * library's debug symbols, some of these have no name. */
bool native_name_is_start(const char *function, const char *file);
