/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/features.h"

#include <string.h>

#include "base/status.h"

#define FEATURE(name) extern const char name##_feature[] __attribute__((weak));
#include "cli/features.def"

enum feature_id {
#define FEATURE(name) FEATURE_##name,
#include "cli/features.def"
    FEATURE_TOTAL
};

static const struct {
    const char *name, *what; /* NULL: it was left out */
} features[FEATURE_TOTAL] = {
#define FEATURE(name) [FEATURE_##name] = {#name, name##_feature},
#include "cli/features.def"
};

static const struct {
    enum feature_id feature;
    const char *word;
} commands[] = {
#define FEATURE(name)
#define FEATURE_COMMAND(name, word) {FEATURE_##name, word},
#include "cli/features.def"
    {FEATURE_TOTAL, NULL}};

static const struct {
    enum feature_id feature;
    enum option_id option;
} options[] = {
#define FEATURE(name)
#define FEATURE_OPTION(name, option) {FEATURE_##name, OPT_##option},
#include "cli/features.def"
    {FEATURE_TOTAL, OPT_TOTAL}};

static int left_out(enum feature_id feature, const char *who, struct error *err)
{
    return error_status(err, STATUS_USAGE,
                        "%s: this hvdrun was built without '%s' (HVDRUN_FEATURES of CMake)", who,
                        features[feature].name);
}

int features_allow_command(const char *word, struct error *err)
{
    for (size_t i = 0; commands[i].word != NULL; i++) {
        if (features[commands[i].feature].what == NULL && strcmp(commands[i].word, word) == 0)
            return left_out(commands[i].feature, word, err);
    }
    return 0;
}

int features_allow_options(const struct settings *settings, struct error *err)
{
    for (size_t i = 0; options[i].option != OPT_TOTAL; i++) {
        if (features[options[i].feature].what == NULL &&
            settings_source(settings, options[i].option) != SOURCE_DEFAULT)
            return left_out(options[i].feature, settings_place(settings, options[i].option), err);
    }
    return 0;
}

void features_text(struct buf *out)
{
    for (int i = 0; i < FEATURE_TOTAL; i++) {
        bool built = features[i].what != NULL;
        buf_printf(out, "    [%c] %s%s%s\n", built ? 'X' : ' ', features[i].name, built ? ": " : "",
                   built ? features[i].what : "");
    }
}
