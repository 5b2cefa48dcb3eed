/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker says about its progress: in its file, and in a request to the status endpoint. */
#include "agent/progress.h"
#include "fuzz.h"
#include "model/progress/progress.h"

static void check(const struct progress *progress)
{
    const char *text = progress->text != NULL ? progress->text : "";
    FUZZ_CHECK(progress->percent <= 100 && progress->eta_s <= PROGRESS_ETA_MAX_S);
    FUZZ_CHECK(strlen(text) <= PROGRESS_TEXT_MAX);
    FUZZ_CHECK(progress->metric_count <= PROGRESS_METRICS_MAX);
    for (; *text != '\0'; text++)
        FUZZ_CHECK((uint8_t)*text >= ' ' && *text != 0x7f);
    for (size_t i = 0; i < progress->metric_count; i++) {
        char *end = NULL;
        FUZZ_CHECK(progress->metrics[i].name[0] != '\0');
        (void)strtod(progress->metrics[i].value, &end);
        FUZZ_CHECK(end != progress->metrics[i].value && *end == '\0');
    }
}

static void read_one(int (*parse)(const void *, size_t, struct progress *, struct error *),
                     const char *bytes, size_t size)
{
    struct progress progress AUTO_PROGRESS = PROGRESS_INIT;
    struct error err = ERROR_INIT;
    int result = parse(bytes, size, &progress, &err);
    fuzz_check_error(result, &err);
    if (result == 0)
        check(&progress);
}

static int whole(const void *bytes, size_t size, struct progress *out, struct error *err)
{
    int result = progress_parse(bytes, size, true, out, err);
    FUZZ_CHECK(result < 0 || out->percent >= 0);
    return result;
}

static int part(const void *bytes, size_t size, struct progress *out, struct error *err)
{
    return progress_parse(bytes, size, false, out, err);
}

FUZZ_TARGET
{
    char *bytes AUTO_FREE = mem_alloc(size == 0 ? 1 : size); /* no NUL behind it */
    if (size > 0)
        memcpy(bytes, data, size);
    read_one(whole, bytes, size);
    read_one(part, bytes, size);
    read_one(progress_json_parse, bytes, size);
    return 0;
}
