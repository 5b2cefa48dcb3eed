/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/printed.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "model/usage/proc_text.h"
#include "stacks/runtime.h"

#define MAPS_MAX ((size_t)4 << 20)

/* glibc's FILE: programs were compiled with it, so it stays as it is. */
enum {
    FILE_FLAGS = 0,
    FILE_WRITE_BASE = 32,
    FILE_WRITE_PTR = 40,
    FILE_FILENO = 112,
    FILE_LOCK = 136,
    FILE_SIZE = 216
};
#define FLAGS_MAGIC_MASK 0xffff0000u
#define FLAGS_MAGIC 0xfbad0000u
#define FLAGS_PUTTING 0x0800u

char *printed_library(const char *maps, uint64_t *start)
{
    for (const char *at = maps; *at != '\0'; at = text_behind(at, '\n')) {
        struct proc_mapping line;
        if (proc_mapping_read(at, strcspn(at, "\n"), &line) < 0 || line.offset != 0 ||
            line.rights[3] != 'p')
            continue;
        char *path = mem_strndup(line.path, line.length);
        const char *name = text_base_name(path);
        *start = line.start;
        if (strcmp(name, "libc.so.6") == 0 || text_begins(name, "libc-2."))
            return path;
        free(path);
    }
    return NULL;
}

static bool is_locked(struct memory *memory, uint64_t lock)
{
    int32_t held = 1;
    return lock != 0 && (memory_i32(memory, lock, &held) < 0 || held != 0);
}

int printed_read(struct memory *memory, uint64_t file, struct buf *out, uint64_t *at,
                 uint64_t *value)
{
    unsigned char bytes[FILE_SIZE];
    if (memory_read(memory, file, bytes, sizeof(bytes)) < 0)
        return -1;
    uint32_t flags = memory_u32_at(bytes + FILE_FLAGS);
    uint64_t base = memory_u64_at(bytes + FILE_WRITE_BASE);
    uint64_t ptr = memory_u64_at(bytes + FILE_WRITE_PTR);
    if ((flags & FLAGS_MAGIC_MASK) != FLAGS_MAGIC || (flags & FLAGS_PUTTING) == 0 ||
        memory_u32_at(bytes + FILE_FILENO) != STDOUT_FILENO || base >= ptr ||
        ptr - base > PRINTED_MAX || is_locked(memory, memory_u64_at(bytes + FILE_LOCK)))
        return -1;
    void *room = buf_reserve(out, (size_t)(ptr - base));
    if (room == NULL || memory_read(memory, base, room, (size_t)(ptr - base)) < 0)
        return -1;
    buf_commit(out, (size_t)(ptr - base));
    *at = file + FILE_WRITE_PTR;
    *value = base;
    return 0;
}

static int read_memory(void *context, uint64_t address, void *out, size_t length)
{
    const int *fd = context;
    return fd_pread(*fd, out, length, (off_t)address) == (ssize_t)length ? 0 : -1;
}

/* 0: there is no glibc. */
static uint64_t find_file(pid_t pid)
{
    char *maps AUTO_FREE = mem_printf("/proc/%d/maps", (int)pid);
    struct buf text AUTO_BUF = BUF_INIT(MAPS_MAX);
    uint64_t start = 0, bias = 0;
    (void)fd_read_file(maps, &text, NULL); /* what was read counts, even if the limit cut it */
    char *library AUTO_FREE = printed_library(buf_text(&text), &start);
    if (library == NULL)
        return 0;
    char *path AUTO_FREE = mem_printf("/proc/%d/root%s", (int)pid, library);
    int fd AUTO_FD = fd_open_regular(path);
    struct symbols symbols;
    bool found = fd >= 0 && symbols_read_file(fd, &symbols) == 0 && symbols.standard_output != 0 &&
                 symbols_bias(&symbols, 0, start, &bias) == 0;
    return found ? symbols.standard_output + bias : 0;
}

/* -1: it is neither a pipe nor a terminal. Only these are opened, since that does not wait for a
 * file system. */
static int open_stdout(pid_t pid)
{
    char *path AUTO_FREE = mem_printf("/proc/%d/fd/%d", (int)pid, STDOUT_FILENO);
    char what[16] = "";
    bool fits = readlink(path, what, sizeof(what) - 1) > 0 &&
                (strncmp(what, "pipe:[", 6) == 0 || strncmp(what, "/dev/pts/", 9) == 0);
    return fits ? fd_open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0) : -1;
}

static bool store(int fd, uint64_t at, const void *bytes, size_t length)
{
    return lseek(fd, (off_t)at, SEEK_SET) >= 0 && fd_write(fd, bytes, length) == (ssize_t)length;
}

void printed_flush(pid_t pid)
{
    int out AUTO_FD = open_stdout(pid);
    uint64_t file = out >= 0 ? find_file(pid) : 0, at = 0, base = 0;
    char *mem AUTO_FREE = mem_printf("/proc/%d/mem", (int)pid);
    int fd AUTO_FD = file != 0 ? fd_open(mem, O_RDWR | O_CLOEXEC, 0) : -1;
    struct memory memory = {.read = read_memory, .context = &fd, .budget = MEMORY_BUDGET};
    struct buf text AUTO_BUF = BUF_INIT(PRINTED_MAX);
    if (fd < 0 || printed_read(&memory, file, &text, &at, &base) < 0)
        return;
    /* one that is full takes nothing of a usual buffer, and the process keeps it */
    ssize_t taken = fd_write(out, buf_text(&text), text.length);
    if (taken <= 0)
        return;
    size_t rest = text.length - (size_t)taken; /* goes to the beginning of the buffer */
    uint64_t end = base + rest;
    if (rest == 0 || store(fd, base, buf_text(&text) + taken, rest))
        (void)store(fd, at, &end, sizeof(end));
}
