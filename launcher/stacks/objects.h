/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers of CPython 3.8 to 3.13 in the memory of another process, as far as asyncio.c needs
 * them. Pure: see memory.h. What cannot be read counts as not there.
 */
#pragma once

#include <stdbool.h>

#include "stacks/python_layout.h"

/* Is the type of that object called so? "coroutine", "set". */
bool object_is(struct memory *memory, const struct python_layout *layout, uint64_t object,
               const char *type);

/* The value in a dict under a short ASCII key; 0: none. The dict of a module, or alike: not one
 * that shares its keys with others. */
uint64_t object_dict_get(struct memory *memory, const struct python_layout *layout, uint64_t dict,
                         const char *key);

/* The dict of a module; 0: it is none. */
uint64_t object_module_dict(struct memory *memory, const struct python_layout *layout,
                            uint64_t module);

/* The set inside of a weakref.WeakSet; 0: it is none. */
uint64_t object_weak_set(struct memory *memory, const struct python_layout *layout,
                         uint64_t object);

/* Calls `each` for what the weak references in a set refer to, at most `max` of them. */
void object_set_walk(struct memory *memory, uint64_t set, size_t max,
                     void (*each)(void *context, uint64_t object), void *context);
