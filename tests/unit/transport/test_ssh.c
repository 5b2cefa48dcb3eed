/* SPDX-License-Identifier: Apache-2.0 */
/* The ssh transport against a real sshd. Skipped where there is no sshd or no module. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ssh_fixture.h"
#include "unit.h"

#define MANY 24
#define ECHO_BYTES ((size_t)8 << 20)

#define MODULE HVDRUN_MODULES "/hvdrun-ssh.so"

#define OPEN_OR_SKIP(rig, startups)                                  \
    do {                                                             \
        if (access(MODULE, R_OK) < 0)                                \
            skip();                                                  \
        if (rig_open(&(rig), MODULE, (startups)) < 0) {              \
            print_message("no sshd can be started here: skipped\n"); \
            rig_close(&(rig));                                       \
            skip();                                                  \
        }                                                            \
    } while (0)

#define assert_has(text, part)                               \
    do {                                                     \
        if (strstr((text), (part)) == NULL)                  \
            fail_msg("\"%s\" lacks \"%s\"", (text), (part)); \
    } while (0)

static void assert_up(const struct heard *heard)
{
    if (heard->up != 1 || heard->failed != 0)
        fail_msg("%s: not up (%s at %s; %s; %s)", heard->target.host, heard->why,
                 transport_stage_name(heard->stage), heard->stages, heard->notes);
}

struct echo {
    struct heard *heard;
    struct loop_fd *watch;
    size_t sent, got;
    bool wrong, ended;
    const char *bytes;
};

static void echo_ready(void *context, int what)
{
    struct echo *echo = context;
    char bytes[65536];
    if ((what & LOOP_WRITE) != 0 && echo->sent < ECHO_BYTES) {
        ssize_t put = fd_write(echo->heard->fd, echo->bytes + echo->sent, ECHO_BYTES - echo->sent);
        echo->sent += put > 0 ? (size_t)put : 0;
    }
    if ((what & LOOP_READ) != 0) {
        ssize_t got = fd_read(echo->heard->fd, bytes, sizeof(bytes));
        if (got == 0) {
            echo->ended = true;
            loop_stop(echo->heard->rig->loop);
        } else if (got > 0) {
            echo->wrong |= echo->got + (size_t)got > ECHO_BYTES ||
                           memcmp(bytes, echo->bytes + echo->got, (size_t)got) != 0;
            echo->got += (size_t)got;
        }
    }
    if (echo->got == ECHO_BYTES && !echo->ended)
        loop_stop(echo->heard->rig->loop);
    loop_fd_watch(echo->watch, LOOP_READ | (echo->sent < ECHO_BYTES ? LOOP_WRITE : 0));
}

/* All there and back through the stream, then the agent ends by itself. */
static void exchange(struct rig *rig, struct heard *heard)
{
    char *bytes = mem_alloc(ECHO_BYTES);
    for (size_t i = 0; i < ECHO_BYTES; i++)
        bytes[i] = (char)('a' + i * 2654435761u / 65536 % 16);
    struct echo echo = {.heard = heard, .bytes = bytes};
    fd_nonblock(heard->fd);
    echo.watch = loop_fd_create(rig->loop, heard->fd, echo_ready, &echo);
    loop_fd_watch(echo.watch, LOOP_READ | LOOP_WRITE);
    run_loop(rig->loop);
    assert_int_equal(echo.got, ECHO_BYTES);
    assert_false(echo.wrong);
    assert_int_equal(heard->lost, 0);
    assert_int_equal(write(heard->fd, "Q", 1), 1);
    run_loop(rig->loop);
    assert_true(echo.ended);
    loop_fd_destroy(echo.watch);
    free(bytes);
}

static void test_echo(void **state)
{
    (void)state;
    struct rig rig;
    struct heard heard;
    OPEN_OR_SKIP(rig, "10:30:100");
    rig_call_one(&rig, &heard, "127.0.0.1");
    assert_up(&heard);
    assert_string_equal(heard.peer, "127.0.0.1");
    assert_has(heard.stages, "ssh config|resolve|");
    assert_has(heard.stages, "connect|handshake|");
    assert_has(heard.stages, "send agent|");
    exchange(&rig, &heard);
    assert_int_equal(heard.lost, 1);
    assert_has(heard.why, "exit status 7");
    assert_has(heard.notes, "greetings|");
    assert_has(heard.notes, "ed25519");
    heard_hang_up(&heard);
    char *known AUTO_FREE = rig_read(&rig, "known_hosts");
    assert_has(known, "ssh-ed25519"); /* accepted as new */
    /* The image is there now, and the host is known. */
    rig.settings.strict = true;
    rig_call_one(&rig, &heard, "127.0.0.1");
    assert_up(&heard);
    assert_null(strstr(heard.stages, "send agent"));
    heard_hang_up(&heard);
    rig_close(&rig);
}

/* Returns how many tries were made in all. */
static int call_many(struct rig *rig)
{
    static struct heard heard[MANY];
    int tries = 0;
    char hosts[MANY][32];
    int waited_for = MANY;
    for (int i = 0; i < MANY; i++) {
        snprintf(hosts[i], sizeof(hosts[i]), "h%d", i);
        rig_call(rig, &heard[i], hosts[i], i, &waited_for);
    }
    run_loop(rig->loop);
    for (int i = 0; i < MANY; i++) {
        assert_up(&heard[i]);
        for (const char *at = strstr(heard[i].stages, "handshake|"); at != NULL;
             at = strstr(at + 1, "handshake|"))
            tries++;
        heard_hang_up(&heard[i]);
    }
    return tries;
}

/* More at once than sshd takes, all of one address. */
static void test_many(void **state)
{
    (void)state;
    struct rig rig;
    OPEN_OR_SKIP(rig, "16:100:16");
    rig_configure(&rig, "Host h*\n  HostName 127.0.0.1\n");
    assert_int_equal(call_many(&rig), MANY); /* nobody was dropped */
    rig_close(&rig);
}

/* An sshd that drops every third one: they come again, fewer at once. */
static void test_dropped_come_again(void **state)
{
    (void)state;
    struct rig rig;
    OPEN_OR_SKIP(rig, "3:100:3");
    rig_configure(&rig, "Host h*\n  HostName 127.0.0.1\n");
    assert_true(call_many(&rig) > MANY);
    rig_close(&rig);
}

static void test_refused(void **state)
{
    (void)state;
    struct rig rig;
    struct heard heard;
    OPEN_OR_SKIP(rig, "10:30:100");
    rig.settings.port = free_port();
    rig_call_one(&rig, &heard, "127.0.0.1");
    assert_int_equal(heard.failed, 1);
    assert_int_equal(heard.stage, STAGE_CONNECT);
    assert_has(heard.why, "connection refused by 127.0.0.1: is sshd running on port");
    heard_hang_up(&heard);
    rig_close(&rig);
}

static void test_strict_and_changed_key(void **state)
{
    (void)state;
    struct rig rig;
    struct heard heard;
    OPEN_OR_SKIP(rig, "10:30:100");
    rig.settings.strict = true;
    rig_call_one(&rig, &heard, "127.0.0.1");
    assert_int_equal(heard.failed, 1);
    assert_has(heard.why, "or connect once without --ssh-strict");
    assert_null(strstr(heard.why, "StrictHostKeyChecking"));
    heard_hang_up(&heard);
    rig.settings.strict = false;
    rig_key(&rig, "other", "ed25519", "");
    char *other AUTO_FREE = rig_read(&rig, "other.pub");
    char *line AUTO_FREE = mem_printf("[127.0.0.1]:%d %s", rig.port, other);
    rig_write(&rig, "known_hosts", line);
    rig_call_one(&rig, &heard, "127.0.0.1");
    assert_int_equal(heard.failed, 1);
    assert_has(heard.why, "SHA256:");
    heard_hang_up(&heard);
    rig_close(&rig);
}

/* The remedy names what refuses unknown keys: the configuration, not an option that nobody gave. */
static void test_strict_by_configuration(void **state)
{
    (void)state;
    struct rig rig;
    struct heard heard;
    OPEN_OR_SKIP(rig, "10:30:100");
    rig_configure(&rig, "StrictHostKeyChecking yes\n");
    rig_call_one(&rig, &heard, "127.0.0.1");
    assert_int_equal(heard.failed, 1);
    assert_int_equal(heard.stage, STAGE_HOST_KEY);
    assert_has(heard.why, "StrictHostKeyChecking yes");
    assert_has(heard.why, rig.config);
    assert_null(strstr(heard.why, "--ssh-strict"));
    heard_hang_up(&heard);
    rig.settings.strict = true;
    rig_call_one(&rig, &heard, "127.0.0.1");
    assert_has(heard.why, "--ssh-strict");
    assert_has(heard.why, rig.config);
    heard_hang_up(&heard);
    rig_close(&rig);
}

static const char *second(const char *text, const char *part)
{
    const char *first = strstr(text, part);
    return first == NULL ? NULL : strstr(first + 1, part);
}

static void test_no_key(void **state)
{
    (void)state;
    struct rig rig;
    struct heard heard;
    OPEN_OR_SKIP(rig, "10:30:100");
    rig_configure(&rig, "IdentityFile /nonexistent/other\n");
    char *key AUTO_FREE = rig_path(&rig, "user");
    assert_int_equal(unlink(key), 0);
    rig_call_one(&rig, &heard, "127.0.0.1");
    assert_int_equal(heard.failed, 1);
    assert_has(heard.why, "Permission denied (publickey) for user");
    assert_has(heard.why, "there is no SSH key: create one");
    assert_null(second(heard.why, "--ssh-identity-file"));
    heard_hang_up(&heard);
    rig_close(&rig);
}

/* As `exit 3` in a login file of the host does. */
static void test_login_that_exits(void **state)
{
    (void)state;
    struct rig rig;
    struct heard heard;
    OPEN_OR_SKIP(rig, "10:30:100");
    char *public AUTO_FREE = rig_read(&rig, "user.pub");
    char *line AUTO_FREE = mem_printf("command=\"echo closed >&2; exit 3\" %s", public);
    rig_write(&rig, "authorized", line);
    for (int i = 0; i < 2; i++) {
        rig.settings.program_only = i == 1;
        rig_call_one(&rig, &heard, "127.0.0.1");
        assert_int_equal(heard.failed, 1);
        assert_int_equal(heard.stage, STAGE_START);
        assert_has(heard.why, "the login ended with exit status 3 before the host ran /bin/sh");
        assert_has(heard.why, ".bashrc");
        assert_has(heard.why, "closed");
        heard_hang_up(&heard);
    }
    rig_close(&rig);
}

static void test_wrong_key(void **state)
{
    (void)state;
    struct rig rig;
    struct heard heard;
    OPEN_OR_SKIP(rig, "10:30:100");
    rig_write(&rig, "authorized", "");
    rig_call_one(&rig, &heard, "127.0.0.1");
    assert_int_equal(heard.failed, 1);
    assert_int_equal(heard.stage, STAGE_AUTH);
    heard_hang_up(&heard);
    rig_close(&rig);
}

static void signal_sessions(const struct rig *rig, int signal)
{
    char *path AUTO_FREE = mem_printf("/proc/%d/task/%d/children", (int)rig->sshd, (int)rig->sshd);
    struct buf pids AUTO_BUF = BUF_INIT(4096);
    assert_int_equal(fd_read_file(path, &pids, NULL), 0);
    char *end = NULL;
    for (const char *at = buf_text(&pids); *at != '\0'; at = end + strspn(end, " "))
        kill((pid_t)strtol(at, &end, 10), signal);
}

/* The message names what was waited for, not what came before it. */
static void test_server_that_hangs_in_auth(void **state)
{
    (void)state;
    struct rig rig;
    struct heard heard;
    char config[128]; /* sshd asks a program for keys, which ends with us */
    snprintf(config, sizeof(config),
             "10:30:100\nAuthorizedKeysCommand /usr/bin/tail -f --pid=%d /dev/null", (int)getpid());
    OPEN_OR_SKIP(rig, config);
    rig_write(&rig, "authorized", "");
    rig.room.limit_ms = 4000;
    rig_call_one(&rig, &heard, "127.0.0.1");
    signal_sessions(&rig, SIGKILL);
    assert_int_equal(heard.failed, 1);
    assert_has(heard.why, "the login did not end");
    assert_int_equal(heard.stage, STAGE_AUTH);
    heard_hang_up(&heard);
    rig_close(&rig);
}

static void test_jump(void **state)
{
    (void)state;
    struct rig rig;
    struct heard heard;
    OPEN_OR_SKIP(rig, "10:30:100");
    rig_configure(&rig, "Host behind\n  HostName 127.0.0.1\n  ProxyJump door\n"
                        "Host door\n  HostName 127.0.0.1\n"
                        "Host nowhere\n  ProxyCommand echo no such way to %n >&2\n");
    rig_call_one(&rig, &heard, "behind");
    assert_up(&heard);
    assert_string_equal(heard.peer, "");
    exchange(&rig, &heard);
    heard_hang_up(&heard);
    rig_call_one(&rig, &heard, "nowhere");
    assert_int_equal(heard.failed, 1);
    assert_int_equal(heard.stage, STAGE_CONNECT);
    assert_has(heard.why, "no such way to nowhere");
    heard_hang_up(&heard);
    rig_close(&rig);
}

static void test_program_instead(void **state)
{
    (void)state;
    struct rig rig;
    struct heard heard;
    OPEN_OR_SKIP(rig, "10:30:100");
    rig_configure(&rig, "Host *\n  BindAddress 127.0.0.1\n");
    rig_call_one(&rig, &heard, "127.0.0.1");
    assert_up(&heard);
    assert_has(heard.notes, "bindaddress");
    heard_hang_up(&heard);
    rig_close(&rig);
}

static void test_no_module(void **state)
{
    (void)state;
    struct rig rig;
    struct heard heard;
    OPEN_OR_SKIP(rig, "10:30:100");
    rig.settings.module_path = "/nonexistent/hvdrun-ssh.so";
    rig_call_one(&rig, &heard, "127.0.0.1");
    assert_up(&heard);
    assert_has(heard.notes,
               "hvdrun uses the ssh program for this host: /nonexistent/hvdrun-ssh.so is "
               "missing");
    heard_hang_up(&heard);
    rig_close(&rig);
}

static void test_encrypted_key(void **state)
{
    (void)state;
    struct rig rig;
    struct heard heard;
    OPEN_OR_SKIP(rig, "10:30:100");
    rig_key(&rig, "locked", "ed25519", "open sesame");
    char *public AUTO_FREE = rig_read(&rig, "locked.pub");
    rig_write(&rig, "authorized", public);
    char *key AUTO_FREE = rig_path(&rig, "locked");
    rig.settings.identity = key;
    ssh_transport_destroy(rig.ssh);
    rig.ssh = ssh_transport_create(&rig.settings);
    rig_call_one(&rig, &heard, "127.0.0.1");
    assert_int_equal(heard.failed, 1); /* no prompt, no hang, and the reason */
    assert_has(heard.notes, "locked: it is encrypted: load it into your ssh-agent with ssh-add");
    heard_hang_up(&heard);
    rig_close(&rig);
}

/* Hung up at any moment: nothing more is heard, nothing is left. */
static void test_hang_up_early(void **state)
{
    (void)state;
    struct rig rig;
    struct heard heard;
    OPEN_OR_SKIP(rig, "10:30:100");
    for (int turns = 0; turns < 400; turns += turns < 20 ? 1 : 37) {
        rig_call(&rig, &heard, "127.0.0.1", 0, NULL);
        run_turns(rig.loop, turns);
        heard_hang_up(&heard);
        struct heard after = heard;
        run_turns(rig.loop, 5);
        assert_memory_equal(&after, &heard, sizeof(heard));
    }
    rig_close(&rig);
}

/* This program is the agent that the tests start. */
int unit_called_otherwise(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--marker") == 0)
        return be_agent(argv[2]);
    if (argc == 2 && strcmp(argv[1], "--version") == 0) { /* asked before it is believed */
        printf("hvdrun-agent %s\n", HVDRUN_VERSION);
        return 0;
    }
    return 2;
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_echo),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_dropped_come_again),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_strict_and_changed_key),
        cmocka_unit_test(test_strict_by_configuration),
        cmocka_unit_test(test_no_key),
        cmocka_unit_test(test_login_that_exits),
        cmocka_unit_test(test_wrong_key),
        cmocka_unit_test(test_server_that_hangs_in_auth),
        cmocka_unit_test(test_jump),
        cmocka_unit_test(test_program_instead),
        cmocka_unit_test(test_no_module),
        cmocka_unit_test(test_encrypted_key),
        cmocka_unit_test(test_hang_up_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
