/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that `hvdrun explain` reads: a record, facts.json, report.json and lines.txt, with a
 * byte SECTION between them. Whatever is in them, the story is short and does not steer the
 * terminal, and as JSON it has the same lines.
 */
#include <jansson.h>

#include "features/evidence/evidence.h"
#include "features/evidence/explain_cli_test.h"
#include "fuzz.h"

#define SECTION 0x1e
#define OUT_MAX ((size_t)1 << 20)

static char *next_section(struct fuzz_bytes *bytes)
{
    const uint8_t *end = bytes->left == 0 ? NULL : memchr(bytes->at, SECTION, bytes->left);
    size_t length = end == NULL ? bytes->left : (size_t)(end - bytes->at);
    char *text = fuzz_text(bytes->at, length);
    bytes->at += length + (end != NULL);
    bytes->left -= length + (end != NULL);
    return text;
}

/* NULL: it is no object, which is how the command reads these files. */
static json_t *next_object(struct fuzz_bytes *bytes)
{
    char *text AUTO_FREE = next_section(bytes);
    json_t *value = json_loadb(text, strlen(text), 0, NULL);
    if (json_is_object(value))
        return value;
    json_decref(value);
    return NULL;
}

/* The number of lines. */
static int check_text(const char *text)
{
    int lines = 0;
    for (; *text != '\0'; text++) {
        lines += *text == '\n';
        FUZZ_CHECK((unsigned char)text[0] != 0xc2 || (unsigned char)text[1] >= 0xa0);
        FUZZ_CHECK(*text == '\n' || *text == '\t' ||
                   ((unsigned char)*text >= ' ' && *text != 0x7f));
    }
    return lines;
}

/* The number of lines, with one for the title of each part. */
static int check_json(const char *text)
{
    const char *key;
    json_t *value, *root = json_loads(text, 0, NULL);
    int lines = 1;
    FUZZ_CHECK(json_is_object(root));
    FUZZ_CHECK(json_is_string(json_object_get(root, "headline")));
    json_object_foreach(root, key, value)
    {
        FUZZ_CHECK(key[0] != '\0');
        if (json_array_size(value) > 0)
            lines += 1 + (int)json_array_size(value);
    }
    json_decref(root);
    return lines;
}

FUZZ_TARGET
{
    static const enum job_record_state states[] = {JOB_RECORD_ENDED, JOB_RECORD_LOST};
    struct fuzz_bytes bytes = {data, size};
    json_t *record = next_object(&bytes), *facts = next_object(&bytes),
           *report = next_object(&bytes);
    char *lines AUTO_FREE = next_section(&bytes);
    struct explain_case explained;
    struct buf out AUTO_BUF = BUF_INIT(OUT_MAX);
    explain_json_take(record, states[size % 2], facts, report, lines[0] == '\0' ? NULL : lines,
                      &explained);
    explain_json_show(&explained, false, &out);
    FUZZ_CHECK(out.length > 0 && buf_text(&out)[out.length - 1] == '\n');
    int count = check_text(buf_text(&out));
    FUZZ_CHECK(count <= EXPLAIN_LINES);
    buf_clear(&out);
    explain_json_show(&explained, true, &out);
    FUZZ_CHECK(check_json(buf_text(&out)) == count);
    explain_case_destroy(&explained);
    return 0;
}
