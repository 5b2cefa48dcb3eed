/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/known_hosts_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define LINE_MAX_BYTES 32768
#define SALT_SIZE 20

static void make_folder_of(const char *file)
{
    const char *slash = strrchr(file, '/');

    if (slash && slash > file) {
        AUTO_FREE char *folder = mem_strndup(file, (size_t)(slash - file));

        (void)mkdir(folder, 0700); /* when that fails, opening the file says why */
    }
}

static bool ends_with_line_end(int fd)
{
    struct stat status;
    char last = '\n';

    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
        fd_pread(fd, &last, 1, status.st_size - 1) != 1)
        return true;
    return last == '\n';
}

int known_hosts_file_append(const struct known_hosts *known, const char *file, struct byte_view key,
                            bool hash_name, struct error *err)
{
    AUTO_BUF struct buf line = BUF_INIT(LINE_MAX_BYTES);
    unsigned char salt[SALT_SIZE];
    AUTO_FD int fd = -1;
    ssize_t written;

    make_folder_of(file);
    fd = fd_open(file, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd < 0)
        return error_errno(err, errno, "cannot open %s", file);
    if (!ends_with_line_end(fd))
        (void)buf_putc(&line, '\n');
    if (hash_name && RAND_bytes(salt, sizeof salt) != 1)
        return error_set(err, "cannot get random bytes for the hash of a name");
    if (known_hosts_line(known, key, hash_name ? salt : NULL, &line) < 0)
        return error_set(err, "the host key is too large for a line");
    written = fd_write(fd, line.bytes + line.start, line.length);
    if (written < 0)
        return error_errno(err, errno, "cannot write to %s", file);
    if ((size_t)written != line.length)
        return error_set(err, "cannot write to %s: the disk is full", file);
    return 0;
}
