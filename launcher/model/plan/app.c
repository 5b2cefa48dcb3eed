/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/app.h"

#include <stdlib.h>

#include "base/mem.h"

struct app *app_list_add(struct app_list *list)
{
    list->items = mem_resize_array(list->items, list->count + 1, sizeof(*list->items));
    struct app *app = &list->items[list->count++];
    *app = (struct app){.wdir = NULL};
    return app;
}

void app_list_destroy(struct app_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        strv_destroy(&list->items[i].argv);
        strv_destroy(&list->items[i].env);
        free(list->items[i].wdir);
    }
    free(list->items);
    *list = (struct app_list){0};
}
