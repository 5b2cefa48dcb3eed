/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/program_advice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define LINE_MAX_BYTES 256 /* as much of a #! line as the kernel reads */

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

/* The interpreter of "#!/bin/sh -e" and "#!/usr/bin/env python3". The caller's; NULL: none. */
static char *interpreter_of(const char *line)
{
    static const char blanks[] = " \t\r\n";
    if (strncmp(line, "#!", 2) != 0)
        return NULL;
    line += 2 + strspn(line + 2, blanks);
    size_t length = strcspn(line, blanks);
    char *first AUTO_FREE = mem_strndup(line, length);
    line += length + strspn(line + length, blanks);
    if (ends_with(first, "/env") && *line != '\0' && *line != '-')
        return mem_strndup(line, strcspn(line, blanks));
    return length == 0 ? NULL : mem_strdup(first);
}

/* The caller's. NULL: it is not a script. */
static char *interpreter(const char *path)
{
    char line[LINE_MAX_BYTES];
    int fd AUTO_FD = fd_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    ssize_t got = fd < 0 ? -1 : fd_read(fd, line, sizeof(line) - 1);
    line[got > 0 ? got : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    char *found = interpreter_of(line);
    if (found == NULL && ends_with(path, ".py"))
        return mem_strdup("python3");
    return found;
}

void program_advice(const char *program, const char *wdir, struct error *err)
{
    struct stat info;
    bool inside = program[0] != '/' && wdir != NULL;
    char *path AUTO_FREE = mem_printf("%s%s%s", inside ? wdir : "", inside ? "/" : "", program);
    if (err == NULL || err->errnum != EACCES || strchr(program, '/') == NULL ||
        stat(path, &info) < 0 || !S_ISREG(info.st_mode) || (info.st_mode & 0111) != 0)
        return;
    char *front AUTO_FREE = interpreter(path);
    char *text AUTO_FREE = mem_strdup(err->text);
    struct error why = *err;
    error_set(err, "%s; chmod +x makes it executable%s%s%s", text,
              front == NULL ? "" : ", or write ", front == NULL ? "" : front,
              front == NULL ? "" : " in front of it");
    err->status = why.status;
    err->errnum = why.errnum;
}
