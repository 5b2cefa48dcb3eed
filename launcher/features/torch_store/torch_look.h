/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Can the PyTorch of a program use a store that another process serves? Only the files are read.
 *
 * Up to 2.3, any can. From 2.4 on, its client asks for libuv then, and fails in a PyTorch that was
 * built without. Such a libtorch_cpu.so has the text of the error message in it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* The environment of the program; each may be NULL. */
struct torch_place {
    const char *path;   /* of the program, absolute */
    const char *search; /* PATH */
    const char *home, *python_path;
};

/* -1: `err` says why not: the program is not Python, or has no PyTorch, or one that cannot. If
 * several may be the one that it imports, all of them must be able to. */
int torch_look(const struct torch_place *place, struct error *err);

/* "__version__ = '2.6.0+cu124'" in version.py. false: there is no version. */
bool torch_look_version(const char *text, int *major, int *minor);
/* Is `text` in the section .rodata of this ELF file? -1: that cannot be read. */
int torch_look_rodata(const char *path, const char *text);
