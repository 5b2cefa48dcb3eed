/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program finds in an image: other programs, and libraries. An image is a folder, the root
 * of the file system of a container. NULL instead of one: the program runs in none.
 *
 * A line such as `apptainer exec IMAGE python3 train.py` runs a program in an image. No options of
 * apptainer and its like are known here: the image is the first word that names such a folder.
 * What they mount into the container is not looked at, except files that the image does not have.
 */
#pragma once

#include <stdbool.h>

#include "base/elf.h"

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

/* The file that a program in the image sees as `path`, without links: its path for us.
 * The caller frees it. NULL: there is none, or the kernel is older than 5.6. */
char *image_real(const char *root, const char *path);

/* The program that the image would run as `command`: its path there. The caller frees it. NULL: it
 * has none. */
char *image_find(const char *root, const char *command);

/*
 * Finds a library where the dynamic linker would: run paths, LD_LIBRARY_PATH, the folders of
 * /etc/ld.so.conf, the system's own. This is an approximation: ld.so.cache is not read, since its
 * folders are those of ld.so.conf.
 */
struct library_search;

/* For the libraries of `program`, which is a path in the image. All pointers are borrowed until
 * destroy. */
struct library_search *library_search_create(const char *root, const char *program,
                                             const struct elf_info *info, const char *library_path);
void library_search_destroy(struct library_search *search);

/* Finds the library, of the program's class and machine, and reads it into `out` (destroy it).
 * -1: not found. */
int library_search_open(struct library_search *search, const char *name, struct elf_info *out);

/* errno of a file that could not be read because descriptors or memory ran out, or the disk failed.
 * Then "not found" means nothing. 0: there was none. */
int library_search_trouble(const struct library_search *search);
bool library_is_trouble(int errnum);

/* elf_read() from a descriptor, which stays the caller's. -1 with errno 0: it is not an ELF
 * file. */
int library_read_elf(int fd, struct elf_info *out);
