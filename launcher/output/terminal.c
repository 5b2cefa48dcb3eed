/* SPDX-License-Identifier: Apache-2.0 */
#include "output/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/mem.h"
#include "output/sink.h"
#include "output/surface.h"
#include "output/types.h"

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
    struct terminal *terminal = MEM_NEW((struct terminal){cooked, cooked});
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

/* A terminal on which a line can be rewritten. */
static bool is_live(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) == 1 && (term == NULL || strcmp(term, "dumb") != 0);
}

static bool wants_color(enum output_color color, int fd)
{
    const char *no = getenv("NO_COLOR");
    if (color == OUTPUT_COLOR_AUTO)
        return is_live(fd) && (no == NULL || *no == '\0');
    return color == OUTPUT_COLOR_ALWAYS;
}

static bool same_place(int one, int other)
{
    struct stat a, b;
    if (fstat(one, &a) != 0 || fstat(other, &b) != 0)
        return false;
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static void append(void *context, int stream, const void *bytes, size_t length)
{
    struct console *console = context;
    sink_append(console->sink, console->target[stream], bytes, length);
}

static void append_lines(void *context, int stream, struct stamp *lines)
{
    struct console *console = context;
    struct output_target *target = console->target[stream];
    while (lines->length > 0) {
        size_t room;
        char *place = sink_place(console->sink, target, &room);
        size_t put = stamp_lines(lines, place, room);
        sink_placed(console->sink, put);
        if (put > 0)
            continue;
        /* it goes over the end of the block */
        const char *newline = memchr(lines->text, '\n', lines->length);
        size_t line = newline != NULL ? (size_t)(newline + 1 - lines->text) : lines->length;
        sink_append(console->sink, target, lines->label, lines->label_length);
        sink_append(console->sink, target, lines->text, line);
        lines->text += line;
        lines->length -= line;
    }
}

static int columns(void *context)
{
    struct console *console = context;
    for (int i = 0; i < 2; i++) {
        struct winsize size;
        if (ioctl(console->fd[i], TIOCGWINSZ, &size) == 0)
            return size.ws_col;
    }
    return 0;
}

static struct surface *make_surface(struct console *console, const struct output_config *config,
                                    int stream)
{
    bool live = is_live(console->fd[stream]);
    bool labelled = !config->no_label || config->timestamp;
    struct surface_config surface = {
        .live = live,
        .crlf = config->raw_seat >= 0 && isatty(console->fd[stream]) == 1,
        .bytes = !labelled && !live,
        .append = append,
        .append_lines = append_lines,
        .columns = columns,
        .context = console,
    };
    return surface_create(&surface);
}

struct console *console_create(struct sink *sink, const struct output_config *config)
{
    struct console *console = mem_alloc(sizeof(*console));
    console->sink = sink;
    console->fd[OUTPUT_STDOUT] = config->out_fd > 0 ? config->out_fd : STDOUT_FILENO;
    console->fd[OUTPUT_STDERR] = config->err_fd > 0 ? config->err_fd : STDERR_FILENO;
    static const char *const names[] = {"standard output", "standard error"};
    for (int i = 0; i < 2; i++) {
        console->target[i] = sink_keep(sink, target_descriptor(console->fd[i], names[i]));
        console->color[i] = wants_color(config->color, console->fd[i]);
    }
    console->surface[0] = make_surface(console, config, OUTPUT_STDOUT);
    console->surface[1] = same_place(console->fd[0], console->fd[1])
                              ? console->surface[0]
                              : make_surface(console, config, OUTPUT_STDERR);
    return console;
}

void console_destroy(struct console *console)
{
    if (console == NULL)
        return;
    if (console->surface[1] != console->surface[0])
        surface_destroy(console->surface[1]);
    surface_destroy(console->surface[0]);
    free(console);
}
