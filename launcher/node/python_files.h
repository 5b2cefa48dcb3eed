/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a Python program would import a package from. It reads files only, and runs no Python: so
 * it may find more than the program would, such as packages of another version of Python.
 */
#pragma once

#include <stdbool.h>

#include "base/strv.h"

/* The environment of the program; each but `path` may be NULL. */
struct python_place {
    const char *root;   /* of the image that it runs in (node/image.h); NULL: none */
    const char *path;   /* of the program, absolute; with a root, the path there */
    const char *wdir;   /* NULL: where we are */
    const char *search; /* PATH */
    const char *home, *python_path;
    const char *user_base, *no_user_site; /* PYTHONUSERBASE, PYTHONNOUSERSITE */
};

/* Appends the words behind the "#!" of a script, which is a path for us. false: it is none. */
bool script_words(const char *path, struct strv *words);

/* The program itself, or, as a path likewise, that of a script with "#!/usr/bin/python3" or
 * "#!/usr/bin/env python3". The caller frees it. NULL: it is not Python, maybe another script. */
char *python_interpreter(const struct python_place *place, bool *script);

/* A command of the program, as a path likewise: by PATH, or in the image. NULL: there is none. */
char *python_find(const struct python_place *place, const char *command);

bool python_is(const char *path); /* by the name of the file */

/* Appends the paths for us of the files that match, such as "torch/version.py", in the folders that
 * the interpreter imports from: PYTHONPATH, then the virtual environment, then the user's and the
 * system's. */
void python_files(const struct python_place *place, const char *interpreter, const char *pattern,
                  struct strv *out);

/* Appends the folders that mpi4py looks for libraries in, likewise: "lib" of a virtual environment,
 * of the user's packages, and of an interpreter that is not in /usr. */
void python_libraries(const struct python_place *place, const char *interpreter, struct strv *out);
