/* SPDX-License-Identifier: Apache-2.0 */
/* The maps of a process, up to the first NUL, and what is in its memory: the bytes behind it. */
#include "features/libraries/libraries.h"
#include "fuzz.h"

struct memory {
    const uint8_t *bytes;
    size_t length;
};

/* The same bytes are at each address that is a multiple of 64 KiB. */
static size_t read_memory(void *context, uint64_t address, void *out, size_t length)
{
    const struct memory *memory = context;
    uint64_t at = address & 0xffff;
    if (at >= memory->length)
        return 0;
    length = length < memory->length - at ? length : memory->length - (size_t)at;
    memcpy(out, memory->bytes + at, length);
    return length;
}

FUZZ_TARGET
{
    char *text AUTO_FREE = fuzz_text(data, size);
    size_t length = strlen(text);
    struct memory image = {data + (length < size ? length + 1 : size),
                           length < size ? size - length - 1 : 0};
    const struct elf_source memory = {.read = read_memory, .context = &image};
    struct loaded_library found[LOADED_MAX];
    size_t count = loaded_read(text, found);
    FUZZ_CHECK(count <= LOADED_MAX);
    for (size_t i = 0; i < count; i++) {
        uint64_t address = 0;
        uint32_t machine = 0;
        FUZZ_CHECK(found[i].kind < LIBRARY_KINDS && found[i].mapping_count <= LOADED_MAPPINGS);
        FUZZ_CHECK(strstr(text, found[i].path) != NULL);
        (void)loaded_at(&found[i], size, &address);
        char *id AUTO_FREE = loaded_identity(&found[i], &memory, &machine);
        FUZZ_CHECK(strlen(id) <= 2 * 64);
        free(found[i].path);
    }
    return 0;
}
