/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options: lines of "option-name=value" in any order, as the four sources give them. What
 * settings_format() writes is a value again, and the same one. */
#include "base/buf.h"
#include "fuzz.h"
#include "model/exit/signal_rules.h"
#include "model/settings/settings.h"

#define VALUE_MAX ((size_t)1 << 20)

static enum option_id find(const char *name, size_t length)
{
    char out[OPTION_NAME_MAX];
    for (int id = 0; id < OPT_TOTAL; id++) {
        option_name((enum option_id)id, out);
        if (strlen(out) == length && memcmp(out, name, length) == 0)
            return (enum option_id)id;
    }
    return OPT_TOTAL;
}

/* Lists grow, so that only what holds one value is compared. */
static void check_format(const struct settings *settings, enum option_id id)
{
    AUTO_BUF struct buf text = BUF_INIT(VALUE_MAX), again = BUF_INIT(VALUE_MAX);
    struct settings other;
    struct error err = ERROR_INIT;
    if (option_info(id)->type == OPTION_LIST || settings_format(settings, id, &text) < 0)
        return;
    settings_init(&other);
    FUZZ_CHECK(settings_set(&other, id, buf_text(&text), SOURCE_FLAG, "x", &err) == 0);
    FUZZ_CHECK(settings_format(&other, id, &again) == 0);
    FUZZ_CHECK(strcmp(buf_text(&text), buf_text(&again)) == 0);
    settings_destroy(&other);
}

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    struct settings settings;
    struct signal_rules rules;
    settings_init(&settings);
    for (int lines = 0; bytes.left > 0 && lines < 32; lines++) {
        char *line AUTO_FREE = fuzz_line(&bytes);
        size_t length = strcspn(line, "=");
        enum option_id id = find(line, length);
        struct error err = ERROR_INIT;
        if (id == OPT_TOTAL)
            continue;
        const char *value = line[length] == '=' ? line + length + 1 : "";
        int result = settings_set(&settings, id, value,
                                  (enum setting_source)(SOURCE_USER_FILE + lines % 4), "x", &err);
        fuzz_check_error(result, &err);
        if (result == 0)
            check_format(&settings, id);
    }
    struct error err = ERROR_INIT;
    fuzz_check_error(signal_rules_from(&settings, size % 2 == 0, &rules, &err), &err);
    settings_is_elastic(&settings);
    settings_destroy(&settings);
    return 0;
}
