/* SPDX-License-Identifier: Apache-2.0 */
/* Calls through commands that stand in for ssh and kubectl, to real agents on this machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "boot_fixture.h"
#include "io/helpers.h"
#include "io/reaper.h"
#include "transport/exec/words.h"
#include "transport/transports.h"

struct rig {
    struct host host;
    struct loop *loop;
    struct loop_signals *signals;
    struct reaper *reaper;
    struct agent_image image;
    struct transport_room room;
    struct exec_transport exec;
    struct transport transport;
    int connecting, most_connecting;
};

struct peer {
    struct rig *rig;
    struct transport_target target;
    struct transport_call *call;
    struct transport_stream stream;
    int ups, fails, losts, wanted;
    enum transport_stage stage;
    char text[ERROR_TEXT_MAX], notes[4096];
    bool hang_up_in_event;
};

static void hand_in(void *context, const struct reaper_exit *exit)
{
    struct rig *rig = context;
    helpers_exited(rig->room.helpers, exit);
}

static void got_signal(void *context, int signal, int sender)
{
    struct rig *rig = context;
    (void)signal;
    (void)sender;
    reaper_collect(rig->reaper);
}

static void rig_open(struct rig *rig, const char *template)
{
    static const int signals[] = {SIGCHLD, 0};
    struct error err = ERROR_INIT;
    *rig = (struct rig){.loop = loop_create(&err)};
    host_open(&rig->host);
    for (size_t i = 0; i < rig->host.env.count; i++)
        putenv(rig->host.env.items[i]);
    rig->reaper = reaper_create(hand_in, rig);
    rig->signals = loop_signals_create(rig->loop, signals, got_signal, rig, &err);
    assert_non_null(rig->signals);
    assert_int_equal(agent_image_open(HVDRUN_AGENT_PROGRAM, &rig->image, &err), 0);
    rig->room = (struct transport_room){.loop = rig->loop,
                                        .helpers = helpers_create(),
                                        .image = &rig->image,
                                        .job_id = "job",
                                        .limit_ms = 15000};
    rig->exec = (struct exec_transport){.room = &rig->room, .boot_word = BOOT_COMMAND};
    if (exec_template_parse(template, &rig->exec.words, &err) < 0)
        fail_msg("%s", err.text);
    rig->transport = exec_transport(&rig->exec);
}

static void rig_close(struct rig *rig)
{
    exec_transport_close(&rig->exec);
    helpers_destroy(rig->room.helpers);
    while (wait(NULL) > 0)
        continue;
    loop_signals_destroy(rig->signals);
    reaper_destroy(rig->reaper);
    loop_destroy(rig->loop);
    agent_image_close(&rig->image);
    strv_destroy(&rig->exec.words);
    for (size_t i = 0; i < rig->host.env.count; i++) {
        char *name AUTO_FREE =
            mem_strndup(rig->host.env.items[i], strcspn(rig->host.env.items[i], "="));
        unsetenv(name);
    }
    setenv("PATH", "/usr/bin:/bin", 1);
    host_close(&rig->host);
}

static void check(struct peer *peer)
{
    if (peer->ups + peer->fails + peer->losts >= peer->wanted)
        loop_stop(peer->rig->loop);
}

static void peer_stage(void *context, enum transport_stage stage)
{
    struct peer *peer = context;
    peer->stage = stage;
    if (stage == STAGE_CONNECT && ++peer->rig->connecting > peer->rig->most_connecting)
        peer->rig->most_connecting = peer->rig->connecting;
}

static void peer_up(void *context, const struct transport_stream *stream)
{
    struct peer *peer = context;
    peer->ups++;
    peer->rig->connecting--;
    peer->stream = *stream;
    check(peer);
}

static void peer_failed(void *context, enum transport_stage stage, const char *why)
{
    struct peer *peer = context;
    peer->fails++;
    peer->rig->connecting--;
    peer->stage = stage;
    snprintf(peer->text, sizeof(peer->text), "%s", why);
    if (peer->hang_up_in_event) {
        transport_hang_up(peer->call);
        peer->call = NULL;
    }
    check(peer);
}

static void peer_lost(void *context, const char *why)
{
    struct peer *peer = context;
    peer->losts++;
    snprintf(peer->text, sizeof(peer->text), "%s", why);
    check(peer);
}

static void peer_note(void *context, enum log_level level, const char *line)
{
    struct peer *peer = context;
    size_t used = strlen(peer->notes);
    snprintf(peer->notes + used, sizeof(peer->notes) - used, "%d:%s\n", (int)level, line);
}

static const struct transport_events events = {peer_stage, peer_up, peer_failed, peer_lost,
                                               peer_note};

static void peer_call(struct peer *peer, struct rig *rig)
{
    *peer = (struct peer){.rig = rig, .target = {.host = "c1", .node = 1}, .wanted = 1};
    peer->call = transport_call(&rig->transport, &peer->target, &events, peer);
    assert_non_null(peer->call);
    assert_int_equal(peer->fails + peer->ups, 0); /* never from within */
}

static void expect_hello(const struct peer *peer)
{
    if (peer->ups == 0)
        fail_msg("%s: %s", transport_stage_name(peer->stage), peer->text);
    struct call call = {.fd = peer->stream.read_fd};
    call_expect_hello(&call);
}

/* Runs one call to its failure. */
static struct peer fail_with(const char *template, bool is_ssh, int64_t limit_ms)
{
    struct rig rig;
    struct peer peer;
    rig_open(&rig, template);
    rig.exec.is_ssh = is_ssh;
    rig.room.limit_ms = limit_ms;
    peer_call(&peer, &rig);
    run_loop(rig.loop);
    assert_int_equal(peer.fails, 1);
    transport_hang_up(peer.call);
    rig_close(&rig);
    return peer;
}

static void test_up(void **state)
{
    (void)state;
    struct rig rig;
    struct peer peer;
    rig_open(&rig, "/bin/sh -c 'echo Authorized use only >&2; shift; exec \"$@\"' rsh %h");
    peer_call(&peer, &rig);
    run_loop(rig.loop);
    expect_hello(&peer);
    assert_int_equal(peer.stage, STAGE_AGENT);
    assert_true(helpers_has(rig.room.helpers, peer.stream.pid));
    assert_false(peer.stream.same_machine);
    assert_string_equal(peer.notes, "3:Authorized use only\n");
    close(peer.stream.read_fd);
    while (helpers_has(rig.room.helpers, peer.stream.pid))
        run_turns(rig.loop, 1);
    assert_int_equal(peer.losts, 0); /* it ended as it should */
    transport_hang_up(peer.call);
    rig_close(&rig);
}

static void test_lost(void **state)
{
    (void)state;
    struct rig rig;
    struct peer peer;
    rig_open(&rig, "/bin/sh -c 'shift; exec \"$@\"' rsh %h");
    peer_call(&peer, &rig);
    run_loop(rig.loop);
    assert_int_equal(peer.ups, 1);
    assert_int_equal(kill(peer.stream.pid, SIGKILL), 0);
    peer.wanted = 2;
    run_loop(rig.loop);
    assert_int_equal(peer.ups + peer.losts, 2);
    assert_non_null(strstr(peer.text, "signal 9"));
    close(peer.stream.read_fd);
    transport_hang_up(peer.call);
    rig_close(&rig);
}

static void test_agent_itself(void **state)
{
    (void)state;
    struct rig rig;
    struct peer peer;
    rig_open(&rig, "'" HVDRUN_AGENT_PROGRAM "'");
    rig.exec.boot_word = NULL;
    rig.exec.same_machine = true;
    peer_call(&peer, &rig);
    run_loop(rig.loop);
    expect_hello(&peer);
    assert_true(peer.stream.same_machine);
    close(peer.stream.read_fd);
    while (helpers_has(rig.room.helpers, peer.stream.pid))
        run_turns(rig.loop, 1);
    transport_hang_up(peer.call);
    rig_close(&rig);
}

/* As mpi-operator's original kubexec.sh, which leaves out -i. */
static void test_stdin_is_not_passed_on(void **state)
{
    (void)state;
    struct peer peer = fail_with("/bin/sh -c 'shift; \"$@\" </dev/null' kubectl", false, 15000);
    assert_int_equal(peer.stage, STAGE_START);
    assert_non_null(strstr(peer.text, "-i"));
}

static void test_ssh_complaints(void **state)
{
    (void)state;
    struct peer peer = fail_with("/bin/sh -c 'echo \"ssh: connect to host c1 port 22: Connection "
                                 "refused\" >&2; exit 255'",
                                 true, 15000);
    assert_int_equal(peer.stage, STAGE_CONNECT);
    assert_non_null(strstr(peer.text, "start sshd"));
    assert_non_null(strstr(peer.text, "port 22: Connection refused"));
}

static void test_other_complaints(void **state)
{
    (void)state;
    struct peer peer =
        fail_with("/bin/sh -c 'echo Error: pods c1 not found >&2; exit 3'", false, 15000);
    assert_int_equal(peer.stage, STAGE_CONNECT);
    assert_string_equal(peer.text, "sh ended with exit status 3: Error: pods c1 not found");
    peer = fail_with("/nonexistent/rsh", false, 15000);
    assert_non_null(strstr(peer.text, "/nonexistent/rsh"));
    peer = fail_with("no-such-command-at-all %h", false, 15000);
    assert_non_null(strstr(peer.text, "not found in PATH"));
    peer = fail_with("sleep 1000 --", false, 15000);
    assert_non_null(strstr(peer.text, "sleep ended with exit status 1"));
}

static void test_deadline(void **state)
{
    (void)state;
    struct peer peer = fail_with("/bin/sh -c 'exec sleep 1000'", false, 100);
    assert_int_equal(peer.stage, STAGE_CONNECT);
    assert_non_null(strstr(peer.text, "no shell"));
}

static void test_window(void **state)
{
    (void)state;
    enum { CALLS = 5 };
    struct rig rig;
    struct peer peers[CALLS];
    rig_open(&rig, "/bin/sh -c 'exit 1'");
    rig.exec.window = 2;
    for (int i = 0; i < CALLS; i++) {
        peer_call(&peers[i], &rig);
        peers[i].hang_up_in_event = i % 2 == 0;
        peers[i].wanted = i == CALLS - 2 ? 1 : 100; /* the last: number 4 was hung up unbegun */
    }
    transport_hang_up(peers[CALLS - 1].call);
    peers[CALLS - 1].call = NULL;
    run_loop(rig.loop);
    run_turns(rig.loop, 3);
    int failed = 0;
    for (int i = 0; i < CALLS; i++) {
        failed += peers[i].fails;
        transport_hang_up(peers[i].call);
    }
    assert_in_range(failed, 3, 4); /* two go on side by side: number 2 may be slower than 3 */
    assert_int_equal(peers[CALLS - 1].fails, 0);
    assert_int_equal(rig.most_connecting, 2);
    rig_close(&rig);
}

/* Hanging up in any state leaves nothing behind and says nothing. */
static void test_hang_up(void **state)
{
    (void)state;
    struct rig rig;
    struct peer peer;
    rig_open(&rig, "/bin/sh -c 'shift; exec \"$@\"' rsh %h");
    for (int turns = 0; turns < 60; turns += 3) {
        peer_call(&peer, &rig);
        peer.wanted = 100;
        run_turns(rig.loop, turns);
        if (peer.ups > 0)
            close(peer.stream.read_fd);
        int before = peer.ups + peer.fails;
        transport_hang_up(peer.call);
        run_turns(rig.loop, 3);
        assert_int_equal(peer.ups + peer.fails, before);
    }
    rig_close(&rig);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_up),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_agent_itself),
        cmocka_unit_test(test_stdin_is_not_passed_on),
        cmocka_unit_test(test_ssh_complaints),
        cmocka_unit_test(test_other_complaints),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_hang_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
