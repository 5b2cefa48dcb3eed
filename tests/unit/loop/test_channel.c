/* SPDX-License-Identifier: Apache-2.0 */
/* How the members of a process set meet, while strangers try to be one of them or to be in the way.
 * All ranks are threads of this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "loop/channel.h"
#include "loop/channel_invitation.h"
#include "unit.h"

enum { LIMIT_MS = 60000, SHORT_MS = 3000, FLOOD = 1100, HELD = 200, RANKS_MAX = 3 };

/* The engine of this test passes the invitation from the root to the members. */
struct engine_comm {
    struct meeting *meeting;
    int rank;
};

struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t told;
    struct invitation invitation, points;
    bool is_told;
    int stop, size;
    const char *interface;
    int64_t timeout_ms;
    void (*at_root)(struct meeting *meeting);                            /* when the root listens */
    void (*at_member)(struct meeting *meeting, struct invitation *told); /* what it is told */
    struct engine_comm comms[RANKS_MAX];
    struct channel *channels[RANKS_MAX];
    enum hvd_status statuses[RANKS_MAX];
    struct error errors[RANKS_MAX];
    pthread_t threads[RANKS_MAX];
    /* of the attacker */
    int listener, clients[RANKS_MAX];
    bool other_points; /* the members know them, too */
    size_t from_root;  /* bytes that the root has sent to it */
    pthread_t attacker;
    atomic_int strangers;
    atomic_bool is_over;
};

static enum hvd_status alltoallv(struct engine_comm *comm, const void *in, const size_t *send,
                                 void *out, const size_t *receive, int64_t timeout_ms,
                                 struct error *err)
{
    struct meeting *meeting = comm->meeting;
    struct invitation *told = out;
    (void)send, (void)timeout_ms, (void)err;
    assert_int_equal(receive[0], sizeof *told);
    pthread_mutex_lock(&meeting->lock);
    if (comm->rank == 0) {
        memcpy(&meeting->points, in, sizeof meeting->points);
        if (meeting->at_root != NULL)
            meeting->at_root(meeting);
        memcpy(&meeting->invitation, in, sizeof meeting->invitation);
        meeting->is_told = true;
        pthread_cond_broadcast(&meeting->told);
    }
    while (!meeting->is_told)
        pthread_cond_wait(&meeting->told, &meeting->lock);
    *told = meeting->invitation;
    if (comm->rank != 0 && meeting->at_member != NULL)
        meeting->at_member(meeting, told);
    pthread_mutex_unlock(&meeting->lock);
    return HVD_OK;
}

static const struct engine engine = {.name = "test", .alltoallv = alltoallv};

static void *open_one(void *context)
{
    struct engine_comm *comm = context;
    struct meeting *meeting = comm->meeting;
    static const int ranks[RANKS_MAX] = {0, 1, 2};
    struct channel_setup setup = {
        .set = {&engine, comm, comm->rank, meeting->size, meeting->timeout_ms},
        .ranks = ranks,
        .interface = meeting->interface,
        .stop = meeting->stop};
    meeting->statuses[comm->rank] =
        channel_open(&setup, &meeting->channels[comm->rank], &meeting->errors[comm->rank]);
    return NULL;
}

static void begin(struct meeting *meeting, int rank)
{
    meeting->comms[rank] = (struct engine_comm){meeting, rank};
    assert_int_equal(pthread_create(&meeting->threads[rank], NULL, open_one, &meeting->comms[rank]),
                     0);
}

/* The root listens when it returns. */
static void begin_root(struct meeting *meeting)
{
    begin(meeting, 0);
    pthread_mutex_lock(&meeting->lock);
    while (!meeting->is_told)
        pthread_cond_wait(&meeting->told, &meeting->lock);
    pthread_mutex_unlock(&meeting->lock);
}

static void join_all(struct meeting *meeting)
{
    for (int rank = 0; rank < meeting->size; rank++)
        pthread_join(meeting->threads[rank], NULL);
}

static int meeting_setup(void **state)
{
    struct meeting *meeting = calloc(1, sizeof *meeting);
    pthread_mutex_init(&meeting->lock, NULL);
    pthread_cond_init(&meeting->told, NULL);
    meeting->stop = eventfd(0, EFD_CLOEXEC);
    meeting->size = 2;
    meeting->interface = "lo";
    meeting->timeout_ms = LIMIT_MS;
    meeting->listener = -1;
    for (int i = 0; i < RANKS_MAX; i++)
        meeting->clients[i] = -1;
    *state = meeting;
    return 0;
}

static int meeting_teardown(void **state)
{
    struct meeting *meeting = *state;
    for (int i = 0; i < RANKS_MAX; i++) {
        channel_close(meeting->channels[i]);
        fd_close(&meeting->clients[i]);
    }
    fd_close(&meeting->listener);
    fd_close(&meeting->stop);
    pthread_mutex_destroy(&meeting->lock);
    pthread_cond_destroy(&meeting->told);
    free(meeting);
    return 0;
}

/* Each of the two hears the other one. */
static void talk(struct meeting *meeting, int one, int other)
{
    AUTO_BUF struct buf message = BUF_INIT(100);
    for (int turn = 0; turn < 2; turn++) {
        struct channel *to = meeting->channels[turn == 0 ? other : one];
        struct error err = ERROR_INIT;
        int from = -1, taken = 0;
        assert_int_equal(channel_send(meeting->channels[turn == 0 ? one : other],
                                      turn == 0 ? other : one, "word", 4, &err),
                         0);
        while (taken == 0) {
            assert_int_equal(channel_wait(to, -1, &err), 0);
            taken = channel_take(to, &from, &message, &err);
        }
        assert_int_equal(taken, 1);
        assert_int_equal(from, turn == 0 ? one : other);
        assert_string_equal(buf_text(&message), "word");
    }
}

static void all_are_there(struct meeting *meeting)
{
    for (int rank = 0; rank < meeting->size; rank++)
        assert_int_equal(meeting->statuses[rank], HVD_OK);
    for (int rank = 1; rank < meeting->size; rank++)
        talk(meeting, 0, rank);
}

/* ---- Strangers ------------------------------------------------------------------------------- */

/* Waits in recv() and connect() for LIMIT_MS at most. */
static int client(void)
{
    const struct timeval limit = {.tv_sec = LIMIT_MS / 1000};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

static struct sockaddr_in name_of(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* The first point of the root on this machine is 127.0.0.1. */
static void connect_to_root(const struct meeting *meeting, int fd)
{
    struct sockaddr_in name = name_of(meeting->points.points[0].port);
    assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof name), 0);
}

static bool receive_all(int fd, void *bytes, size_t length)
{
    return recv(fd, bytes, length, MSG_WAITALL) == (ssize_t)length;
}

static bool is_closed(int fd)
{
    char byte;
    ssize_t got = recv(fd, &byte, 1, 0);
    return got == 0 || (got < 0 && errno == ECONNRESET);
}

/* The attacker takes the place of the root's first point, from where the members look. */
static void attacker_listens(struct meeting *meeting, void *(*attack)(void *))
{
    struct sockaddr_in name = name_of(0);
    meeting->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(meeting->listener, (struct sockaddr *)&name, sizeof name), 0);
    assert_int_equal(listen(meeting->listener, 8), 0);
    assert_int_equal(pthread_create(&meeting->attacker, NULL, attack, meeting), 0);
}

/* The last point may be one of this host, which a member likes best. */
static void forget_local(struct invitation *told)
{
    told->count -= told->points[told->count - 1].kind == POINT_LOCAL ? 1 : 0;
}

static void lead_to_attacker(struct meeting *meeting, struct invitation *told)
{
    struct sockaddr_in name;
    socklen_t length = sizeof name;
    getsockname(meeting->listener, (struct sockaddr *)&name, &length);
    forget_local(told);
    told->points[0].port = name.sin_port;
    told->count = meeting->other_points ? told->count : 1;
}

/* Passes on what both say, until one of them ends it. Counts what the root says. */
static void relay(struct meeting *meeting, int member, int root)
{
    for (;;) {
        char bytes[4096];
        struct pollfd polls[2] = {{.fd = member, .events = POLLIN}, {.fd = root, .events = POLLIN}};
        if (poll(polls, 2, LIMIT_MS) <= 0)
            break;
        bool is_root = polls[1].revents != 0;
        ssize_t got = recv(is_root ? root : member, bytes, sizeof bytes, 0);
        if (got <= 0 || send(is_root ? member : root, bytes, (size_t)got, MSG_NOSIGNAL) != got)
            break;
        meeting->from_root += is_root ? (size_t)got : 0;
    }
    fd_close(&member);
    fd_close(&root);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void test_all_meet(void **state)
{
    struct meeting *meeting = *state;
    meeting->size = 3;
    for (int rank = 0; rank < 3; rank++)
        begin(meeting, rank);
    join_all(meeting);
    all_are_there(meeting);
}

/* Without the name of an interface. */
static void test_any_interface(void **state)
{
    struct meeting *meeting = *state;
    meeting->interface = NULL;
    begin(meeting, 0);
    begin(meeting, 1);
    join_all(meeting);
    all_are_there(meeting);
}

static void find_fd(void *context, int fd, int rank)
{
    (void)rank;
    *(int *)context = fd;
}

static int family_of(const struct channel *channel)
{
    struct sockaddr_storage name;
    socklen_t length = sizeof name;
    int fd = -1;
    channel_each(channel, find_fd, &fd);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &length), 0);
    return name.ss_family;
}

/* Members of the root's host do not need the network. */
static void test_on_one_host(void **state)
{
    struct meeting *meeting = *state;
    begin(meeting, 0);
    begin(meeting, 1);
    join_all(meeting);
    all_are_there(meeting);
    assert_int_equal(family_of(meeting->channels[0]), AF_UNIX);
    assert_int_equal(family_of(meeting->channels[1]), AF_UNIX);
}

static void hide_name(struct meeting *meeting, struct invitation *told)
{
    (void)meeting;
    assert_true(told->points[told->count - 1].kind == POINT_LOCAL);
    told->points[told->count - 1].address[0] ^= 1; /* as on another host: nobody has the name */
}

static void test_on_another_host(void **state)
{
    struct meeting *meeting = *state;
    meeting->at_member = hide_name;
    begin(meeting, 0);
    begin(meeting, 1);
    join_all(meeting);
    all_are_there(meeting);
    assert_int_equal(family_of(meeting->channels[1]), AF_INET);
}

static void leave_ipv6(struct meeting *meeting, struct invitation *told)
{
    (void)meeting;
    forget_local(told);
    told->points[0].port = 0; /* nobody is there */
}

static void test_ipv6_alone(void **state)
{
    struct meeting *meeting = *state;
    begin_root(meeting);
    forget_local(&meeting->points);
    bool there = meeting->points.count > 1;
    if (there)
        meeting->at_member = leave_ipv6;
    begin(meeting, 1);
    join_all(meeting);
    if (!there)
        skip(); /* no IPv6 on this machine */
    all_are_there(meeting);
}

static void test_only_at_the_interface(void **state)
{
    struct meeting *meeting = *state;
    begin_root(meeting);
    forget_local(&meeting->points);
    for (size_t i = 0; i < meeting->points.count; i++) {
        const struct meeting_point *point = &meeting->points.points[i];
        struct in6_addr six;
        memcpy(&six, point->address, sizeof six);
        assert_true(point->kind == POINT_IPV6 ? IN6_IS_ADDR_LOOPBACK(&six)
                                              : point->address[0] == 127);
    }
    begin(meeting, 1);
    join_all(meeting);
    all_are_there(meeting);
}

static void test_an_interface_without_address(void **state)
{
    struct meeting *meeting = *state;
    meeting->interface = "nowhere0";
    begin_root(meeting);
    begin(meeting, 1);
    join_all(meeting);
    assert_int_equal(meeting->points.count, 0);
    assert_int_equal(meeting->statuses[0], HVD_ERR_ENGINE);
    assert_string_equal(meeting->errors[0].text,
                        "cannot listen for the members of a process set: the network interface "
                        "'nowhere0' of HOROVOD_GLOO_IFACE has no address here");
    assert_int_not_equal(meeting->statuses[1], HVD_OK);
}

static int give_labelled_address(void)
{
    struct ifreq up = {.ifr_name = "lo"}, label = {.ifr_name = "lo:1"};
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000009)};
    AUTO_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    up.ifr_flags = IFF_UP | IFF_LOOPBACK;
    memcpy(&label.ifr_addr, &name, sizeof name);
    return ioctl(fd, SIOCSIFFLAGS, &up) == 0 && ioctl(fd, SIOCSIFADDR, &label) == 0 ? 0 : -1;
}

/* In a network of its own: 0 if the root listens at the address with a label, and 2 without one. */
static int listen_at_label(struct meeting *meeting)
{
    bool found = false;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 || give_labelled_address() != 0)
        return 2;
    begin_root(meeting);
    for (size_t i = 0; i < meeting->points.count; i++)
        found = found || meeting->points.points[i].address[3] == 9;
    return found ? 0 : 1;
}

/* An address may have a label (lo:1), which is not the name of its interface. */
static void test_a_labelled_address(void **state)
{
    struct meeting *meeting = *state;
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(listen_at_label(meeting));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2)
        skip(); /* no namespaces here */
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* More than there are places. The oldest ones have to go, and a member that comes late gets in. */
static void test_silent_strangers(void **state)
{
    struct meeting *meeting = *state;
    struct rlimit old, more;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    more = old;
    more.rlim_cur = 3 * FLOOD;
    if (old.rlim_max < more.rlim_cur)
        skip();
    if (old.rlim_cur < more.rlim_cur)
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &more), 0);
    int strangers[FLOOD];
    begin_root(meeting);
    for (int i = 0; i < FLOOD; i++) {
        strangers[i] = client();
        connect_to_root(meeting, strangers[i]);
    }
    begin(meeting, 1);
    join_all(meeting);
    for (int i = 0; i < FLOOD; i++)
        fd_close(&strangers[i]);
    setrlimit(RLIMIT_NOFILE, &old);
    all_are_there(meeting);
}

static void *flood(void *context)
{
    struct meeting *meeting = context;
    int held[HELD];
    memset(held, 0xff, sizeof held);
    for (size_t i = 0; !atomic_load(&meeting->is_over); i++) {
        struct sockaddr_in name = name_of(meeting->points.points[0].port);
        int *place = &held[i % HELD];
        fd_close(place);
        *place = client();
        if (connect(*place, (struct sockaddr *)&name, sizeof name) == 0)
            atomic_fetch_add(&meeting->strangers, 1);
    }
    for (size_t i = 0; i < HELD; i++)
        fd_close(&held[i]);
    return NULL;
}

/* They come again and again, as fast as they can, before the member comes and while it does. */
static void test_a_flood_that_goes_on(void **state)
{
    struct meeting *meeting = *state;
    begin_root(meeting);
    assert_int_equal(pthread_create(&meeting->attacker, NULL, flood, meeting), 0);
    while (atomic_load(&meeting->strangers) < FLOOD)
        sched_yield();
    begin(meeting, 1);
    join_all(meeting);
    atomic_store(&meeting->is_over, true);
    pthread_join(meeting->attacker, NULL);
    all_are_there(meeting);
}

/* Also one that begins as a member does. */
static void test_a_silent_stranger_has_to_go(void **state)
{
    struct meeting *meeting = *state;
    uint8_t nonce[NONCE_SIZE];
    begin_root(meeting);
    for (int i = 0; i < 2; i++) {
        meeting->clients[i] = client();
        connect_to_root(meeting, meeting->clients[i]);
    }
    send(meeting->clients[1], "\1\0\0\0", 4, MSG_NOSIGNAL);
    for (int i = 0; i < 2; i++) {
        assert_true(receive_all(meeting->clients[i], nonce, NONCE_SIZE));
        assert_true(is_closed(meeting->clients[i]));
    }
    begin(meeting, 1);
    join_all(meeting);
    all_are_there(meeting);
}

/* A stranger without the secret, and a member with a rank that the set does not have. */
static void test_a_wrong_hello(void **state)
{
    struct meeting *meeting = *state;
    static const uint32_t wrong[] = {1, 0, 2, UINT32_MAX};
    begin_root(meeting);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct introduction introduction = {.rank = wrong[i]};
        struct invitation known = meeting->points;
        uint8_t hello[HELLO_SIZE];
        known.secret[0] ^= i == 0 ? 1 : 0;
        AUTO_FD int fd = client();
        connect_to_root(meeting, fd);
        assert_true(receive_all(fd, introduction.root_nonce, NONCE_SIZE));
        hello_write(&known, &introduction, hello);
        assert_int_equal(send(fd, hello, HELLO_SIZE, MSG_NOSIGNAL), HELLO_SIZE);
        assert_true(is_closed(fd));
    }
    begin(meeting, 1);
    join_all(meeting);
    all_are_there(meeting);
}

/* The right hello of rank 1, and whether the root has sent the guest away without a welcome. */
static bool is_refused(const struct meeting *meeting, int fd, const uint8_t *nonce, bool says_more)
{
    struct introduction introduction = {.rank = 1};
    uint8_t words[HELLO_SIZE + 1] = {0};
    memcpy(introduction.root_nonce, nonce, NONCE_SIZE);
    hello_write(&meeting->points, &introduction, words);
    size_t length = HELLO_SIZE + (says_more ? 1 : 0);
    assert_int_equal(send(fd, words, length, MSG_NOSIGNAL | MSG_MORE), length);
    if (!says_more)
        shutdown(fd, SHUT_WR); /* in the same packet */
    return is_closed(fd);
}

/* With the right hello, but not as a member behaves: it says more, or has closed. */
static void test_no_member_speaks_again(void **state)
{
    struct meeting *meeting = *state;
    uint8_t nonce[NONCE_SIZE];
    begin_root(meeting);
    for (int i = 0; i < 2; i++) {
        AUTO_FD int fd = client();
        connect_to_root(meeting, fd);
        assert_true(receive_all(fd, nonce, NONCE_SIZE));
        assert_true(is_refused(meeting, fd, nonce, i == 0));
    }
    begin(meeting, 1);
    join_all(meeting);
    all_are_there(meeting);
}

/* Its time is over when its hello comes. */
static void test_a_late_hello(void **state)
{
    struct meeting *meeting = *state;
    const int64_t second_ns = 1000000000;
    struct introduction introduction = {.rank = 1};
    uint8_t hello[HELLO_SIZE];
    AUTO_FD int fd = client();
    unit_clock_stop(100 * second_ns, 100 * second_ns);
    begin_root(meeting);
    connect_to_root(meeting, fd);
    assert_true(receive_all(fd, introduction.root_nonce, NONCE_SIZE));
    unit_clock_stop(103 * second_ns, 103 * second_ns);
    hello_write(&meeting->points, &introduction, hello);
    send(fd, hello, HELLO_SIZE, MSG_NOSIGNAL);
    bool closed = is_closed(fd);
    begin(meeting, 1);
    join_all(meeting);
    unit_clock_run();
    assert_true(closed);
    all_are_there(meeting);
}

static void *relay_and_repeat(void *context)
{
    struct meeting *meeting = context;
    uint8_t nonce[NONCE_SIZE], hello[HELLO_SIZE], welcome[HMAC_SIZE];
    int member = accept(meeting->listener, NULL, NULL), root = client(), again = client();
    connect_to_root(meeting, root);
    assert_true(receive_all(root, nonce, NONCE_SIZE));
    assert_int_equal(send(member, nonce, NONCE_SIZE, MSG_NOSIGNAL), NONCE_SIZE);
    assert_true(receive_all(member, hello, HELLO_SIZE));

    connect_to_root(meeting, again);
    assert_true(receive_all(again, nonce, NONCE_SIZE));
    assert_int_equal(send(again, hello, HELLO_SIZE, MSG_NOSIGNAL), HELLO_SIZE);
    assert_true(is_closed(again));
    fd_close(&again);

    assert_int_equal(send(root, hello, HELLO_SIZE, MSG_NOSIGNAL), HELLO_SIZE);
    assert_true(receive_all(root, welcome, HMAC_SIZE));
    assert_int_equal(send(member, welcome, HMAC_SIZE, MSG_NOSIGNAL), HMAC_SIZE);
    relay(meeting, member, root);
    return NULL;
}

/* What a member has said on one connection is worth nothing on another one. */
static void test_a_repeated_hello(void **state)
{
    struct meeting *meeting = *state;
    attacker_listens(meeting, relay_and_repeat);
    meeting->at_member = lead_to_attacker;
    begin_root(meeting);
    begin(meeting, 1);
    join_all(meeting);
    all_are_there(meeting);
    for (int rank = 0; rank < 2; rank++) {
        channel_close(meeting->channels[rank]);
        meeting->channels[rank] = NULL;
    }
    pthread_join(meeting->attacker, NULL);
}

static void *reflect(void *context)
{
    struct meeting *meeting = context;
    uint8_t nonce[NONCE_SIZE] = {0}, hello[HELLO_SIZE];
    int member = accept(meeting->listener, NULL, NULL), root = client();
    assert_int_equal(send(member, nonce, NONCE_SIZE, MSG_NOSIGNAL), NONCE_SIZE);
    assert_true(receive_all(member, hello, HELLO_SIZE));
    send(member, hello + HELLO_SIZE - HMAC_SIZE, HMAC_SIZE, MSG_NOSIGNAL);
    assert_true(is_closed(member));
    fd_close(&member);
    member = accept(meeting->listener, NULL, NULL); /* it comes again */
    connect_to_root(meeting, root);
    relay(meeting, member, root);
    return NULL;
}

/* Who listens where a member looks for the root is not the root. */
static void test_a_reflected_hello(void **state)
{
    struct meeting *meeting = *state;
    attacker_listens(meeting, reflect);
    meeting->at_member = lead_to_attacker;
    begin_root(meeting);
    begin(meeting, 1);
    join_all(meeting);
    all_are_there(meeting);
    for (int rank = 0; rank < 2; rank++) {
        channel_close(meeting->channels[rank]);
        meeting->channels[rank] = NULL;
    }
    pthread_join(meeting->attacker, NULL);
}

static void *relay_to_another_point(void *context)
{
    struct meeting *meeting = context;
    struct sockaddr_in6 name = {.sin6_family = AF_INET6,
                                .sin6_port = meeting->points.points[1].port,
                                .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int member = accept(meeting->listener, NULL, NULL);
    int root = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(root, (struct sockaddr *)&name, sizeof name), 0);
    relay(meeting, member, root);
    return NULL;
}

/* An attacker at an address that is another machine from where the member is, as that of a bridge,
 * cannot be between the two: it reaches the root only at another point. */
static void test_a_relay_to_another_point(void **state)
{
    struct meeting *meeting = *state;
    begin_root(meeting);
    forget_local(&meeting->points);
    if (meeting->points.count < 2) { /* no IPv6 */
        begin(meeting, 1);
        join_all(meeting);
        skip();
    }
    attacker_listens(meeting, relay_to_another_point);
    meeting->other_points = true;
    meeting->at_member = lead_to_attacker;
    begin(meeting, 1);
    join_all(meeting);
    pthread_join(meeting->attacker, NULL);
    assert_int_equal(meeting->from_root, NONCE_SIZE); /* it did not welcome the relay */
    all_are_there(meeting);
}

/* ---- Without descriptors --------------------------------------------------------------------- */

static void leave_descriptors(rlim_t count)
{
    struct rlimit limit;
    int next = dup(STDERR_FILENO);
    close(next);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = (rlim_t)next + count;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void leave_none(struct meeting *meeting)
{
    connect_to_root(meeting, meeting->clients[0]);
    leave_descriptors(0);
}

static void test_no_descriptor(void **state)
{
    struct meeting *meeting = *state;
    struct rlimit old;
    meeting->at_root = leave_none;
    meeting->timeout_ms = SHORT_MS;
    meeting->clients[0] = client();
    getrlimit(RLIMIT_NOFILE, &old);
    meeting->comms[0] = (struct engine_comm){meeting, 0};
    open_one(&meeting->comms[0]);
    setrlimit(RLIMIT_NOFILE, &old);
    assert_int_equal(meeting->statuses[0], HVD_ERR_ENGINE);
    assert_string_equal(
        meeting->errors[0].text,
        "cannot accept the members of a process set: Too many open files; raise the "
        "limit of open files (ulimit -n)");
}

static void *answer(void *context)
{
    struct meeting *meeting = context;
    struct introduction introduction = {.rank = 1};
    uint8_t hello[HELLO_SIZE], welcome[HMAC_SIZE];
    int fd = meeting->clients[2];
    assert_true(receive_all(fd, introduction.root_nonce, NONCE_SIZE));
    hello_write(&meeting->points, &introduction, hello);
    assert_int_equal(send(fd, hello, HELLO_SIZE, MSG_NOSIGNAL), HELLO_SIZE);
    assert_true(receive_all(fd, welcome, HMAC_SIZE));
    assert_true(welcome_is_right(&meeting->points, &introduction, welcome));
    return NULL;
}

static void leave_one(struct meeting *meeting)
{
    for (int i = 0; i < 3; i++)
        connect_to_root(meeting, meeting->clients[i]);
    leave_descriptors(1);
    assert_int_equal(pthread_create(&meeting->attacker, NULL, answer, meeting), 0);
}

/* A silent stranger has the last descriptor. It has to give it up for the next one. */
static void test_the_last_descriptor(void **state)
{
    struct meeting *meeting = *state;
    struct rlimit old;
    meeting->at_root = leave_one;
    for (int i = 0; i < 3; i++)
        meeting->clients[i] = client();
    getrlimit(RLIMIT_NOFILE, &old);
    meeting->comms[0] = (struct engine_comm){meeting, 0};
    open_one(&meeting->comms[0]);
    setrlimit(RLIMIT_NOFILE, &old);
    pthread_join(meeting->attacker, NULL);
    assert_int_equal(meeting->statuses[0], HVD_OK);
}

/* ---- The end --------------------------------------------------------------------------------- */

static void test_stop(void **state)
{
    struct meeting *meeting = *state;
    const uint64_t one = 1;
    meeting->size = 3; /* and rank 2 does not come */
    begin_root(meeting);
    begin(meeting, 1);
    assert_int_equal(write(meeting->stop, &one, sizeof one), sizeof one);
    pthread_join(meeting->threads[0], NULL);
    pthread_join(meeting->threads[1], NULL);
    assert_int_equal(meeting->statuses[0], HVD_ERR_PEER_LOST);
    assert_string_equal(meeting->errors[0].text,
                        "a rank was lost before the members of a process set had met");
}

static void invite_too_many(struct meeting *meeting, struct invitation *told)
{
    (void)meeting;
    told->count = POINTS_MAX + 1;
}

/* The root waits for the member, which has given up, until it is told to stop. */
static void test_an_invitation_to_too_many_points(void **state)
{
    struct meeting *meeting = *state;
    const uint64_t one = 1;
    meeting->at_member = invite_too_many;
    begin_root(meeting);
    begin(meeting, 1);
    pthread_join(meeting->threads[1], NULL);
    assert_int_equal(write(meeting->stop, &one, sizeof one), sizeof one);
    pthread_join(meeting->threads[0], NULL);
    assert_int_equal(meeting->statuses[1], HVD_ERR_PEER_LOST);
    assert_string_equal(meeting->errors[1].text,
                        "the root of a process set could not invite its members");
}

/* It is not a connection that ends without a word. */
static void test_a_message_that_is_too_long(void **state)
{
    struct meeting *meeting = *state;
    AUTO_BUF struct buf message = BUF_INIT(100);
    struct error err = ERROR_INIT;
    int fd = -1, from, taken = 0;
    begin(meeting, 0);
    begin(meeting, 1);
    join_all(meeting);
    all_are_there(meeting);
    channel_each(meeting->channels[1], find_fd, &fd);
    assert_int_equal(send(fd, "\377\377\377\377", 4, MSG_NOSIGNAL), 4);
    while (taken == 0) {
        assert_int_equal(channel_wait(meeting->channels[0], -1, &err), 0);
        taken = channel_take(meeting->channels[0], &from, &message, &err);
    }
    assert_int_equal(taken, -1);
    assert_string_equal(err.text, "the connection to rank 1 ended: its message is too long");
    assert_int_equal(channel_take(meeting->channels[0], &from, &message, &err), 0);
    assert_true(channel_is_alone(meeting->channels[0]));
}

#define MEETING(test) cmocka_unit_test_setup_teardown(test, meeting_setup, meeting_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MEETING(test_all_meet),
        MEETING(test_any_interface),
        MEETING(test_on_one_host),
        MEETING(test_on_another_host),
        MEETING(test_ipv6_alone),
        MEETING(test_only_at_the_interface),
        MEETING(test_an_interface_without_address),
        MEETING(test_a_labelled_address),
        MEETING(test_silent_strangers),
        MEETING(test_a_flood_that_goes_on),
        MEETING(test_a_silent_stranger_has_to_go),
        MEETING(test_a_wrong_hello),
        MEETING(test_no_member_speaks_again),
        MEETING(test_a_late_hello),
        MEETING(test_a_repeated_hello),
        MEETING(test_a_reflected_hello),
        MEETING(test_a_relay_to_another_point),
        MEETING(test_no_descriptor),
        MEETING(test_the_last_descriptor),
        MEETING(test_stop),
        MEETING(test_an_invitation_to_too_many_points),
        MEETING(test_a_message_that_is_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
