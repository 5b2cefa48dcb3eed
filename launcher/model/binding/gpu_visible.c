/* SPDX-License-Identifier: Apache-2.0 */
#include "model/binding/gpu_visible.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define VALUE_MAX ((size_t)64 << 10)
#define WORDS_MAX 1024 /* no host has more GPUs; an environment may hold any number of words */

const char *gpu_visible_name(enum device_kind kind)
{
    return kind == DEVICE_AMD ? "ROCR_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
}

static void add(struct gpu_visible *visible, const struct device *device, const char *word)
{
    struct device copy = {.numa = -1};
    if (device != NULL)
        device_copy(&copy, device);
    device_list_add(&visible->devices, &copy);
    strv_add(&visible->words, word);
}

static bool is_number(const char *word)
{
    return word[0] != '\0' && word[strspn(word, "0123456789")] == '\0' && strlen(word) < 6;
}

/* The GPU that a word names; NULL: none. */
static const struct device *find(const struct device_list *gpus, const char *word)
{
    if (is_number(word)) {
        size_t number = (size_t)strtoul(word, NULL, 10);
        return number < gpus->count ? &gpus->items[number] : NULL;
    }
    for (size_t i = 0; i < gpus->count; i++) {
        const char *name = gpus->items[i].name;
        if (name != NULL && strncmp(name, "GPU-", 4) == 0 && strlen(word) > 4 &&
            strncmp(name, word, strlen(word)) == 0)
            return &gpus->items[i];
    }
    return NULL;
}

/* false: the list ends before this word. */
static bool add_word(struct gpu_visible *visible, const struct device_list *gpus, const char *word)
{
    const struct device *device = find(gpus, word);
    bool is_id = strncmp(word, "MIG-", 4) == 0 || strncmp(word, "GPU-", 4) == 0;
    /* an id that we have not found may be one that we cannot read */
    bool believed = strncmp(word, "MIG-", 4) == 0;
    for (size_t i = 0; is_id && i < gpus->count; i++)
        believed = believed || gpus->items[i].name == NULL;
    if (gpus->count == 0)
        believed = is_id || is_number(word);
    if (device == NULL && !believed)
        return false;
    add(visible, device, word);
    return true;
}

void gpu_visible_fill(struct gpu_visible *visible, const struct device_list *gpus,
                      const char *value)
{
    *visible = (struct gpu_visible){.devices = {0}};
    for (size_t i = 0; value == NULL && i < gpus->count; i++) {
        char *number AUTO_FREE = mem_printf("%zu", i);
        add(visible, &gpus->items[i], number);
    }
    while (value != NULL && visible->words.count < WORDS_MAX) {
        value += strspn(value, " ");
        size_t length = strcspn(value, ",");
        const char *next = value[length] == ',' ? value + length + 1 : NULL;
        while (length > 0 && isspace((unsigned char)value[length - 1]))
            length--;
        char *word AUTO_FREE = mem_strndup(value, length);
        if (!add_word(visible, gpus, word))
            break;
        value = next;
    }
}

void gpu_visible_clear(struct gpu_visible *visible)
{
    strv_destroy(&visible->words);
    device_list_destroy(&visible->devices);
}

char *gpu_visible_part(const struct gpu_visible *visible, size_t slot, size_t each)
{
    if (each == 0 || slot >= visible->words.count / each)
        return NULL;
    struct buf text = BUF_INIT(VALUE_MAX);
    for (size_t i = slot * each; i < (slot + 1) * each; i++)
        buf_printf(&text, "%s%s", i > slot * each ? "," : "", visible->words.items[i]);
    return buf_take(&text);
}
