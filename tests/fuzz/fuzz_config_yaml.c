/* SPDX-License-Identifier: Apache-2.0 */
/* horovodrun's YAML configuration. */
#include "cli/sources.h"
#include "fuzz.h"

FUZZ_TARGET
{
    char *text AUTO_FREE = fuzz_text(data, size);
    struct settings settings;
    struct error err = ERROR_INIT;
    settings_init(&settings);
    fuzz_check_error(config_yaml_read(text, size, "f", &settings, &err), &err);
    settings_destroy(&settings);
    return 0;
}
