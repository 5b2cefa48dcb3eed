/* SPDX-License-Identifier: Apache-2.0 */
#include "model/env/list.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define LIST_MAX 131000 /* the kernel's limit for one string (MAX_ARG_STRLEN), less the name */

char *env_list_numbers(const int *numbers, int count)
{
    struct buf list AUTO_BUF = BUF_INIT(LIST_MAX);
    int failed = 0;
    for (int i = 0; i < count; i++)
        failed |= buf_printf(&list, "%s%d", i > 0 ? " " : "", numbers[i]);
    return failed != 0 ? NULL : buf_take(&list);
}

char *env_list_sums(const int *numbers, int count)
{
    struct buf list AUTO_BUF = BUF_INIT(LIST_MAX);
    long long sum = 0;
    int failed = 0;
    for (int i = 0; i < count; i++) {
        failed |= buf_printf(&list, "%s%lld", i > 0 ? " " : "", sum);
        sum += numbers[i];
    }
    return failed != 0 ? NULL : buf_take(&list);
}

char *env_list_commas(const int *numbers, int count)
{
    if (numbers == NULL)
        return NULL;
    struct buf list AUTO_BUF = BUF_INIT(LIST_MAX);
    int failed = 0;
    for (int i = 0; i < count; i++)
        failed |= buf_printf(&list, "%s%d", i > 0 ? "," : "", numbers[i]);
    return failed != 0 ? NULL : buf_take(&list);
}

char *env_list_sizes(const int *sizes, int count)
{
    if (sizes == NULL)
        return NULL;
    struct buf list AUTO_BUF = BUF_INIT(LIST_MAX);
    int failed = 0;
    for (int i = 0, run = 0; i < count; i += run) {
        run = 1;
        while (i + run < count && sizes[i + run] == sizes[i])
            run++;
        failed |=
            buf_printf(&list, run > 1 ? "%s%d(x%d)" : "%s%d", i > 0 ? "," : "", sizes[i], run);
    }
    return failed != 0 ? NULL : buf_take(&list);
}

static bool list_has(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (list += strspn(list, ", "); *list != '\0'; list += strspn(list, ", ")) {
        size_t item = strcspn(list, ", ");
        if ((item == length && memcmp(list, word, length) == 0) || (item == 1 && *list == '*'))
            return true;
        list += item;
    }
    return false;
}

char *env_list_path(const char *name, const char *value, const char *folder)
{
    size_t length = value == NULL ? 0 : strlen(value), own = strlen(folder);
    bool ends = length >= own && strcmp(value + length - own, folder) == 0 &&
                (length == own || value[length - own - 1] == ':');
    if (length == 0 || ends)
        return mem_printf("%s=%s", name, length == 0 ? folder : value);
    return mem_printf("%s=%s:%s", name, value, folder);
}

char *env_list_with(const char *name, const char *value, const char *const *words)
{
    char *list = mem_strdup(value != NULL ? value : "");
    for (; *words != NULL; words++) {
        if (list_has(list, *words))
            continue;
        char *longer = mem_printf("%s%s%s", list, *list != '\0' ? "," : "", *words);
        free(list);
        list = longer;
    }
    char *pair = *list != '\0' || value != NULL ? mem_printf("%s=%s", name, list) : NULL;
    free(list);
    return pair;
}
