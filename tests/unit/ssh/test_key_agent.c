/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/un.h>

#include "ssh/ssh_fixture.h"
#include "transport/ssh_module/key.h"
#include "transport/ssh_module/keys_test.h"

struct fixture {
    char *place, *socket, *ed, *rsa;
    pid_t agent;
};

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof *f);
    *state = f;
    f->place = place_make();
    f->socket = place_path(f->place, "agent");
    if (!program_exists("/usr/bin/ssh-agent"))
        return 0;
    f->ed = key_make(f->place, "ed", "ed25519", NULL, "", NULL);
    f->rsa = key_make(f->place, "rsa", "rsa", "2048", "", NULL);
    f->agent = agent_start(f->place, "agent");
    agent_add(f->place, "agent", f->ed);
    agent_add(f->place, "agent", f->rsa);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    program_stop(f->agent);
    place_remove(f->place);
    free(f->socket);
    free(f->ed);
    free(f->rsa);
    free(f);
    return 0;
}

static struct fixture *fixture_of(void **state)
{
    struct fixture *f = *state;
    if (f->agent == 0) {
        print_message("skipped: there is no /usr/bin/ssh-agent\n");
        skip();
    }
    return f;
}

struct listed {
    struct key *keys[4];
    size_t count;
};

static void take(void *context, struct byte_view blob, const char *comment)
{
    struct listed *listed = context;
    struct error err = ERROR_INIT;
    assert_true(listed->count < 4);
    listed->keys[listed->count] = key_create_public(blob, comment, &err);
    assert_non_null(listed->keys[listed->count++]);
}

static void lists_and_signs_with_sha2(void **state)
{
    struct fixture *f = fixture_of(state);
    struct error err = ERROR_INIT;
    struct key_agent *agent = key_agent_create(f->socket, &err);
    struct listed listed = {.count = 0};
    struct byte_view data = {.at = (const unsigned char *)"some data", .length = 9};
    const char *const paths[] = {f->ed, f->rsa};

    assert_non_null(agent);
    assert_int_equal(key_agent_list(agent, take, &listed, &err), 0);
    assert_int_equal(listed.count, 2);
    assert_string_equal(listed.keys[0]->origin, "ed");
    assert_true(key_is_rsa(listed.keys[1]));
    for (size_t i = 0; i < 2; i++) { /* both kinds sign the same each time: compare with the file */
        AUTO_BUF struct buf by_agent = BUF_INIT(4096), by_file = BUF_INIT(4096);
        struct key_file file;
        key_file_read(&file, paths[i]);
        assert_int_equal(file.kind, KEY_FILE_USABLE);
        assert_int_equal(key_agent_sign(agent, listed.keys[i], data, &by_agent, &err), 0);
        assert_int_equal(key_sign(file.key, data, &by_file, &err), 0);
        assert_true(view_equal(buf_view(&by_agent), buf_view(&by_file)));
        key_file_destroy(&file);
    }
    /* A key that the agent does not have any more. */
    char *drop[] = {(char *)"ssh-add", (char *)"-q", (char *)"-D", NULL};
    AUTO_BUF struct buf signature = BUF_INIT(4096);
    setenv("SSH_AUTH_SOCK", f->socket, 1);
    assert_int_equal(program_run(drop), 0);
    unsetenv("SSH_AUTH_SOCK");
    assert_int_equal(key_agent_sign(agent, listed.keys[0], data, &signature, &err), -1);
    assert_non_null(strstr(err.text, "refuses"));
    for (size_t i = 0; i < listed.count; i++)
        key_destroy(listed.keys[i]);
    key_agent_destroy(agent);
}

static void a_new_agent_at_the_same_place_is_found(void **state)
{
    struct fixture *f = fixture_of(state);
    struct error err = ERROR_INIT;
    struct key_agent *agent = key_agent_create(f->socket, &err);
    struct listed listed = {.count = 0};

    assert_non_null(agent);
    program_stop(f->agent);
    (void)unlink(f->socket);
    f->agent = agent_start(f->place, "agent");
    agent_add(f->place, "agent", f->rsa);
    assert_int_equal(key_agent_list(agent, take, &listed, &err), 0);
    assert_int_equal(listed.count, 1);
    key_destroy(listed.keys[0]);
    program_stop(f->agent);
    f->agent = 0;
    assert_int_equal(key_agent_list(agent, take, &listed, &err), -1);
    assert_non_null(strstr(err.text, f->socket));
    key_agent_destroy(agent);
    assert_null(key_agent_create("/nonexistent/agent", &err));
    assert_non_null(strstr(err.text, "/nonexistent/agent"));
}

static void only_named_identities_when_so_configured(void **state)
{
    struct fixture *f = fixture_of(state);
    char *AUTO_FREE public = mem_printf("%s.pub", f->rsa);
    char *files[] = {public, NULL};
    struct ssh_keys_config config = {.files = files, .agent_socket = f->socket};
    AUTO_STRV struct strv notes = STRV_INIT;
    struct error err = ERROR_INIT;
    struct ssh_keys *keys;

    keys = keys_create(&config, &notes, &err);
    assert_non_null(keys);
    assert_int_equal(keys_count(keys), 2);
    assert_true(key_is_rsa(keys_get(keys, 0))); /* the named one goes first */
    keys_destroy(keys);
    config.identities_only = true;
    keys = keys_create(&config, &notes, &err);
    assert_non_null(keys);
    assert_int_equal(keys_count(keys), 1);
    assert_true(key_is_rsa(keys_get(keys, 0)));
    keys_destroy(keys);
    assert_int_equal(notes.count, 0);
}

/* Listens and never answers, or answers what it should not. */
static int false_agent(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

static void nothing_is_waited_for_twice(void **state)
{
    struct fixture *f = *state;
    char *AUTO_FREE path = place_path(f->place, "silent");
    int listener AUTO_FD = false_agent(path);
    struct error err = ERROR_INIT;
    struct key_agent *agent = key_agent_create(path, &err);
    struct listed listed = {.count = 0};

    assert_non_null(agent);
    assert_int_equal(key_agent_list(agent, take, &listed, &err), -1);
    assert_non_null(strstr(err.text, "did not answer within"));
    assert_int_equal(key_agent_list(agent, take, &listed, &err), -1);
    assert_non_null(strstr(err.text, "before"));
    key_agent_destroy(agent);
}

static void nonsense_is_an_error(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *bytes;
        size_t length;
    } answers[] = {
        {"\xff\xff\xff\xff", 4},                      /* endless */
        {"\0\0\0\0", 4},                              /* empty */
        {"\0\0\0\1\5", 5},                            /* failure */
        {"\0\0\0\5\14\0\0\0\1", 9},                   /* one key, and no key */
        {"\0\0\0\11\14\0\0\0\1\xff\xff\xff\xff", 13}, /* a key that never ends */
        {"\0\0\0\20\14\0\0\0\1\0\0\0\1x\0\0", 14},    /* cut off */
    };

    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        char *AUTO_FREE name = mem_printf("odd%zu", i);
        char *AUTO_FREE path = place_path(f->place, name);
        int listener AUTO_FD = false_agent(path);
        struct error err = ERROR_INIT;
        struct listed listed = {.count = 0};
        struct key_agent *agent = key_agent_create(path, &err);
        assert_non_null(agent);
        for (int c = 0; c < 1; c++) {
            int client AUTO_FD = accept(listener, NULL, NULL);
            assert_int_equal(fd_write_all(client, answers[i].bytes, answers[i].length), 0);
            fd_close(&listener); /* no second attempt */
            (void)shutdown(client, SHUT_WR);
            assert_int_equal(key_agent_list(agent, take, &listed, &err), -1);
        }
        assert_true(err.text[0] != '\0');
        key_agent_destroy(agent);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lists_and_signs_with_sha2, setup, teardown),
        cmocka_unit_test_setup_teardown(a_new_agent_at_the_same_place_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(only_named_identities_when_so_configured, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_waited_for_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(nonsense_is_an_error, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
