/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/module/screen_module.h"

#define CTRL_C 3 /* in raw mode it is a key */

struct screen {
    SCREEN *terminal;
    int top; /* the first line that is shown, below the title */
};

static struct screen *open_screen(void)
{
    setlocale(LC_CTYPE, ""); /* for names that are not ASCII */
    SCREEN *terminal = newterm(NULL, stdout, stdin);
    if (terminal == NULL)
        return NULL;
    struct screen *screen = mem_alloc(sizeof(*screen));
    *screen = (struct screen){.terminal = terminal};
    set_term(terminal);
    raw();
    noecho();
    keypad(stdscr, TRUE);
    curs_set(0);
    return screen;
}

static int lines_in(const char *text)
{
    int lines = 0;
    for (const char *at = text; *at != '\0' && lines < INT_MAX; lines++)
        at += strcspn(at, "\n") + (at[strcspn(at, "\n")] == '\n');
    return lines;
}

/* The first line always stays in its place: it says which job this is. */
static void draw(struct screen *screen, const char *text, char mark)
{
    int lines = lines_in(text), last = lines > LINES ? lines - LINES : 0;
    screen->top = screen->top > last ? last : screen->top;
    screen->top = screen->top < 0 ? 0 : screen->top;
    erase();
    const char *at = text;
    for (int line = 0; *at != '\0'; line++) {
        size_t length = strcspn(at, "\n");
        int row = line == 0 ? 0 : line - screen->top;
        if ((line == 0 || row > 0) && row < LINES) {
            attrset(at[0] == mark || line == 0 ? A_BOLD : A_NORMAL);
            mvaddnstr(row, 0, at, length < (size_t)COLS ? (int)length : COLS);
        }
        at += length + (at[length] == '\n');
    }
    refresh();
}

/* true: the user leaves. */
static bool take_key(struct screen *screen, int key)
{
    int page = LINES > 2 ? LINES - 2 : 1;
    switch (key) {
    case 'q':
    case 'Q':
    case CTRL_C: return true;
    case KEY_UP: screen->top--; break;
    case KEY_DOWN: screen->top++; break;
    case KEY_PPAGE: screen->top -= page; break;
    case KEY_NPAGE: screen->top += page; break;
    case KEY_HOME: screen->top = 0; break;
    default: break;
    }
    return false;
}

static bool show_text(struct screen *screen, const char *text, char mark, int64_t ms)
{
    int64_t until = clock_mono_ms() + ms;
    draw(screen, text, mark);
    for (int64_t left = ms; left > 0; left = until - clock_mono_ms()) {
        timeout((int)left);
        int key = getch();
        if (key == ERR && clock_mono_ms() < until)
            return true; /* the terminal is gone */
        if (key != ERR && take_key(screen, key))
            return true;
        draw(screen, text, mark);
    }
    return false;
}

static void close_screen(struct screen *screen)
{
    if (screen == NULL)
        return;
    endwin();
    delscreen(screen->terminal);
    free(screen);
}

__attribute__((visibility("default"))) const struct screen_module hvdrun_screen = {
    .version = SCREEN_MODULE_VERSION,
    .open = open_screen,
    .show = show_text,
    .close = close_screen,
};
