/* SPDX-License-Identifier: Apache-2.0 */
/* A folder that stands for `/`: files and links are written into it as a test wants them. */
#pragma once

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"

#define FAKE_ROOT "/tmp/hvdrun-test-XXXXXX"

/* The path of `name` below `root`, with the folders on the way made. The caller owns it. */
static inline char *fake_path(const char *root, const char *name)
{
    char *path = mem_printf("%s/%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    return path;
}

static inline void put_file(const char *root, const char *name, const char *text)
{
    char *path AUTO_FREE = fake_path(root, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
    close(fd);
}

/* A link to another name below `root`. */
static inline void put_link(const char *root, const char *name, const char *to)
{
    char *path AUTO_FREE = fake_path(root, name), *target AUTO_FREE = mem_printf("%s/%s", root, to);
    assert_int_equal(symlink(target, path), 0);
}

/* A PCI device: its folder is `path` below sys/devices, whose last part is its address. */
static inline void put_pci(const char *root, const char *path, const char *class, const char *numa,
                           const char *cpus)
{
    const char *address = strrchr(path, '/') + 1;
    const char *const files[][2] = {{"class", class}, {"numa_node", numa}, {"local_cpulist", cpus}};
    for (size_t i = 0; i < 3; i++) {
        char *file AUTO_FREE = mem_printf("sys/devices/%s/%s", path, files[i][0]);
        put_file(root, file, files[i][1]);
    }
    char *link AUTO_FREE = mem_printf("sys/bus/pci/devices/%s", address);
    char *folder AUTO_FREE = mem_printf("sys/devices/%s", path);
    put_link(root, link, folder);
}

static inline int fake_remove_one(const char *path, const struct stat *info, int kind,
                                  struct FTW *ftw)
{
    (void)info;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static inline void fake_remove(const char *root)
{
    assert_int_equal(nftw(root, fake_remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}
