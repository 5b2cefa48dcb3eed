/* SPDX-License-Identifier: Apache-2.0 */
/* Whose process is at the other end: real sockets, and the text of /proc/net/tcp. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "rendezvous/peer.h"

enum { NOBODY = 65534 };

/* connects, and returns both ends */
static void connect_pair(int *server, int *client)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 5), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    *client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(*client, (struct sockaddr *)&address, sizeof(address)), 0);
    *server = accept(listener, NULL, NULL);
    assert_true(*server >= 0);
    close(listener);
}

static void test_own_process(void **state)
{
    (void)state;
    int server, client;
    uid_t uid = 12345;
    struct rendezvous_peer *peer = rendezvous_peer_create();
    for (int i = 0; i < 3; i++) {
        connect_pair(&server, &client);
        assert_int_equal(rendezvous_peer_uid(peer, server, &uid), 0);
        assert_int_equal(uid, geteuid());
        close(client);
        close(server);
    }
    rendezvous_peer_destroy(peer);
    rendezvous_peer_destroy(NULL);
}

/* Where the netlink socket cannot be had, the file is read. */
static void test_without_netlink(void **state)
{
    (void)state;
    int server, client, free_fd = dup(0);
    uid_t uid = 12345;
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)free_fd;
    close(free_fd);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct rendezvous_peer *peer = rendezvous_peer_create();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    connect_pair(&server, &client);
    assert_int_equal(rendezvous_peer_uid(peer, server, &uid), 0);
    assert_int_equal(uid, geteuid());
    close(client);
    close(server);
    rendezvous_peer_destroy(peer);
}

static void test_gone_and_no_socket(void **state)
{
    (void)state;
    int server, client, pair[2];
    uid_t uid;
    struct rendezvous_peer *peer = rendezvous_peer_create();
    connect_pair(&server, &client);
    close(client);
    assert_int_equal(rendezvous_peer_uid(peer, server, &uid), -1);
    close(server);
    assert_int_equal(fd_socketpair(pair), 0);
    assert_int_equal(rendezvous_peer_uid(peer, pair[0], &uid), -1);
    close(pair[0]);
    close(pair[1]);
    rendezvous_peer_destroy(peer);
}

/* The socket belongs to who made it, seen from another user's server. */
static void test_other_user(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 5), 0);
    getsockname(listener, (struct sockaddr *)&address, &length);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        int fd = setuid(NOBODY) == 0 ? socket(AF_INET, SOCK_STREAM, 0) : -1;
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
            _exit(1);
        _exit(read(fd, &byte, 1) == 0 ? 0 : 2); /* until the server closes */
    }
    int server = accept(listener, NULL, NULL), status;
    uid_t uid = 0;
    struct rendezvous_peer *peer = rendezvous_peer_create();
    assert_int_equal(rendezvous_peer_uid(peer, server, &uid), 0);
    assert_int_equal(uid, NOBODY);
    close(server);
    close(listener);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    rendezvous_peer_destroy(peer);
}

static void ends(int fd, struct sockaddr_in *local, struct sockaddr_in *remote)
{
    socklen_t length = sizeof(*local);
    getsockname(fd, (struct sockaddr *)local, &length);
    length = sizeof(*remote);
    getpeername(fd, (struct sockaddr *)remote, &length);
}

static void test_proc_file_of_this_machine(void **state)
{
    (void)state;
    int server, client;
    uid_t uid = 12345;
    struct sockaddr_in local, remote;
    AUTO_BUF struct buf text = BUF_INIT(16 * 1024 * 1024);
    connect_pair(&server, &client);
    ends(client, &local, &remote);
    assert_int_equal(fd_read_file("/proc/net/tcp", &text, NULL), 0);
    assert_int_equal(rendezvous_peer_find(buf_text(&text), text.length, &local, &remote, &uid), 0);
    assert_int_equal(uid, geteuid());
    local.sin_port = remote.sin_port;
    assert_int_equal(rendezvous_peer_find(buf_text(&text), text.length, &local, &remote, &uid), -1);
    close(client);
    close(server);
}

static void test_proc_text(void **state)
{
    (void)state;
    struct sockaddr_in local = {.sin_port = htons(0x1f90)}, remote = {.sin_port = htons(0xc350)};
    local.sin_addr.s_addr = 0x0100007f;
    remote.sin_addr.s_addr = 0x0200007f;
    uid_t uid = 7;
    static const char good[] =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
        "   0: 0200007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1 0 1\n"
        "   1: 0100007F:1F90 0200007F:C350 01 00000000:00000000 00:00000000 00000000  1003 0 9";
    assert_int_equal(rendezvous_peer_find(good, sizeof(good) - 1, &local, &remote, &uid), 0);
    assert_int_equal(uid, 1003);
    static const char *const bad[] = {
        "",
        "\n\n",
        "   1: 0100007F:1F90 0200007F:C350",
        "   1: 0100007F:1F90 0200007F:C350 01 a b c",
        "   1: 0100007F:1F90 0200007F:C350 01 a b c x",
        "0100007F:1F90 0200007F:C35",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(rendezvous_peer_find(bad[i], strlen(bad[i]), &local, &remote, &uid), -1);
    for (size_t cut = 0; cut + 11 < sizeof(good); cut++)
        rendezvous_peer_find(good, cut, &local, &remote, &uid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_process),
        cmocka_unit_test(test_without_netlink),
        cmocka_unit_test(test_gone_and_no_socket),
        cmocka_unit_test(test_other_user),
        cmocka_unit_test(test_proc_file_of_this_machine),
        cmocka_unit_test(test_proc_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
