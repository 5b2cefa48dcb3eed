/* SPDX-License-Identifier: Apache-2.0 */
#include "io/pty.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"

#define FLAGS (O_NOCTTY | O_CLOEXEC)
#define LIMITS "/proc/sys/kernel/pty/"

static int open_both(int ends[2], int slave_flags, int rows, int columns)
{
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    ends[0] = posix_openpt(O_RDWR | FLAGS);
    ends[1] = -1;
    if (ends[0] >= 0 && grantpt(ends[0]) == 0 && unlockpt(ends[0]) == 0)
        ends[1] = ioctl(ends[0], TIOCGPTPEER, slave_flags | FLAGS);
    if (ends[1] >= 0 && (rows <= 0 || ioctl(ends[1], TIOCSWINSZ, &size) == 0))
        return 0;
    fd_close(&ends[1]);
    fd_close(&ends[0]);
    return -1;
}

int pty_open(int ends[2], int rows, int columns)
{
    return open_both(ends, O_RDWR, rows, columns);
}

int pty_open_output(int ends[2], int rows, int columns)
{
    struct termios modes = {.c_iflag = 0};
    if (open_both(ends, O_WRONLY, rows, columns) < 0)
        return -1;
    int result = tcgetattr(ends[1], &modes);
    cfmakeraw(&modes);
    (void)fchmod(ends[1], S_IWUSR); /* not if /dev/pts is mounted with uid= */
    if (result == 0 && tcsetattr(ends[1], TCSANOW, &modes) == 0)
        return 0;
    fd_close(&ends[1]);
    fd_close(&ends[0]);
    return -1;
}

static int64_t read_limit(const char *path)
{
    struct buf text AUTO_BUF = BUF_INIT(64);
    int64_t value = -1;
    if (fd_read_file(path, &text, NULL) < 0)
        return -1;
    char *number AUTO_FREE = mem_strndup(buf_text(&text), strcspn(buf_text(&text), "\n"));
    return parse_int(number, 0, INT32_MAX, &value, NULL) < 0 ? -1 : value;
}

int64_t pty_left(void)
{
    int64_t most = read_limit(LIMITS "max"), used = read_limit(LIMITS "nr");
    if (most < 0 || used < 0)
        return -1;
    return most > used ? most - used : 0;
}
