/* SPDX-License-Identifier: Apache-2.0 */
/* Files with a private key. */
#include "fuzz.h"
#include "transport/ssh_module/fields.h"
#include "transport/ssh_module/key.h"

FUZZ_TARGET
{
    char *text AUTO_FREE = fuzz_text(data, size);
    unsigned char *out AUTO_FREE = mem_alloc(size / 4 * 3 + 3);
    ssize_t made = base64_decode(text, size, out);
    FUZZ_CHECK(made < (ssize_t)(size / 4 * 3 + 4));
    struct key_file file = {.kind = KEY_FILE_BAD};
    key_file_parse(&file, "f", text, size);
    FUZZ_CHECK(file.kind != KEY_FILE_USABLE || file.key != NULL);
    key_file_destroy(&file);
    return 0;
}
