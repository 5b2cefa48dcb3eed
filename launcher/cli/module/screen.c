/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <locale.h>
#include <ncurses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/module/screen_module.h"

#define CTRL_C 3 /* in raw mode it is a key */

#define EDGES 3 /* lines that do not scroll: title, titles of the columns, keys */
#define STEP 8  /* columns that Left and Right move */

struct screen {
    SCREEN *terminal;
    int top, left; /* the first line and column of the table that are shown */
    int view;      /* 0 or 1 */
};

struct page {
    const char *title, *order;
    const struct screen_view *views; /* two */
    char mark;
};

static struct screen *open_screen(void)
{
    setlocale(LC_CTYPE, ""); /* for names that are not ASCII */
    SCREEN *terminal = newterm(NULL, stdout, stdin);
    if (terminal == NULL)
        return NULL;
    if (tigetstr("cup") == NULL) { /* such as "dumb": it cannot move the cursor */
        endwin();
        delscreen(terminal);
        return NULL;
    }
    struct screen *screen = MEM_NEW((struct screen){.terminal = terminal});
    set_term(terminal);
    raw();
    noecho();
    keypad(stdscr, TRUE);
    curs_set(0);
    return screen;
}

static const char *after_line(const char *text)
{
    size_t length = strcspn(text, "\n");
    return text + length + (text[length] == '\n');
}

static int lines_in(const char *text)
{
    int count = 0; /* <term.h> has a macro `lines` */
    for (; *text != '\0' && count < INT_MAX; count++)
        text = after_line(text);
    return count;
}

static int columns_in(const char *text)
{
    size_t most = 0;
    for (; *text != '\0'; text = after_line(text))
        most = strcspn(text, "\n") > most ? strcspn(text, "\n") : most;
    return most < INT_MAX ? (int)most : INT_MAX;
}

static void put_line(int row, const char *text, int left)
{
    int length = (int)strcspn(text, "\n");
    if (length > left)
        mvaddnstr(row, 0, text + left, length - left < COLS ? length - left : COLS);
}

static int within(int value, int most)
{
    value = value > most ? most : value;
    return value < 0 ? 0 : value;
}

/* "q quit  arrows scroll  s sort (by rank)  h hosts   1-20 of 200" */
static void put_keys(const struct screen *screen, const struct page *page, int shown, int total)
{
    char text[160];
    const char *other = page->views[1 - screen->view].name;
    int last = screen->top + shown < total ? screen->top + shown : total;
    snprintf(text, sizeof(text), "q quit  arrows scroll  s sort (%s)  %c %s   %d-%d of %d",
             page->order, other[0], other, total == 0 ? 0 : screen->top + 1, last, total);
    attrset(A_REVERSE);
    put_line(LINES - 1, text, 0);
}

static void draw(struct screen *screen, const struct page *page)
{
    const char *table = page->views[screen->view].table, *at = after_line(table);
    int total = lines_in(at), room = LINES > EDGES ? LINES - EDGES : 0;
    screen->top = within(screen->top, total - room);
    screen->left = within(screen->left, columns_in(table) - COLS);
    erase();
    attrset(A_BOLD);
    put_line(0, page->title, 0);
    attrset(A_UNDERLINE);
    if (LINES > 1)
        put_line(1, table, screen->left);
    for (int line = 0; *at != '\0'; line++, at = after_line(at)) {
        int row = line - screen->top;
        attrset(at[0] == page->mark ? A_BOLD : A_NORMAL);
        if (row >= 0 && row < room)
            put_line(row + 2, at, screen->left);
    }
    if (LINES >= EDGES)
        put_keys(screen, page, room, total);
    refresh();
}

static enum screen_key take_key(struct screen *screen, const struct page *page, int key)
{
    int room = LINES > EDGES + 1 ? LINES - EDGES : 1;
    if (key == page->views[1 - screen->view].name[0]) {
        screen->view = 1 - screen->view;
        screen->top = screen->left = 0;
        return SCREEN_NONE;
    }
    switch (key) {
    case 'q':
    case 'Q':
    case CTRL_C: return SCREEN_LEAVES;
    case 's': return SCREEN_SORT;
    case KEY_UP: screen->top--; break;
    case KEY_DOWN: screen->top++; break;
    case KEY_LEFT: screen->left -= STEP; break;
    case KEY_RIGHT: screen->left += STEP; break;
    case KEY_PPAGE: screen->top -= room; break;
    case KEY_NPAGE:
    case ' ': screen->top += room; break;
    case KEY_HOME: screen->top = screen->left = 0; break;
    case KEY_END: screen->top = INT_MAX / 2; break;
    default: break;
    }
    return SCREEN_NONE;
}

static enum screen_key show_views(struct screen *screen, const char *title,
                                  const struct screen_view views[2], const char *order, char mark,
                                  int64_t ms)
{
    int64_t until = clock_mono_ms() + ms;
    const struct page page = {title, order, views, mark};
    enum screen_key result = SCREEN_NONE;
    draw(screen, &page);
    for (int64_t left = ms; left > 0 && result == SCREEN_NONE; left = until - clock_mono_ms()) {
        timeout((int)left);
        int key = getch();
        if (key == ERR && clock_mono_ms() < until)
            return SCREEN_LEAVES; /* the terminal is gone */
        if (key != ERR)
            result = take_key(screen, &page, key);
        draw(screen, &page);
    }
    return result;
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
    .show = show_views,
    .close = close_screen,
};
