/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter that a program names: of a script the one behind "#!" (execve(2)), of an ELF
 * program its dynamic loader. The system answers ENOENT or EACCES for a program whose interpreter
 * it cannot execute, although the program itself exists. Only after such an answer it is looked at
 * here: before, a handler of binfmt_misc could still execute the program without it.
 */
#pragma once

#include "base/error.h"

/* What is behind "#!" in the first line of a script, without blanks at its ends. The caller's;
 * NULL: there is no such line, or it is longer than all systems read. */
char *interpreter_line(const char *path);

/* "#!/usr/bin/env NAME" and a carriage return: env exists, and would look for "NAME\r". -1: so it
 * is, and `err` says so. */
int interpreter_check_env(const char *path, struct error *err);

/* execve() of `path` has failed with `errnum`, in the folder `wdir` (NULL: the present one).
 * -1: the interpreter is the reason, and `err` says so. 0: it is not, or cannot be read; `err` is
 * unchanged. */
int interpreter_explain(const char *path, const char *wdir, int errnum, struct error *err);
