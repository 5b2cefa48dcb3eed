/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/peer.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"

enum { PROC_FILE_MAX = 16 * 1024 * 1024, PROC_LINE_MAX = 256, PROC_READINGS = 3 };

struct rendezvous_peer {
    int netlink; /* -1: only /proc */
    uint32_t sequence;
};

struct rendezvous_peer *rendezvous_peer_create(void)
{
    struct rendezvous_peer *peer = mem_alloc(sizeof(*peer));
    peer->netlink =
        socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    return peer;
}

void rendezvous_peer_destroy(struct rendezvous_peer *peer)
{
    if (peer == NULL)
        return;
    fd_close(&peer->netlink);
    free(peer);
}

static int send_query(struct rendezvous_peer *peer, const struct sockaddr_in *local,
                      const struct sockaddr_in *remote)
{
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 query;
    } message;
    memset(&message, 0, sizeof(message));
    message.header.nlmsg_len = sizeof(message);
    message.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    message.header.nlmsg_flags = NLM_F_REQUEST;
    message.header.nlmsg_seq = ++peer->sequence;
    message.query.sdiag_family = AF_INET;
    message.query.sdiag_protocol = IPPROTO_TCP;
    message.query.idiag_states = UINT32_MAX;
    message.query.id.idiag_sport = local->sin_port;
    message.query.id.idiag_dport = remote->sin_port;
    message.query.id.idiag_src[0] = local->sin_addr.s_addr;
    message.query.id.idiag_dst[0] = remote->sin_addr.s_addr;
    message.query.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
    message.query.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    return fd_send_all(peer->netlink, &message, sizeof(message));
}

/* 1: found, 0: there is no such socket, -1: this way does not work. The kernel answers within the
 * send, so an empty queue means that there will be no answer. */
static int receive_answer(struct rendezvous_peer *peer, const struct sockaddr_in *local,
                          const struct sockaddr_in *remote, uid_t *uid)
{
    union {
        struct nlmsghdr header;
        char bytes[2048];
    } answer;
    for (;;) {
        ssize_t got = recv(peer->netlink, &answer, sizeof(answer), 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < (ssize_t)sizeof(answer.header) || (size_t)got < answer.header.nlmsg_len)
            return -1;
        if (answer.header.nlmsg_seq != peer->sequence)
            continue; /* left over from an earlier question */
        if (answer.header.nlmsg_type == NLMSG_ERROR) {
            struct nlmsgerr *failure = NLMSG_DATA(&answer.header);
            bool absent = answer.header.nlmsg_len >= NLMSG_LENGTH(sizeof(*failure)) &&
                          failure->error == -ENOENT;
            return absent ? 0 : -1;
        }
        if (answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
            answer.header.nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
            return -1;
        /* The kernel also finds a listener on this port when the connection itself has gone, and
         * sockets that no process holds any longer, which have no inode and no true owner. */
        struct inet_diag_msg *found = NLMSG_DATA(&answer.header);
        if (found->idiag_inode == 0 || found->id.idiag_sport != local->sin_port ||
            found->id.idiag_dport != remote->sin_port ||
            found->id.idiag_src[0] != local->sin_addr.s_addr ||
            found->id.idiag_dst[0] != remote->sin_addr.s_addr)
            return 0;
        *uid = found->idiag_uid;
        return 1;
    }
}

/* One line: "  12: 0100007F:1F90 0100007F:C350 01 tx:rx tr:when retrnsmt uid ...". Addresses are
 * the network-order bytes printed as one number of this machine, ports are plain numbers. */
static bool line_matches(const char *line, const struct sockaddr_in *local,
                         const struct sockaddr_in *remote, uid_t *uid)
{
    char ends[64];
    snprintf(ends, sizeof(ends), " %08" PRIX32 ":%04X %08" PRIX32 ":%04X ", local->sin_addr.s_addr,
             ntohs(local->sin_port), remote->sin_addr.s_addr, ntohs(remote->sin_port));
    const char *place = strstr(line, ends);
    if (place == NULL)
        return false;
    place += strlen(ends);
    for (int skip = 0; skip < 4; skip++) { /* st, tx:rx, tr:when, retrnsmt */
        place += strspn(place, " ");
        place += strcspn(place, " ");
    }
    char *end = NULL;
    errno = 0;
    unsigned long value = strtoul(place, &end, 10);
    if (end == place || errno != 0 || value > UINT32_MAX)
        return false;
    *uid = (uid_t)value;
    return true;
}

int rendezvous_peer_find(const char *text, size_t length, const struct sockaddr_in *local,
                         const struct sockaddr_in *remote, uid_t *uid)
{
    const char *end = text + length, *at;
    while (text_next_line(&text, end, &at, &length)) {
        char line[PROC_LINE_MAX] = "";
        memcpy(line, at, length < PROC_LINE_MAX ? length : 0);
        if (line_matches(line, local, remote, uid))
            return 0;
    }
    return -1;
}

/* While other sockets come and go, one reading of the file may miss a line. */
static int find_in_proc(const struct sockaddr_in *local, const struct sockaddr_in *remote,
                        uid_t *uid)
{
    int result = -1;
    for (int tries = 0; tries < PROC_READINGS && result < 0; tries++) {
        AUTO_BUF struct buf text = BUF_INIT(PROC_FILE_MAX);
        if (fd_read_file("/proc/net/tcp", &text, NULL) < 0)
            return -1;
        result = rendezvous_peer_find(buf_text(&text), text.length, local, remote, uid);
    }
    return result;
}

int rendezvous_peer_uid(struct rendezvous_peer *peer, int fd, uid_t *uid)
{
    /* Seen from the peer: its local end is the address that we call remote. */
    struct sockaddr_in ours, theirs;
    socklen_t ours_length = sizeof(ours), theirs_length = sizeof(theirs);
    if (getsockname(fd, (struct sockaddr *)&ours, &ours_length) < 0 ||
        getpeername(fd, (struct sockaddr *)&theirs, &theirs_length) < 0 ||
        ours.sin_family != AF_INET || theirs.sin_family != AF_INET)
        return -1;
    int found = -1;
    if (peer->netlink >= 0 && send_query(peer, &theirs, &ours) == 0)
        found = receive_answer(peer, &theirs, &ours, uid);
    if (found >= 0)
        return found > 0 ? 0 : -1;
    fd_close(&peer->netlink);
    return find_in_proc(&theirs, &ours, uid);
}
