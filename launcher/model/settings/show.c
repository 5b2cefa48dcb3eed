/* SPDX-License-Identifier: Apache-2.0 */
#include "model/settings/show.h"

#include <string.h>

#define SHOWN_MAX (sizeof(((struct text_shown *)NULL)->text) - 4)

struct text_shown text_show(const char *text, size_t length)
{
    struct text_shown shown = {{0}};
    size_t used = length < SHOWN_MAX ? length : SHOWN_MAX;
    for (size_t i = 0; i < used; i++)
        shown.text[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
    if (length > used)
        memcpy(shown.text + used, "...", 4);
    return shown;
}
