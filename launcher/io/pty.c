/* SPDX-License-Identifier: Apache-2.0 */
#include "io/pty.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/fd.h"

#define FLAGS (O_RDWR | O_NOCTTY | O_CLOEXEC)

int pty_open(int ends[2], int rows, int columns)
{
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    ends[0] = posix_openpt(FLAGS);
    ends[1] = -1;
    if (ends[0] >= 0 && grantpt(ends[0]) == 0 && unlockpt(ends[0]) == 0)
        ends[1] = ioctl(ends[0], TIOCGPTPEER, FLAGS);
    if (ends[1] >= 0 && (rows <= 0 || ioctl(ends[1], TIOCSWINSZ, &size) == 0))
        return 0;
    fd_close(&ends[1]);
    fd_close(&ends[0]);
    return -1;
}
