/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's side of dialling back. The first five lines are the agent's environment, the rest is
 * what answers at the address, which is always a listener of ours on loopback. Only the word of
 * welcome lets the agent in. TLS is a fake (fake_tls.h).
 */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent_main/dial_out.h"
#include "base/fd.h"
#include "fake_tls.h"
#include "io/dial_ends.h"

#define LIMIT_MS 400 /* less than the time until it tries again */

static int listen_on(char **address)
{
    struct sockaddr_in name = {.sin_family = AF_INET};
    socklen_t length = sizeof(name);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    FUZZ_CHECK(fd >= 0 && bind(fd, (const struct sockaddr *)&name, length) == 0);
    FUZZ_CHECK(listen(fd, 4096) == 0 && getsockname(fd, (struct sockaddr *)&name, &length) == 0);
    *address = mem_printf("127.0.0.1:%d", ntohs(name.sin_port));
    return fd;
}

/* Resets what was connected, so that no port is kept. */
static void hang_up_all(int listener)
{
    const struct linger reset = {.l_onoff = 1};
    for (int fd = accept(listener, NULL, NULL); fd >= 0; fd = accept(listener, NULL, NULL)) {
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        close(fd);
    }
}

static void set_environment(struct fuzz_bytes *bytes)
{
    static const char *const names[] = {DIAL_BACK_ENV_DIAL, DIAL_BACK_ENV_KEY, DIAL_BACK_ENV_JOB,
                                        "SLURMD_NODENAME", "SLURM_LAUNCH_NODE_IPADDR"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *value AUTO_FREE = fuzz_line(bytes);
        FUZZ_CHECK(setenv(names[i], value, 1) == 0);
    }
}

static void dial(struct dial_out *dial_out, struct fuzz_bytes *bytes, int listener,
                 const char *address)
{
    struct error err = ERROR_INIT;
    struct tls_end end;
    struct fuzz_bytes said = *bytes;
    strv_destroy(&dial_out->addresses);
    strv_add(&dial_out->addresses, address);
    dial_out->limit_ms = LIMIT_MS;
    int result = dial_out_connect(dial_out, fake_tls(bytes), &end, &err);
    fuzz_check_error(result, &err);
    hang_up_all(listener);
    if (result < 0)
        return;
    FUZZ_CHECK(memmem(said.at, said.left, DIAL_BACK_WELCOME, strlen(DIAL_BACK_WELCOME)) != NULL);
    end.module->destroy(end.session);
    fd_close(&end.fd);
}

FUZZ_TARGET
{
    static int listener = -1;
    static char *address;
    struct fuzz_bytes bytes = {data, size};
    struct dial_out dial_out;
    struct error err = ERROR_INIT;
    if (listener < 0)
        listener = listen_on(&address);
    set_environment(&bytes);
    int result = dial_out_read(&dial_out, &err);
    fuzz_check_error(result, &err);
    FUZZ_CHECK(getenv(DIAL_BACK_ENV_KEY) == NULL);
    if (result == 0) {
        FUZZ_CHECK(dial_out.addresses.count <= DIAL_OUT_ADDRESSES_MAX);
        FUZZ_CHECK(strncmp(dial_out.identity, "hvdrun:", 7) == 0);
        dial(&dial_out, &bytes, listener, address);
    }
    dial_out_clear(&dial_out);
    return 0;
}
