/* SPDX-License-Identifier: Apache-2.0 */
/* The list of the options of other launchers, and its page. */
#include "cli/foreign.h"

#include "base/fd.h"
#include "base/text.h"
#include "cli/spelling.h"
#include "cli/texts.h"
#include "cli_fixture.h"

#define TEXT_LIMIT ((size_t)1 << 20)

static void must_be_a_word(const struct foreign *foreign, const char *word, size_t length)
{
    struct spelling spelling;
    bool ours = spelling_find(word, length, false, &spelling);
    bool must = foreign->kind == FOREIGN_SAME || foreign->kind == FOREIGN_OTHER;
    if (word[0] != '-' || length < 2)
        fail_msg("'%.*s' is not an option", (int)length, word);
    if (ours != must)
        fail_msg("%.*s is%s an option of hvdrun", (int)length, word, ours ? "" : " not");
    if (!ours && foreign_find(word, length) != foreign)
        fail_msg("%.*s is there twice", (int)length, word);
}

/* No spelling is there twice, and none hides an option of hvdrun. */
static void test_words(void **state)
{
    (void)state;
    for (const struct foreign *foreign = foreign_table; foreign->words != NULL; foreign++) {
        for (const char *at = foreign->words; *at != '\0'; at = text_behind(at, ' '))
            must_be_a_word(foreign, at, strcspn(at, " "));
    }
    assert_null(foreign_find("-np", 3));
    assert_null(foreign_find("--no-such", 9));
    assert_non_null(foreign_find("--mca=x", 5));
}

/* Every accepted option gives a value that the option takes. */
static void test_values(void **state)
{
    (void)state;
    static const char *const numbers[2] = {"3", "4"}, *const words[2] = {"a", "b"};
    for (const struct foreign *foreign = foreign_table; foreign->words != NULL; foreign++) {
        struct settings settings;
        struct error err = ERROR_INIT;
        struct buf text AUTO_BUF = BUF_INIT(4096);
        if (foreign->kind != FOREIGN_SETS)
            continue;
        enum option_type type = option_info(foreign->id)->type;
        bool number = type == OPTION_INT || strcmp(foreign->arg, "N") == 0;
        settings_init(&settings);
        if (foreign_value(foreign, number ? numbers : words, &text, &err) < 0 ||
            settings_set(&settings, foreign->id, buf_text(&text), SOURCE_FLAG, "x", &err) < 0)
            fail_msg("%s: %s", foreign->words, err.text);
        settings_destroy(&settings);
    }
}

/* The part of docs/coming-from.md that the list makes. */
static void test_page_is_current(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT), file AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    struct error err = ERROR_INIT;
    const char *source = getenv("HVDRUN_SOURCE");
    assert_non_null(source);
    char *path AUTO_FREE = mem_printf("%s/docs/coming-from.md", source);
    if (fd_read_file(path, &file, &err) < 0)
        fail_msg("%s", err.text);
    docgen_coming_from(&text);
    assert_int_equal(strncmp(buf_text(&file), "# Coming from ", 14), 0);
    const char *made = strstr(buf_text(&file), "<!-- Generated ");
    assert_non_null(made);
    if (strcmp(made, buf_text(&text)) != 0)
        fail_msg("docs/coming-from.md is not what foreign.def says: build the target "
                 "coming_from_tables");
    assert_non_null(strstr(made, "| `-ppn, -perhost N` | `--map-by ppr:N:node` |"));
    assert_non_null(strstr(made, "| `--mca, --gmca NAME VALUE` | `-x OMPI_MCA_NAME=VALUE`. "));
    assert_non_null(strstr(made, "; accepted: `1`, `1:1` |"));
    assert_non_null(strstr(made, "`--mpi-args ARGS`"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_page_is_current),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
