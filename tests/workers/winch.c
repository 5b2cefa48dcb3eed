/* SPDX-License-Identifier: Apache-2.0 */
/*
 * winch: says which of its descriptors 0 to 2 are terminals ("tty 1 1 1") and the window's size
 * ("size ROWS COLUMNS"), the latter again on every SIGWINCH, and "got SIGINT" on SIGINT; ends with
 * code 0 when a line is typed. Without a terminal on descriptor 0 it ends at once.
 */
#include <sys/ioctl.h>

#include "worker.h"

static volatile sig_atomic_t winched, interrupted;

static void on_signal(int number)
{
    if (number == SIGWINCH)
        winched = 1;
    else
        interrupted = 1;
}

static void say_size(void)
{
    struct winsize size;
    if (ioctl(0, TIOCGWINSZ, &size) == 0)
        dprintf(1, "size %d %d\n", size.ws_row, size.ws_col);
}

int main(void)
{
    const struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGWINCH, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    dprintf(1, "tty %d %d %d\n", isatty(0), isatty(1), isatty(2));
    if (!isatty(0))
        return 0;
    say_size();
    for (;;) {
        struct pollfd in = {.fd = 0, .events = POLLIN};
        const int ready = poll(&in, 1, 50);
        if (winched != 0) {
            winched = 0;
            say_size();
        }
        if (interrupted != 0) {
            interrupted = 0;
            dprintf(1, "got SIGINT\n");
        }
        if (ready > 0)
            break;
    }
    char line[256];
    const ssize_t n = read(0, line, sizeof line - 1);
    dprintf(1, "typed %.*s\n", n > 0 ? (int)n - 1 : 0, line);
    return 0;
}
