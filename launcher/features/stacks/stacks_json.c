/* SPDX-License-Identifier: Apache-2.0 */
#include "features/stacks/stacks_json.h"

#include <jansson.h>

#define LEAVES_MAX 500

static json_t *text(const char *value)
{
    json_t *json = json_string(value);
    return json != NULL ? json : json_string("(not UTF-8)");
}

static json_t *numbers(const int *values, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_integer(values[i]));
    return list;
}

static json_t *frames_json(const struct stack_leaf *leaf)
{
    json_t *list = json_array();
    for (size_t i = 0; i < leaf->count; i++) {
        const struct stack_frame *frame = &leaf->frames[i];
        json_t *object = json_object();
        json_object_set_new(object, "function", text(frame->function));
        json_object_set_new(object, "file",
                            frame->file[0] != '\0' ? text(frame->file) : json_null());
        json_object_set_new(object, "line",
                            frame->line > 0 ? json_integer(frame->line) : json_null());
        if (frame->native)
            json_object_set_new(object, "native", json_true());
        json_array_append_new(list, object);
    }
    return list;
}

static void add_leaf(void *context, const struct stack_leaf *leaf)
{
    static const char *const words[] = {
#define ROLE_WORD(name, word, heading) word,
        STACK_ROLE_LIST(ROLE_WORD)
#undef ROLE_WORD
    };
    json_t *list = context, *object = json_object();
    if (json_array_size(list) >= LEAVES_MAX) {
        json_decref(object);
        return;
    }
    json_object_set_new(object, "ranks", numbers(leaf->ranks, leaf->rank_count));
    json_object_set_new(object, "thread", json_string(words[leaf->role]));
    json_object_set_new(object, "count", json_integer((json_int_t)leaf->stacks));
    json_object_set_new(object, "doing", leaf->doing[0] != '\0' ? text(leaf->doing) : json_null());
    json_object_set_new(object, "names", leaf->names[0] != '\0' ? text(leaf->names) : json_null());
    json_object_set_new(object, "gil_ranks", numbers(leaf->gil_ranks, leaf->gil_count));
    json_object_set_new(object, "frames", frames_json(leaf));
    json_object_set_new(object, "trouble",
                        leaf->trouble[0] != '\0' ? text(leaf->trouble) : json_null());
    json_array_append_new(list, object);
}

struct json_t *stacks_json(struct stack_tree *tree)
{
    json_t *list = json_array();
    stack_tree_visit(tree, add_leaf, list);
    return list;
}
