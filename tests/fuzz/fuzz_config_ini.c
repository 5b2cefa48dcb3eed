/* SPDX-License-Identifier: Apache-2.0 */
/* The INI configuration. */
#include "cli/cli_test.h"
#include "fuzz.h"

FUZZ_TARGET
{
    char *text AUTO_FREE = fuzz_text(data, size);
    struct settings settings;
    struct error err = ERROR_INIT;
    settings_init(&settings);
    fuzz_check_error(config_ini_read(text, "f", SOURCE_FILE, &settings, &err), &err);
    settings_destroy(&settings);
    return 0;
}
