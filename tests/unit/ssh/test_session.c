/* SPDX-License-Identifier: Apache-2.0 */
/* Whole sessions with a real sshd on the loopback, driven by poll(). */
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ssh/ssh_fixture.h"
#include "transport/ssh_module/key.h"
#include "transport/ssh_module/known_hosts.h"
#include "transport/ssh_module/parts.h"

struct place {
    char *folder, *known, *user;
    struct ssh_known_files *known_files; /* of all sessions, as in a job */
    struct sshd sshd;
    bool ready;
};

/* One for all tests, since keys and servers cost time. */
static int setup(void **state)
{
    static struct place p;
    const struct passwd *me = getpwuid(getuid());

    *state = &p;
    if (!program_exists(SSHD_PROGRAM) || !me)
        return 0;
    p.folder = place_make();
    p.known = place_path(p.folder, "known_hosts");
    p.user = mem_strdup(me->pw_name);
    p.known_files = known_files_create();
    free(key_make(p.folder, "host_ed25519", "ed25519", NULL, "", NULL));
    free(key_make(p.folder, "host_ecdsa", "ecdsa", "256", "", NULL));
    free(key_make(p.folder, "host_rsa", "rsa", "2048", "", NULL));
    p.sshd = sshd_start(p.folder, "sshd", "MaxStartups 500\nMaxAuthTries 6");
    p.ready = true;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    if (!p->ready)
        return 0;
    program_kill_children(p->sshd.pid);
    program_stop(p->sshd.pid);
    place_remove(p->folder);
    known_files_destroy(p->known_files);
    free(p->known);
    free(p->user);
    return 0;
}

static struct place *place_of(void **state)
{
    struct place *p = *state;
    if (!p->ready) {
        print_message("skipped: there is no " SSHD_PROGRAM " (package openssh-server)\n");
        skip();
    }
    (void)unlink(p->known);
    return p;
}

static void authorize(const struct place *p, const char *key)
{
    char *AUTO_FREE public = mem_printf("%s.pub", key);
    char *AUTO_FREE line = place_read(public);
    char *AUTO_FREE file = place_path(p->folder, "authorized_keys");
    place_write(file, line, true);
}

static char *authorized_key(const struct place *p, const char *name, const char *type,
                            const char *bits, const char *passphrase, const char *format)
{
    char *path = key_make(p->folder, name, type, bits, passphrase, format);
    authorize(p, path);
    return path;
}

/* The first key that anybody asks for; made once. */
static char *plain_key(const struct place *p)
{
    char *path = place_path(p->folder, "plain");
    if (access(path, F_OK) == 0)
        return path;
    free(path);
    return authorized_key(p, "plain", "ed25519", NULL, "", NULL);
}

static struct ssh_keys *keys_of(char *const *files, const char *agent)
{
    struct ssh_keys_config config = {.files = files, .agent_socket = agent};
    AUTO_STRV struct strv notes = STRV_INIT;
    struct error err = ERROR_INIT;
    struct ssh_keys *keys = keys_create(&config, &notes, &err);
    if (!keys)
        print_error("%s\n", err.text);
    assert_non_null(keys);
    return keys;
}

static struct ssh_keys *keys_of_file(const char *file)
{
    char *files[] = {(char *)file, NULL};
    return keys_of(files, NULL);
}

struct talk {
    struct ssh_host_config config;
    char *known[2];
    struct ssh_session *session;
    enum ssh_state state;
    int fd;
    struct buf out, err;
    bool out_ended, err_ended;
};

static void talk_open(struct talk *talk, const struct place *p, int port, struct ssh_keys *keys,
                      const char *command)
{
    memset(talk, 0, sizeof *talk);
    buf_init(&talk->out, 16 << 20);
    buf_init(&talk->err, 16 << 20);
    talk->known[0] = p->known;
    talk->fd = port_connect(port);
    assert_true(talk->fd >= 0);
    talk->config = (struct ssh_host_config){.fd = talk->fd,
                                            .name = "localhost",
                                            .address = "127.0.0.1",
                                            .port = port,
                                            .user = p->user,
                                            .keys = keys,
                                            .known_files = p->known_files,
                                            .known_hosts = talk->known,
                                            .command = command};
}

static void talk_close(struct talk *talk)
{
    hvdrun_ssh_module.destroy(talk->session);
    fd_close(&talk->fd);
    buf_destroy(&talk->out);
    buf_destroy(&talk->err);
}

static bool talk_settled(const struct talk *talk)
{
    return talk->state >= SSH_STATE_OPEN;
}

static void wait_for(const struct talk *talks, size_t count)
{
    struct pollfd fds[64];
    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++) {
        int wants = hvdrun_ssh_module.wants(talks[i].session);
        fds[i] = (struct pollfd){.fd = wants ? talks[i].fd : -1};
        if (wants & SSH_WANT_READ)
            fds[i].events |= POLLIN;
        if (wants & SSH_WANT_WRITE)
            fds[i].events |= POLLOUT;
    }
    if (poll(fds, count, FIXTURE_WAIT_MS) == 0) {
        print_error("nothing happens in state %d\n", (int)talks[0].state);
        fail();
    }
}

static enum ssh_state talk_start(struct talk *talk)
{
    talk->session = hvdrun_ssh_module.create(&talk->config);
    for (;;) {
        talk->state = hvdrun_ssh_module.advance(talk->session);
        if (talk_settled(talk))
            return talk->state;
        wait_for(talk, 1);
    }
}

/* Reads all there is; false: the connection broke. */
static bool talk_read_one(struct talk *talk, enum ssh_channel channel, struct buf *to, bool *ended)
{
    while (!*ended) {
        char *room = buf_reserve(to, 32768);
        assert_non_null(room);
        ssize_t n = hvdrun_ssh_module.read(talk->session, channel, room, 32768);
        if (n < 0)
            return errno == EAGAIN;
        buf_commit(to, (size_t)n);
        *ended = n == 0;
    }
    return true;
}

static bool talk_read(struct talk *talk)
{
    return talk_read_one(talk, SSH_CHANNEL_OUT, &talk->out, &talk->out_ended) &&
           talk_read_one(talk, SSH_CHANNEL_ERR, &talk->err, &talk->err_ended);
}

/* What the command itself wrote to stderr. Before it, sshd complains of a user without a home. */
static const char *err_of_command(const struct talk *talk)
{
    const char *text = buf_text(&talk->err);
    bool complains = strncmp(text, "Could not chdir to home directory ", 34) == 0;
    const char *end = complains ? strchr(text, '\n') : NULL;
    return end == NULL ? text : end + 1;
}

/* To the end: 0..255, as told by the server; -2: the connection broke. */
static int talk_finish(struct talk *talk)
{
    for (;;) {
        (void)hvdrun_ssh_module.advance(talk->session);
        if (!talk_read(talk))
            return -2;
        (void)hvdrun_ssh_module.advance(talk->session);
        if (talk->out_ended && talk->err_ended && hvdrun_ssh_module.exit_status(talk->session) >= 0)
            return hvdrun_ssh_module.exit_status(talk->session);
        wait_for(talk, 1);
    }
}

static void talk_must_open(struct talk *talk)
{
    if (talk_start(talk) != SSH_STATE_OPEN)
        print_error("state %d: %s\n", (int)talk->state, hvdrun_ssh_module.problem(talk->session));
    assert_int_equal(talk->state, SSH_STATE_OPEN);
}

static void talk_must_fail(struct talk *talk, enum ssh_state state, const char *words)
{
    if (talk_start(talk) != state || !strstr(hvdrun_ssh_module.problem(talk->session), words))
        print_error("state %d: %s\n", (int)talk->state, hvdrun_ssh_module.problem(talk->session));
    assert_int_equal(talk->state, state);
    assert_non_null(strstr(hvdrun_ssh_module.problem(talk->session), words));
    assert_null(strchr(hvdrun_ssh_module.problem(talk->session), '\n'));
}

/* Logs in with these keys and lets the host do something. */
static void check_login(const struct place *p, struct ssh_keys *keys, const char *summary)
{
    struct talk talk;
    talk_open(&talk, p, p->sshd.port, keys, "echo hello; echo trouble >&2; exit 7");
    talk_must_open(&talk);
    if (!strstr(hvdrun_ssh_module.summary(talk.session), summary))
        print_error("%s\n", hvdrun_ssh_module.summary(talk.session));
    assert_non_null(strstr(hvdrun_ssh_module.summary(talk.session), summary));
    assert_non_null(strstr(hvdrun_ssh_module.summary(talk.session), ", aes128-ctr"));
    assert_int_equal(talk_finish(&talk), 7);
    assert_string_equal(buf_text(&talk.out), "hello\n");
    assert_string_equal(err_of_command(&talk), "trouble\n");
    talk_close(&talk);
    keys_destroy(keys);
}

static void logs_in_with_every_kind_of_key(void **state)
{
    struct place *p = place_of(state);
    static const struct {
        const char *type, *bits, *format;
    } kinds[] = {
        {"ed25519", NULL, NULL},   {"ecdsa", "256", NULL}, {"ecdsa", "384", NULL},
        {"ecdsa", "521", NULL},    {"rsa", "3072", NULL},  {"rsa", "2048", "PEM"},
        {"ecdsa", "256", "PKCS8"},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char *AUTO_FREE name = mem_printf("kind%zu", i);
        char *AUTO_FREE path =
            authorized_key(p, name, kinds[i].type, kinds[i].bits, "", kinds[i].format);
        char *AUTO_FREE summary = mem_printf("%s key %s (file)", kinds[i].type, path);
        check_login(p, keys_of_file(path), summary);
    }
}

static void logs_in_through_the_agent(void **state)
{
    struct place *p = place_of(state);
    char *AUTO_FREE ed = authorized_key(p, "agent_ed", "ed25519", NULL, "", NULL);
    char *AUTO_FREE rsa = authorized_key(p, "agent_rsa", "rsa", "2048", "", NULL);
    char *AUTO_FREE ed_socket = place_path(p->folder, "agent1");
    char *AUTO_FREE rsa_socket = place_path(p->folder, "agent2");
    pid_t first = agent_start(p->folder, "agent1"), second = agent_start(p->folder, "agent2");
    char *none[] = {NULL};

    agent_add(p->folder, "agent1", ed);
    agent_add(p->folder, "agent2", rsa);
    check_login(p, keys_of(none, ed_socket), "ed25519 key agent_ed in the agent");
    check_login(p, keys_of(none, rsa_socket), "rsa key agent_rsa in the agent (agent)");
    program_stop(first);
    program_stop(second);
}

static void the_right_key_is_found_behind_wrong_ones(void **state)
{
    struct place *p = place_of(state);
    char *AUTO_FREE good = plain_key(p);
    char *wrong[8] = {NULL}, *files[8] = {NULL};
    struct talk talk;
    struct ssh_keys *keys;

    for (size_t i = 0; i < 7; i++) {
        char *AUTO_FREE name = mem_printf("wrong%zu", i);
        wrong[i] = key_make(p->folder, name, i == 1 ? "ecdsa" : "ed25519", NULL, "", NULL);
    }
    memcpy(files, wrong, 3 * sizeof files[0]);
    files[3] = good;
    check_login(p, keys_of(files, NULL), good);

    keys = keys_of_file(wrong[0]);
    talk_open(&talk, p, p->sshd.port, keys, "true");
    talk_must_fail(&talk, SSH_STATE_FAILED, "Permission denied (publickey) for user");
    assert_non_null(strstr(hvdrun_ssh_module.problem(talk.session), wrong[0]));
    talk_close(&talk);
    keys_destroy(keys);

    keys = keys_of(wrong, NULL); /* more than MaxAuthTries */
    talk_open(&talk, p, p->sshd.port, keys, "true");
    talk_must_fail(&talk, SSH_STATE_FAILED, "IdentitiesOnly");
    talk_close(&talk);
    keys_destroy(keys);

    talk_open(&talk, p, p->sshd.port, NULL, "true");
    talk_must_fail(&talk, SSH_STATE_FAILED, "there is no key to offer");
    talk_close(&talk);
    for (size_t i = 0; i < 7; i++)
        free(wrong[i]);
}

static void a_certificate_beside_the_key_is_left_to_ssh(void **state)
{
    struct place *p = place_of(state);
    char *AUTO_FREE key = key_make(p->folder, "certified", "ed25519", NULL, "", NULL);
    char *AUTO_FREE certificate = mem_printf("%s-cert.pub", key);
    struct ssh_keys *keys;
    struct talk talk;

    place_write(certificate, "x\n", false);
    keys = keys_of_file(key);
    talk_open(&talk, p, p->sshd.port, keys, "true");
    talk_must_fail(&talk, SSH_STATE_FALLBACK, "certificate");
    talk_close(&talk);
    keys_destroy(keys);
}

/* The host's public key of this type, "TYPE BASE64". */
static char *host_public(const struct place *p, const char *name)
{
    char *AUTO_FREE path = mem_printf("%s/%s.pub", p->folder, name);
    char *line = place_read(path), *space = strchr(line, ' ');
    assert_non_null(space);
    space[1 + strcspn(space + 1, " \n")] = '\0';
    return line;
}

static void know(const struct place *p, const char *mark, const char *name, const char *key)
{
    char *AUTO_FREE public = host_public(p, key);
    char *AUTO_FREE line = name ? mem_printf("%s%s %s\n", mark, name, public)
                                : mem_printf("%s[localhost]:%d %s\n", mark, p->sshd.port, public);
    place_write(p->known, line, true);
}

static void expect(const struct place *p, enum ssh_host_policy policy, enum ssh_state state,
                   const char *words)
{
    char *AUTO_FREE key = plain_key(p);
    struct ssh_keys *keys = keys_of_file(key);
    struct talk talk;

    talk_open(&talk, p, p->sshd.port, keys, "true");
    talk.config.policy = policy;
    if (state == SSH_STATE_OPEN)
        talk_must_open(&talk);
    else
        talk_must_fail(&talk, state, words);
    if (state == SSH_STATE_OPEN)
        assert_non_null(strstr(hvdrun_ssh_module.summary(talk.session), words));
    talk_close(&talk);
    keys_destroy(keys);
}

static void host_keys_are_judged(void **state)
{
    struct place *p = place_of(state);
    free(key_make(p->folder, "stranger", "ed25519", NULL, "", NULL));

    expect(p, SSH_HOST_STRICT, SSH_STATE_FAILED, "is not known");
    assert_int_equal(access(p->known, F_OK), -1);
    expect(p, SSH_HOST_ACCEPT_NEW, SSH_STATE_OPEN, "new, added to");
    char *AUTO_FREE text = place_read(p->known);
    char *AUTO_FREE wanted = mem_printf("[localhost]:%d ssh-ed25519 ", p->sshd.port);
    assert_memory_equal(text, wanted, strlen(wanted));
    expect(p, SSH_HOST_STRICT, SSH_STATE_OPEN, "host key ssh-ed25519 SHA256:");
    char *AUTO_FREE again = place_read(p->known);
    assert_string_equal(text, again); /* nothing is added twice */

    (void)unlink(p->known); /* the listed type is the one that is asked for */
    know(p, "", NULL, "host_ecdsa");
    expect(p, SSH_HOST_STRICT, SSH_STATE_OPEN, "host key ecdsa-sha2-nistp256 SHA256:");

    (void)unlink(p->known);
    know(p, "", NULL, "stranger");
    expect(p, SSH_HOST_ACCEPT_NEW, SSH_STATE_FAILED, "ssh-keygen -f");
    expect(p, SSH_HOST_STRICT, SSH_STATE_FAILED, "the host key has changed");
    expect(p, SSH_HOST_ANY, SSH_STATE_OPEN, "not the known one");

    know(p, "@revoked ", "*", "host_ed25519");
    expect(p, SSH_HOST_ACCEPT_NEW, SSH_STATE_FAILED, "is revoked");
    expect(p, SSH_HOST_ANY, SSH_STATE_FAILED, "is revoked");

    (void)unlink(p->known);
    know(p, "@cert-authority ", "*", "stranger");
    expect(p, SSH_HOST_ACCEPT_NEW, SSH_STATE_FALLBACK, "certificate");
}

/* Nobody gets around a known key by having one of another type only. */
static void a_key_of_another_type_is_a_changed_one(void **state)
{
    struct place *p = place_of(state);
    char *AUTO_FREE extra = mem_printf("HostKey %s/host_ed25519", p->folder);
    struct sshd all = p->sshd;

    p->sshd = sshd_start(p->folder, "sshd_one", extra);
    know(p, "", NULL, "host_ecdsa");
    expect(p, SSH_HOST_ACCEPT_NEW, SSH_STATE_FAILED, "the host key has changed");
    know(p, "", NULL, "host_ed25519");
    expect(p, SSH_HOST_STRICT, SSH_STATE_OPEN, "host key ssh-ed25519");
    program_stop(p->sshd.pid);
    p->sshd = all;
}

/* Only the RSA key is known: a libssh2 that can ask for it gets it, an older one leaves the host to
 * the ssh program; neither cries wolf, and neither trusts another key. */
static void a_known_rsa_key_is_no_false_alarm(void **state)
{
    struct place *p = place_of(state);
    char *AUTO_FREE key = plain_key(p);
    struct ssh_keys *keys = keys_of_file(key);
    struct talk talk;

    know(p, "", NULL, "host_rsa");
    talk_open(&talk, p, p->sshd.port, keys, "true");
    if (talk_start(&talk) == SSH_STATE_OPEN)
        assert_non_null(strstr(hvdrun_ssh_module.summary(talk.session), "host key ssh-rsa"));
    else
        assert_int_equal(talk.state, SSH_STATE_FALLBACK);
    talk_close(&talk);
    keys_destroy(keys);
}

static void no_common_algorithm_is_left_to_ssh(void **state)
{
    struct place *p = place_of(state);
    char *AUTO_FREE key = plain_key(p);
    struct ssh_keys *keys = keys_of_file(key);
    struct sshd sshd =
        sshd_start(p->folder, "sshd_new", "KexAlgorithms sntrup761x25519-sha512@openssh.com");
    struct talk talk;

    talk_open(&talk, p, sshd.port, keys, "true");
    talk_must_fail(&talk, SSH_STATE_FALLBACK, "cannot agree");
    talk_close(&talk);
    keys_destroy(keys);
    program_stop(sshd.pid);
}

static void echoes_a_megabyte(void **state)
{
    enum { SIZE = 1 << 20 };
    struct place *p = place_of(state);
    char *AUTO_FREE key = plain_key(p);
    struct ssh_keys *keys = keys_of_file(key);
    char *AUTO_FREE bytes = mem_alloc(SIZE);
    size_t sent = 0;
    bool eof = false;
    struct talk talk;

    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    talk_open(&talk, p, p->sshd.port, keys, "cat; echo done >&2; exit 3");
    talk_must_open(&talk);
    while (!talk.out_ended || !talk.err_ended || hvdrun_ssh_module.exit_status(talk.session) < 0) {
        assert_true(talk_read(&talk));
        while (sent < SIZE) {
            ssize_t n = hvdrun_ssh_module.write(talk.session, bytes + sent, SIZE - sent);
            if (n < 0)
                assert_int_equal(errno, EAGAIN);
            if (n < 0)
                break;
            sent += (size_t)n;
        }
        if (sent == SIZE && !eof)
            eof = hvdrun_ssh_module.send_eof(talk.session) == 0;
        (void)hvdrun_ssh_module.advance(talk.session);
        if (!talk.out_ended || !talk.err_ended || hvdrun_ssh_module.exit_status(talk.session) < 0)
            wait_for(&talk, 1);
    }
    assert_int_equal(talk.out.length, SIZE);
    assert_memory_equal(buf_text(&talk.out), bytes, SIZE);
    assert_string_equal(err_of_command(&talk), "done\n");
    assert_int_equal(hvdrun_ssh_module.exit_status(talk.session), 3);
    talk_close(&talk);
    keys_destroy(keys);
}

/* More than the window, while we do not read: what was sent is there afterwards. */
static void a_flood_in_both_directions_is_carried(void **state)
{
    enum { SIZE = 12 << 20 };
    struct place *p = place_of(state);
    char *AUTO_FREE key = plain_key(p);
    struct ssh_keys *keys = keys_of_file(key);
    char *AUTO_FREE bytes = mem_alloc(32768);
    size_t sent = 0;
    bool eof = false;
    struct talk talk;

    talk_open(&talk, p, p->sshd.port, keys,
              "head -c 12582912 /dev/zero & head -c 1048576 /dev/zero >&2; wc -c; wait");
    talk_must_open(&talk);
    while (!talk.out_ended || !talk.err_ended || hvdrun_ssh_module.exit_status(talk.session) < 0) {
        ssize_t n = 0;
        assert_true(talk_read(&talk));
        while (n >= 0 && sent < SIZE) {
            n = hvdrun_ssh_module.write(talk.session, bytes,
                                        sent + 32768 < SIZE ? 32768 : SIZE - sent);
            sent += n > 0 ? (size_t)n : 0;
        }
        if (sent == SIZE && !eof)
            eof = hvdrun_ssh_module.send_eof(talk.session) == 0;
        (void)hvdrun_ssh_module.advance(talk.session);
        if (!talk.out_ended || !talk.err_ended || hvdrun_ssh_module.exit_status(talk.session) < 0)
            wait_for(&talk, 1);
    }
    assert_int_equal(buf_text(&talk.err) + talk.err.length - err_of_command(&talk), 1 << 20);
    assert_true(talk.out.length == SIZE + strlen("12582912\n"));
    talk_close(&talk);
    keys_destroy(keys);
}

static void signals_are_told_and_the_end_too(void **state)
{
    struct place *p = place_of(state);
    char *AUTO_FREE key = plain_key(p);
    struct ssh_keys *keys = keys_of_file(key);
    struct talk talk;

    talk_open(&talk, p, p->sshd.port, keys, "kill -KILL $$");
    talk_must_open(&talk);
    assert_int_equal(hvdrun_ssh_module.exit_status(talk.session), -1);
    assert_int_equal(talk_finish(&talk), 128 + SIGKILL);
    talk_close(&talk);
    keys_destroy(keys);
}

static void a_killed_server_is_told_after_its_last_words(void **state)
{
    struct place *p = place_of(state);
    char *AUTO_FREE key = plain_key(p);
    struct ssh_keys *keys = keys_of_file(key);
    struct sshd sshd = sshd_start(p->folder, "sshd_killed", "");
    struct talk talk;
    char byte = 'x';

    talk_open(&talk, p, sshd.port, keys, "echo last words; exec cat");
    talk_must_open(&talk);
    for (;;) { /* they may have come with the answer that opened it: read before waiting */
        assert_true(talk_read(&talk));
        if (talk.out.length >= strlen("last words\n"))
            break;
        wait_for(&talk, 1);
    }
    program_kill_children(sshd.pid);
    assert_int_equal(talk_finish(&talk), -2);
    assert_string_equal(buf_text(&talk.out), "last words\n");
    assert_non_null(
        strstr(hvdrun_ssh_module.problem(talk.session), "the SSH connection was lost: "));
    assert_int_equal(hvdrun_ssh_module.write(talk.session, &byte, 1), -1);
    assert_int_not_equal(errno, EAGAIN);
    assert_int_equal(hvdrun_ssh_module.exit_status(talk.session), -1);
    talk_close(&talk);
    program_stop(sshd.pid);
    keys_destroy(keys);
}

static void check_greeting(const struct place *p, const char *greeting, enum ssh_state wanted,
                           const char *words)
{
    int port, client;
    int listener AUTO_FD = port_listen(&port);
    struct talk talk;

    talk_open(&talk, p, port, NULL, "true");
    client = accept(listener, NULL, NULL);
    assert_int_equal(fd_write_all(client, greeting, strlen(greeting)), 0);
    fd_close(&client);
    talk_must_fail(&talk, wanted, words);
    assert_int_equal(hvdrun_ssh_module.wants(talk.session), 0);
    talk_close(&talk);
}

static void servers_that_end_it_early_are_told_apart(void **state)
{
    struct place *p = place_of(state);

    check_greeting(p, "", SSH_STATE_AGAIN, "before its banner");
    check_greeting(p, "Exceeded MaxStartups\r\n", SSH_STATE_AGAIN, "MaxStartups");
    check_greeting(p, "Not allowed at this time\r\n", SSH_STATE_AGAIN,
                   "PerSourcePenaltyExemptList");
    check_greeting(p, "HTTP/1.0 400 Bad\033 Request\r\n", SSH_STATE_FAILED, "HTTP/1.0 400 Bad? ");
    check_greeting(p, "SSH-2.0-OpenSSH_9.2\r\n", SSH_STATE_FAILED, "exchanging keys");
}

/* Broken off at each of its turns, a session leaves nothing (the sanitizer looks). */
static void can_be_destroyed_at_any_time(void **state)
{
    struct place *p = place_of(state);
    char *AUTO_FREE key = plain_key(p);
    struct ssh_keys *keys = keys_of_file(key);
    bool opened = false;

    for (int turns = 0; !opened; turns++) {
        struct talk talk;
        assert_true(turns < 100);
        talk_open(&talk, p, p->sshd.port, keys, "cat");
        talk.session = hvdrun_ssh_module.create(&talk.config);
        for (int turn = 0; turn < turns && !opened; turn++) {
            opened = hvdrun_ssh_module.advance(talk.session) == SSH_STATE_OPEN;
            if (!opened)
                wait_for(&talk, 1);
        }
        talk_close(&talk);
    }
    keys_destroy(keys);
}

static void many_sessions_share_one_loop(void **state)
{
    enum { COUNT = 20 };
    struct place *p = place_of(state);
    char *AUTO_FREE key = plain_key(p);
    struct ssh_keys *keys = keys_of_file(key);
    struct talk talks[COUNT];
    size_t open = 0;

    know(p, "", NULL, "host_ed25519");
    for (size_t i = 0; i < COUNT; i++) {
        talk_open(&talks[i], p, p->sshd.port, keys, "echo one of many");
        talks[i].config.policy = SSH_HOST_STRICT;
        talks[i].session = hvdrun_ssh_module.create(&talks[i].config);
    }
    while (open < COUNT) {
        open = 0;
        for (size_t i = 0; i < COUNT; i++) {
            talks[i].state = hvdrun_ssh_module.advance(talks[i].session);
            if (talks[i].state > SSH_STATE_OPEN)
                print_error("%s\n", hvdrun_ssh_module.problem(talks[i].session));
            assert_true(talks[i].state <= SSH_STATE_OPEN);
            open += talks[i].state == SSH_STATE_OPEN;
        }
        if (open < COUNT)
            unit_pause();
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(talk_finish(&talks[i]), 0);
        assert_string_equal(buf_text(&talks[i].out), "one of many\n");
        talk_close(&talks[i]);
    }
    keys_destroy(keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logs_in_with_every_kind_of_key),
        cmocka_unit_test(logs_in_through_the_agent),
        cmocka_unit_test(the_right_key_is_found_behind_wrong_ones),
        cmocka_unit_test(a_certificate_beside_the_key_is_left_to_ssh),
        cmocka_unit_test(host_keys_are_judged),
        cmocka_unit_test(a_key_of_another_type_is_a_changed_one),
        cmocka_unit_test(a_known_rsa_key_is_no_false_alarm),
        cmocka_unit_test(no_common_algorithm_is_left_to_ssh),
        cmocka_unit_test(echoes_a_megabyte),
        cmocka_unit_test(a_flood_in_both_directions_is_carried),
        cmocka_unit_test(signals_are_told_and_the_end_too),
        cmocka_unit_test(a_killed_server_is_told_after_its_last_words),
        cmocka_unit_test(servers_that_end_it_early_are_told_apart),
        cmocka_unit_test(can_be_destroyed_at_any_time),
        cmocka_unit_test(many_sessions_share_one_loop),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
