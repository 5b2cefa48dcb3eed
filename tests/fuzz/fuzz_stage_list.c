/* SPDX-License-Identifier: Apache-2.0 */
/* The list of files that an agent gets: what is taken leads nowhere else, and reads back the same.
 */
#include "base/buf.h"
#include "features/stage/stage.h"
#include "fuzz.h"

static void check_file(const struct stage_list *list, const struct stage_file *file)
{
    FUZZ_CHECK(file->name[0] != '\0' && file->name[0] != '/');
    FUZZ_CHECK(strstr(file->name, "/../") == NULL && strncmp(file->name, "../", 3) != 0);
    FUZZ_CHECK(file->at + file->size >= file->at);
    if (stage_file_is_plain(file))
        FUZZ_CHECK(file->at + file->size <= list->stream);
}

FUZZ_TARGET
{
    struct stage_list list;
    struct error err = ERROR_INIT;
    char *copy = mem_resize(NULL, size > 0 ? size : 1); /* and no byte more */
    memcpy(copy, data, size);
    if (stage_list_read(copy, size, &list, &err) < 0) {
        FUZZ_CHECK(err.text[0] != '\0' && list.files == NULL);
        return 0;
    }
    struct buf again AUTO_BUF = BUF_INIT(STAGE_LIST_MAX);
    for (size_t i = 0; i < list.count; i++) {
        check_file(&list, &list.files[i]);
        FUZZ_CHECK(stage_list_put(&again, &list.files[i]) == 0);
    }
    FUZZ_CHECK(again.length == size && memcmp(buf_text(&again), data, size) == 0);
    FUZZ_CHECK(stage_list_find(&list, list.stream) == list.content_count);
    stage_list_destroy(&list);
    return 0;
}
