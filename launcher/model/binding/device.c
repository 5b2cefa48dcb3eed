/* SPDX-License-Identifier: Apache-2.0 */
#include "model/binding/device.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void device_copy(struct device *to, const struct device *from)
{
    *to = *from;
    to->name = mem_strdup(from->name);
    to->pci = mem_strdup(from->pci);
    to->path = mem_strdup(from->path);
    to->cpus.words = from->cpus.bytes > 0 ? mem_dup(from->cpus.words, from->cpus.bytes) : NULL;
}

void device_list_add(struct device_list *list, const struct device *device)
{
    list->items = mem_resize_array(list->items, list->count + 1, sizeof(*list->items));
    list->items[list->count++] = *device;
}

static int compare_texts(const char *one, const char *other)
{
    return strcmp(one == NULL ? "" : one, other == NULL ? "" : other);
}

static int compare(const void *a, const void *b)
{
    const struct device *x = a, *y = b;
    if (x->kind == DEVICE_AMD && y->kind == DEVICE_AMD)
        return x->number - y->number;
    int order = compare_texts(x->pci, y->pci);
    order = order != 0 ? order : compare_texts(x->name, y->name);
    return order != 0 ? order : x->number - y->number;
}

void device_list_sort(struct device_list *list)
{
    if (list->count > 0)
        qsort(list->items, list->count, sizeof(*list->items), compare);
}

void device_list_destroy(struct device_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
        free(list->items[i].pci);
        free(list->items[i].path);
        cpu_mask_clear(&list->items[i].cpus);
    }
    free(list->items);
    *list = (struct device_list){0};
}

static int count_parts(const char *path)
{
    int parts = *path != '\0';
    for (; *path != '\0'; path++)
        parts += *path == '/';
    return parts;
}

int device_distance(const struct device *one, const struct device *other)
{
    if (one->path == NULL || other->path == NULL)
        return -1;
    const char *left = one->path, *right = other->path;
    int common = 0;
    for (;;) {
        size_t length = strcspn(left, "/");
        if (length == 0 || length != strcspn(right, "/") || strncmp(left, right, length) != 0)
            break;
        common++;
        left += length + (left[length] == '/');
        right += length + (right[length] == '/');
    }
    return common == 0 ? -1 : count_parts(left) + count_parts(right);
}
