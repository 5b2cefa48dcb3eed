/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Can the PyTorch of a program use a store that another process serves? Only the files are read.
 *
 * Up to 2.3, any can. From 2.4 on, its client asks for libuv then, and fails in a PyTorch that was
 * built without. Such a libtorch_cpu.so has the text of the error message in it.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "node/python_files.h"

/* -1: `err` says why not: the program is not Python, or has no PyTorch, or one that cannot. If
 * several may be the one that it imports, all of them must be able to. */
int torch_look(const struct python_place *place, struct error *err);

/* "__version__ = '2.6.0+cu124'" in version.py. false: there is no version. */
bool torch_look_version(const char *text, int *major, int *minor);
/* Is `text` in the section .rodata of this ELF file? -1: that cannot be read. */
int torch_look_rodata(const char *path, const char *text);
