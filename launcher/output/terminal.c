/* SPDX-License-Identifier: Apache-2.0 */
#include "output/terminal.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/mem.h"

struct terminal {
    struct termios cooked, raw;
};

void terminal_size(uint32_t *rows, uint32_t *columns)
{
    struct winsize size = {.ws_row = 0};
    for (int fd = 0; fd <= 2; fd++) {
        if (ioctl(fd, TIOCGWINSZ, &size) == 0)
            break;
    }
    *rows = size.ws_row;
    *columns = size.ws_col;
}

struct terminal *terminal_raw(void)
{
    struct termios cooked;
    if (tcgetattr(STDIN_FILENO, &cooked) < 0)
        return NULL;
    struct terminal *terminal = mem_alloc(sizeof(*terminal));
    *terminal = (struct terminal){cooked, cooked};
    cfmakeraw(&terminal->raw);
    terminal_raw_again(terminal);
    return terminal;
}

/* In the background the modes belong to another program, which would lose them. */
static void set_modes(const struct termios *modes)
{
    if (terminal_may_read())
        tcsetattr(STDIN_FILENO, TCSADRAIN, modes);
}

void terminal_restore(struct terminal *terminal)
{
    if (terminal != NULL)
        set_modes(&terminal->cooked);
}

void terminal_raw_again(struct terminal *terminal)
{
    if (terminal != NULL)
        set_modes(&terminal->raw);
}

void terminal_destroy(struct terminal *terminal)
{
    terminal_restore(terminal);
    free(terminal);
}

bool terminal_may_read(void)
{
    pid_t front = tcgetpgrp(STDIN_FILENO);
    return front < 0 || front == getpgrp();
}
