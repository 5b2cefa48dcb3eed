/* SPDX-License-Identifier: Apache-2.0 */
/* Help, man page, completions and table: all options in each, and in the shape that readers need.
 */
#include "cli_fixture.h"

#include "base/fd.h"
#include "cli/cli_test.h"
#include "cli/control_words.h"
#include "cli/spelling.h"
#include "cli/texts.h"

#define TEXT_LIMIT ((size_t)1 << 20)

/* Fails when a line is longer than `columns` (0: any length), is blank at its end or is not ASCII.
 */
static void check_lines(const char *text, size_t columns)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        if (columns > 0 && length > columns)
            fail_msg("%zu columns: %.*s", length, (int)length, text);
        if (length > 0 && text[length - 1] == ' ')
            fail_msg("blank at the end: '%.*s'", (int)length, text);
        for (size_t i = 0; i < length; i++) {
            if ((unsigned char)text[i] < ' ' || (unsigned char)text[i] > '~')
                fail_msg("not plain text: %.*s", (int)length, text);
        }
        text += length + (text[length] == '\n');
    }
}

static void test_help(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    help_text(&text);
    check_lines(buf_text(&text), 80);
    for (int i = 0; i < OPT_TOTAL; i++) {
        char name[OPTION_NAME_MAX];
        option_name((enum option_id)i, name);
        char *plain = mem_printf("--%s", name), *both = mem_printf("--[no-]%s", name);
        if (strstr(buf_text(&text), plain) == NULL && strstr(buf_text(&text), both) == NULL)
            fail_msg("--help has no --%s", name);
        free(plain), free(both);
    }
    assert_non_null(strstr(buf_text(&text), "  -np, -n, --np, --num-proc N\n"));
    assert_non_null(strstr(buf_text(&text), "  --color, --colour[=WHEN]"));
    assert_non_null(strstr(buf_text(&text), "  --mpi=KIND "));
    assert_non_null(strstr(buf_text(&text), "(default 30 s)"));
}

/* The short help is one screen, and names only what the long one has. */
static void test_short_help(void **state)
{
    (void)state;
    struct buf few AUTO_BUF = BUF_INIT(TEXT_LIMIT), all AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    help_short(&few);
    help_text(&all);
    check_lines(buf_text(&few), 80);
    size_t lines = 0;
    for (const char *at = buf_text(&few); (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    assert_in_range(lines, 30, 47);
    for (const char *at = buf_text(&few); (at = strstr(at, " --")) != NULL; at++) {
        char *word = mem_printf("%.*s", (int)strcspn(at + 1, " ,'[\n"), at + 1);
        if (strstr(buf_text(&all), word) == NULL)
            fail_msg("hvdrun has no %s", word);
        free(word);
    }
    for (int i = 0; i < CONTROL_COMMANDS; i++) {
        if (strstr(buf_text(&few), control_forms[i].word) == NULL)
            fail_msg("the short help has no %s", control_forms[i].word);
    }
    assert_non_null(strstr(buf_text(&few), "'hvdrun --help all'"));
}

/* Makes the document from its template. */
static void fill(const char *name, struct buf *out)
{
    struct buf template AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    const char *source = getenv("HVDRUN_SOURCE");
    assert_non_null(source);
    char *path AUTO_FREE = mem_printf("%s/launcher/cli/documents/%s.in", source, name);
    assert_int_equal(fd_read_file(path, &template, NULL), 0);
    struct error err = ERROR_INIT;
    if (docgen_fill(buf_text(&template), out, &err) < 0)
        fail_msg("%s: %s", path, err.text);
}

static void test_templates(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    assert_int_equal(
        docgen_fill("# licence\n{{version}}, {{tools|}}\n{{man-check}}\n.PP\n", &text, NULL), 0);
    assert_int_equal(strncmp(buf_text(&text), HVDRUN_VERSION ", kubernetes\n.TP\n", 18), 0);
    assert_non_null(strstr(buf_text(&text), " JSON.\n.PP\n"));
    buf_clear(&text);
    assert_int_equal(docgen_fill("", &text, NULL), 0);
    assert_int_equal(docgen_fill("# licence", &text, NULL), 0);
    assert_int_equal(text.length, 0);
}

static void test_wrong_templates(void **state)
{
    (void)state;
    static const struct {
        const char *template, *error;
    } wrong[] = {
        {"#\n{{no-such-mark}}\n", "line 2: {{no-such-mark: no such mark"},
        {"#\n{{version}}\n {{commands_x}}\n", "line 3: {{commands_x: no such mark"},
        {"#\n{{version2}}", "line 2: {{version2: no such mark"},
        {"#\n{{}}", "line 2: {{: no such mark"},
        {"#\n{{", "line 2: {{: no such mark"},
        {"#\n{{version\n", "line 2: {{version: there is no }} in its line"},
        {"#\n\n{{version\nx\n{{job}}\n", "line 3: {{version: there is no }} in its line"},
        {"#\n{{commands|\n}}\n", "line 2: {{commands: there is no }} in its line"},
        {"#\n{{commands}}\n", "line 2: {{commands: a list needs what comes between its items"},
        {"#\n{{tools}}\n", "line 2: {{tools: a list needs what comes between its items"},
        {"#\n{{files}}\n", "line 2: {{files: a list needs what comes between its items"},
        {"#\n{{version|}}\n",
         "line 2: {{version: it is not a list, so nothing comes behind its name"},
        {"#\n{{zsh-options }}\n",
         "line 2: {{zsh-options: it is not a list, so nothing comes behind its name"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
        struct error err = ERROR_INIT;
        assert_int_equal(docgen_fill(wrong[i].template, &text, &err), -1);
        assert_string_equal(err.text, wrong[i].error);
    }
}

static void test_table_is_current(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT), file AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    struct error err = ERROR_INIT;
    const char *source = getenv("HVDRUN_SOURCE");
    assert_non_null(source);
    char *path = mem_printf("%s/docs/options.md", source);
    if (fd_read_file(path, &file, &err) < 0)
        fail_msg("%s", err.text);
    docgen_table(&text);
    assert_int_equal(strncmp(buf_text(&file), "# Options of hvdrun\n", 20), 0);
    const char *made = strstr(buf_text(&file), "<!-- Generated ");
    assert_non_null(made);
    if (strcmp(buf_text(&text), made) != 0)
        fail_msg("docs/options.md is not what option.def says: build the target options_table");
    free(path);
}

/* Every row has as many cells as the head. */
static void test_table_cells(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    docgen_table(&text);
    for (const char *line = buf_text(&text); *line != '\0';) {
        size_t length = strcspn(line, "\n"), bars = 0;
        for (size_t i = 0; i < length; i++)
            bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
        if (line[0] == '|' && bars != 3)
            fail_msg("%zu bars: %.*s", bars, (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static int must_be_in(void *context, const struct spelling *spelling)
{
    const char *text = context;
    if (spelling->instead == NULL && strstr(text, spelling->word) == NULL)
        fail_msg("the completion has no %s", spelling->word);
    return 0;
}

static void test_completions(void **state)
{
    (void)state;
    static const char *const shells[] = {"hvdrun.bash", "_hvdrun"};
    for (size_t i = 0; i < 2; i++) {
        struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
        fill(shells[i], &text);
        check_lines(buf_text(&text), 0);
        spelling_each(must_be_in, (void *)(uintptr_t)buf_text(&text));
    }
    struct buf fish AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    fill("hvdrun.fish", &fish);
    assert_non_null(strstr(buf_text(&fish), " -l exit-policy -x -a 'first max rank0'"));
    assert_non_null(strstr(buf_text(&fish), " -o np "));
}

/* flow.tab has the same text, and asks the shells what they make of it. */
/* The file has a help, and how it stands between single quotes in zsh and fish. flow.tab gives
 * these lines to the shells. */
static void test_quoting(void **state)
{
    (void)state;
    const char *source = getenv("HVDRUN_SOURCE");
    if (source == NULL)
        fail_msg("HVDRUN_SOURCE does not name the source tree");
    char *path AUTO_FREE = mem_printf("%s/tests/unit/cli/data/quoting.txt", source);
    struct buf lines AUTO_BUF = BUF_INIT(1024), got AUTO_BUF = BUF_INIT(1024);
    assert_int_equal(fd_read_file(path, &lines, NULL), 0);
    char *help AUTO_FREE = mem_strndup(buf_text(&lines), strcspn(buf_text(&lines), "\n"));
    buf_printf(&got, "%s\n", help);
    docgen_quote_zsh(help, &got);
    buf_putc(&got, '\n');
    docgen_quote_fish(help, &got);
    buf_putc(&got, '\n');
    assert_string_equal(buf_text(&got), buf_text(&lines));
}

static void test_man(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    fill("hvdrun.1", &text);
    check_lines(buf_text(&text), 0);
    static const char *const parts[] = {".TH HVDRUN 1 ",
                                        ".SH SYNOPSIS\n",
                                        ".SH \"EXIT STATUS\"\n",
                                        "\\fB124\\fR\n",
                                        "\\fB\\-np, \\-n, \\-\\-np, \\-\\-num\\-proc N\\fR\n",
                                        ".SH CONFIGURATION\n"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strstr(buf_text(&text), parts[i]) == NULL)
            fail_msg("the manual has no %s", parts[i]);
    }
    assert_null(strstr(buf_text(&text), "\n'"));
    assert_null(strstr(buf_text(&text), "\n\n.")); /* no blank lines before requests */
}

/* A man page says what docs/exit-status.md says. */
static void test_man_has_every_status(void **state)
{
    (void)state;
    struct buf man AUTO_BUF = BUF_INIT(TEXT_LIMIT), page AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    struct error err = ERROR_INIT;
    char *path AUTO_FREE = mem_printf("%s/docs/exit-status.md", getenv("HVDRUN_SOURCE"));
    if (fd_read_file(path, &page, &err) < 0)
        fail_msg("%s", err.text);
    fill("hvdrun.1", &man);
    const char *section = strstr(buf_text(&man), ".SH \"EXIT STATUS\"\n");
    const char *row = strstr(buf_text(&page), "|---|---|\n");
    assert_non_null(section);
    assert_non_null(row);
    int rows = 0;
    for (row += strcspn(row, "\n") + 1; *row == '|'; row += strcspn(row, "\n") + 1) {
        size_t length = strcspn(row + 2, " ");
        bool sum = strncmp(row + 2, "128 + n ", 8) == 0;
        char *head AUTO_FREE =
            mem_printf("\\fB%.*s%s", (int)length, row + 2, sum ? " + n" : "\\fR");
        if (strstr(section, head) == NULL)
            fail_msg("EXIT STATUS has no %s", head);
        rows++;
    }
    assert_true(rows > 10);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        count++;
    return count;
}

static void test_man_sections(void **state)
{
    (void)state;
    static const char *const variables[] = {
#define WORKER_VAR(name, value, when) name,
#include "model/env/worker_vars.def"
        "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS"};
    struct buf man AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    fill("hvdrun.1", &man);
    const char *text = buf_text(&man);
    assert_int_equal(count_of(text, "\n\\fB[launch]\\fR\n"), 1);
    assert_int_equal(count_of(text, "\n\\fB[output]\\fR\n"), 1);
    assert_non_null(strstr(text, "\nTime limits and the end of a job.\n"));
    assert_non_null(strstr(text, ".SH SIGNALS\n"));
    const char *section = strstr(text, ".SH \"VARIABLES OF THE WORKERS\"\n");
    assert_non_null(section);
    size_t found = 0;
    for (const char *at = strstr(section, "\\fB");
         at != NULL && at < strstr(section, ".SH SIGNALS"); at = strstr(at + 1, "\\fB")) {
        size_t length = strspn(at + 3, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
        if (length < 4)
            continue;
        bool known = false;
        for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
            known = known ||
                    (strlen(variables[i]) == length && memcmp(variables[i], at + 3, length) == 0);
        if (!known)
            fail_msg("no worker gets %.*s", (int)length, at + 3);
        found++;
    }
    assert_true(found > 15);
}

static void expect_parts(const char *document, const char *text, const char *const *parts)
{
    for (; *parts != NULL; parts++) {
        if (strstr(text, *parts) == NULL)
            fail_msg("%s has no \"%s\"", document, *parts);
    }
}

/* The commands for a running job are in every document, with their own options. */
static void test_commands(void **state)
{
    (void)state;
    static const char *const words[] = {
#define CONTROL_WORD(name, word, operands, help) word,
        CONTROL_COMMAND_LIST(CONTROL_WORD)
#undef CONTROL_WORD
            NULL};
    static const char *const man[] = {
        ".SH COMMANDS\n", "\\fBdrain\\fR HOST [\\-\\-within TIME] [\\-\\-json] [\\-\\-job JOB]\n",
        NULL};
    static const char *const bash[] = {
        "drain) _hvdrun_offer '--within --json --job --slurm-job --help'",
        "status) _hvdrun_offer '--json --job --slurm-job --help'", NULL};
    static const char *const zsh[] = {"drain) _arguments -S '--within[", "'1:host:_hosts' ;;\n",
                                      NULL};
    static const char *const fish[] = {
        "complete -c hvdrun -n '__fish_hvdrun_speaks drain' -f -l within -x -d ",
        "complete -c hvdrun -n '__fish_hvdrun_speaks status' -f -l json -d ", NULL};
    static const struct {
        const char *kind;
        const char *const *parts;
    } documents[] = {
        {"hvdrun.1", man}, {"hvdrun.bash", bash}, {"_hvdrun", zsh}, {"hvdrun.fish", fish}};
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
        fill(documents[i].kind, &text);
        expect_parts(documents[i].kind, buf_text(&text), words);
        expect_parts(documents[i].kind, buf_text(&text), documents[i].parts);
    }
    struct buf help AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    static const char *const lines[] = {
        "  status [JOB] [--json]  ", "  drain HOST [--within TIME] [--json] [--job JOB]\n", NULL};
    help_text(&help);
    expect_parts("--help", buf_text(&help), lines);
}

static void test_about(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    version_text("/nowhere", &text);
    assert_int_equal(
        strncmp(buf_text(&text), "hvdrun " HVDRUN_VERSION "\n", sizeof("hvdrun " HVDRUN_VERSION)),
        0);
    assert_int_equal(buf_text(&text)[text.length - 1], '\n');
    assert_non_null(strstr(buf_text(&text), "contains libevent "));
    assert_non_null(strstr(buf_text(&text), "cannot be loaded: /nowhere/hvdrun-pmix.so: "));
    buf_clear(&text);
    check_build_text(&text);
    check_lines(buf_text(&text), 80);
    assert_non_null(strstr(buf_text(&text), "    [X] local"));
    assert_non_null(strstr(buf_text(&text), "    [X] ssh"));
}

/* Of a library, pkg-config may say "undefined", or nothing. */
static void test_contained(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(256);
    version_contained("libevent 2.1.12-stable, inih undefined, zlib , libyaml 0.2.5", &text);
    assert_string_equal(buf_text(&text), "libevent 2.1.12-stable, inih, zlib, libyaml 0.2.5");
    buf_clear(&text);
    version_contained("inih undefined", &text);
    assert_string_equal(buf_text(&text), "inih");
    buf_clear(&text);
    version_contained("?", &text);
    assert_string_equal(buf_text(&text), "?");
}

/* What the libraries say of themselves. */
static void test_library_versions(void **state)
{
    (void)state;
    static const char *const said[][2] = {
        {"OpenPMIx 4.2.2 (PMIx Standard: 4.1, Stable ABI: 0.0)", "4.2.2"},
        {"OpenSSL 3.0.22 9 Jun 2026", "3.0.22"},
        {"1.11.1_DEV", "1.11.1_DEV"},
        {"9.9)", "9.9"},
        {"none", "?"},
        {"", "?"},
        {NULL, "?"},
    };
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        struct buf text AUTO_BUF = BUF_INIT(64);
        library_versions_number(said[i][0], &text);
        assert_string_equal(buf_text(&text), said[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_short_help),
        cmocka_unit_test(test_templates),
        cmocka_unit_test(test_wrong_templates),
        cmocka_unit_test(test_table_is_current),
        cmocka_unit_test(test_table_cells),
        cmocka_unit_test(test_completions),
        cmocka_unit_test(test_quoting),
        cmocka_unit_test(test_man),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_about),
        cmocka_unit_test(test_contained),
        cmocka_unit_test(test_library_versions),
        cmocka_unit_test(test_man_sections),
        cmocka_unit_test(test_man_has_every_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
