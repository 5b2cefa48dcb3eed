/* SPDX-License-Identifier: Apache-2.0 */
/* Discovery by a hostfile that others change, in all the ways in which files are changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "discovery_fixture.h"

#define QUIET_MS 500

static void begin_polling(struct fixture *f, const char *name, int64_t poll_ms)
{
    char *path AUTO_FREE = in_root(f, name);
    struct error err = ERROR_INIT;
    struct discovery_config config = {.loop = f->children.loop,
                                      .helpers = f->children.helpers,
                                      .log = &f->log,
                                      .watch = path,
                                      .poll_ms = poll_ms,
                                      .limit_ms = NEVER_MS,
                                      .slots_per_host = 2};
    f->discovery = discovery_create(&config, &fixture_ops, f, &err);
    if (f->discovery == NULL)
        fail_msg("%s", err.text);
    discovery_begin(f->discovery);
}

/* What is told is told because inotify has said so. */
static void begin(struct fixture *f, const char *name)
{
    begin_polling(f, name, NEVER_MS);
}

static void test_written_in_place(void **state)
{
    struct fixture *f = *state;
    write_file(f, "hosts", "a slots=4\nb\n", 0644);
    begin(f, "hosts");
    expect_list(f, "a:4 b:2");
    shell(f, "echo 'c:1 # back' >>hosts");
    expect_list(f, "a:4 b:2 c:1");
    shell(f, "echo d >hosts");
    expect_list(f, "d:2");
    shell(f, "touch hosts; echo '# nothing new' >>hosts");
    expect_silence(f, QUIET_MS);
}

static void test_replaced_by_rename(void **state)
{
    struct fixture *f = *state;
    write_file(f, "hosts", "a\n", 0644);
    begin(f, "hosts");
    expect_list(f, "a:2");
    for (int i = 0; i < 3; i++) {
        shell(f, "echo b >new && mv new hosts");
        expect_list(f, "b:2");
        shell(f, "echo c >hosts"); /* the new file is watched as the old one was */
        expect_list(f, "c:2");
    }
}

static void test_removed_and_made_again(void **state)
{
    struct fixture *f = *state;
    write_file(f, "hosts", "a\n", 0644);
    begin(f, "hosts");
    expect_list(f, "a:2");
    shell(f, "rm hosts; echo a >hosts"); /* too short to be seen */
    expect_silence(f, QUIET_MS);
    shell(f, "rm hosts");
    expect_failure(f, false, "cannot read the hostfile: cat: ");
    expect_silence(f, QUIET_MS);
    shell(f, "echo a:3 >hosts");
    expect_list(f, "a:3");
}

/* A ConfigMap: hosts -> ..data/hosts, ..data -> a folder that is made anew for each version. */
static void test_config_map(void **state)
{
    struct fixture *f = *state;
    shell(f, "mkdir ..v1 ..v2 && echo a >..v1/hosts && echo b >..v2/hosts &&"
             "ln -s ..v1 ..data && ln -s ..data/hosts hosts");
    begin(f, "hosts");
    expect_list(f, "a:2");
    shell(f, "ln -s ..v2 ..data_tmp && mv -T ..data_tmp ..data && rm -r ..v1");
    expect_list(f, "b:2");
    shell(f, "mkdir ..v3 && echo c >..v3/hosts && ln -s ..v3 ..data_tmp &&"
             "mv -T ..data_tmp ..data && rm -r ..v2");
    expect_list(f, "c:2");
    assert_int_equal(f->failures, 0);
}

/* Links to somewhere else, absolute and relative ones, and what they lead to is changed there. */
static void test_links(void **state)
{
    struct fixture *f = *state;
    shell(f,
          "mkdir -p here/deep there && echo a >there/hosts &&"
          "ln -s \"$PWD/there\" here/deep/way && ln -s ../here/deep/way/../there/hosts there/x &&"
          "ln -s there/x hosts");
    begin(f, "hosts");
    expect_list(f, "a:2");
    shell(f, "echo b >there/new && mv there/new there/hosts");
    expect_list(f, "b:2");
    shell(f, "echo c >>there/hosts");
    expect_list(f, "b:2 c:2");
    shell(f, "mkdir -p other/there other/x && echo d >other/there/hosts &&"
             "ln -s ../../other/x new && mv -T new here/deep/way");
    expect_list(f, "d:2");
}

static void test_bad_later(void **state)
{
    struct fixture *f = *state;
    write_file(f, "hosts", "a\n", 0644);
    begin(f, "hosts");
    expect_list(f, "a:2");
    shell(f, "printf 'a\\nb slot=4\\n' >hosts");
    expect_failure(f, false, "hosts:2: 'b slot=4'");
    shell(f, ": >hosts");
    expect_failure(f, false, "names no host");
    shell(f, "rm hosts && mkdir hosts");
    expect_failure(f, false, "cannot read the hostfile: cat: ");
    shell(f, "rmdir hosts && echo a >hosts"); /* as it was: nothing to tell */
    expect_silence(f, QUIET_MS);
    shell(f, ": >hosts");
    expect_failure(f, false, "names no host");
}

static void test_bad_at_first(void **state)
{
    struct fixture *f = *state;
    begin(f, "hosts");
    expect_failure(f, true, "cannot read the hostfile: cat: ");
    shell(f, "echo a >hosts");
    expect_silence(f, QUIET_MS);
}

/* Emptied, then written bit by bit by one that keeps it open: only the whole of it is told. */
static void test_written_slowly(void **state)
{
    struct fixture *f = *state;
    char *path AUTO_FREE = in_root(f, "hosts");
    write_file(f, "hosts", "a\nb\n", 0644);
    begin(f, "hosts");
    expect_list(f, "a:2 b:2");
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_true(fd >= 0);
    static const char *const parts[] = {"nod", "e1\nno", "de2\n", "node3 slots=", "17\n"};
    for (size_t i = 0; i < 5; i++) {
        expect_silence(f, QUIET_MS);
        assert_int_equal(fd_write_all(fd, parts[i], strlen(parts[i])), 0);
    }
    fd_close(&fd);
    expect_list(f, "node1:2 node2:2 node3:17");
}

/* The folder itself is another one: nobody tells us, but we look. */
static void test_polled(void **state)
{
    struct fixture *f = *state;
    shell(f, "mkdir etc new && echo a >etc/hosts && echo b >new/hosts");
    begin_polling(f, "etc/hosts", 100);
    expect_list(f, "a:2");
    shell(f, "mv etc old && mv new etc");
    expect_list(f, "b:2");
    shell(f, "rm -r etc");
    expect_failure(f, false, "cannot read the hostfile: cat: ");
    shell(f, "mkdir etc && echo c >etc/hosts");
    expect_list(f, "c:2");
}

static void test_not_a_file(void **state)
{
    struct fixture *f = *state;
    shell(f, "ln -s /dev/zero hosts");
    begin(f, "hosts");
    expect_failure(f, true, "printed more than 1048576 bytes");
}

static void test_pause(void **state)
{
    struct fixture *f = *state;
    write_file(f, "hosts", "a\n", 0644);
    begin(f, "hosts");
    expect_list(f, "a:2");
    discovery_pause(f->discovery, true);
    shell(f, "echo b >hosts");
    expect_silence(f, QUIET_MS);
    discovery_pause(f->discovery, false);
    expect_list(f, "b:2");
}

static void test_destroyed_in_call(void **state)
{
    struct fixture *f = *state;
    write_file(f, "hosts", "a\n", 0644);
    f->destroy_in_call = true;
    begin(f, "hosts");
    expect_list(f, "a:2");
    begin(f, "none");
    expect_failure(f, true, "none");
    assert_null(f->discovery);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_written_in_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_replaced_by_rename, setup, teardown),
        cmocka_unit_test_setup_teardown(test_removed_and_made_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_config_map, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_later, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_at_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_written_slowly, setup, teardown),
        cmocka_unit_test_setup_teardown(test_polled, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_a_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pause, setup, teardown),
        cmocka_unit_test_setup_teardown(test_destroyed_in_call, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
