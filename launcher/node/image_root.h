/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image and the command of a line such as `apptainer exec IMAGE python3 train.py`. It runs a
 * program in a container. The image is a folder: the root of a file system.
 *
 * It knows no options of these programs: the image is the first word that names such a folder.
 * What they mount into the container is not looked at, except files that the image does not have.
 */
#pragma once

#include <stdbool.h>

/* Does a program run others in a container, or in an environment of Python that it chooses? By its
 * name: apptainer, conda... */
bool image_is_wrapper(const char *path);

struct image_command {
    char *root;        /* absolute; the caller frees it */
    char *const *argv; /* the command inside, NULL-ended; borrowed from the line */
    bool inherits;     /* the container has the variables of the outside */
};

/* `path`: the program of the line; `get`: a variable of it, or NULL. false: it does not run such a
 * container. */
bool image_command_of(const char *path, char *const *argv, const char *wdir,
                      const char *(*get)(const void *context, const char *name),
                      const void *context, struct image_command *out);

/* The file that a program in the image sees as `path`, without links: its path for us. `root` may
 * be NULL: no image. The caller frees it. NULL: there is none, or the kernel is older than 5.6. */
char *image_real(const char *root, const char *path);

/* The program that the image would run as `command`: its path there. The caller frees it. NULL: it
 * has none. */
char *image_find(const char *root, const char *command);
