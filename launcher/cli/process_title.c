/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process_title.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"

/* Extends the area over the strings that follow it without a gap. */
static void extend(struct process_title *title, char *const *strings)
{
    for (; *strings != NULL && *strings == title->area + title->room; strings++)
        title->room += strlen(*strings) + 1;
}

struct process_title process_title_of(char *const *argv, char *const *envp)
{
    struct process_title title = {.area = argv[0]};
    if (argv[0] == NULL)
        return title;
    extend(&title, argv);
    extend(&title, envp);
    return title;
}

static char **move_environment(void)
{
    size_t count = 0;
    while (environ != NULL && environ[count] != NULL)
        count++;
    char **copy = mem_array(count + 1, sizeof(*copy));
    for (size_t i = 0; i < count; i++)
        copy[i] = mem_strdup(environ[i]);
    return environ = copy;
}

/* The kernel shows all bytes of argv, and ps drops the NULs at their end. But if the last byte is
 * not NUL, the kernel goes on to the first NUL, so a longer text may use the room of the
 * environment. */
void process_title_set(struct process_title *title, const char *text)
{
    size_t length = strlen(text);
    if (title->room == 0)
        return;
    title->environment = move_environment();
    if (length > title->room - 1)
        length = title->room - 1;
    memset(title->area, 0, title->room);
    memcpy(title->area, text, length);
}
