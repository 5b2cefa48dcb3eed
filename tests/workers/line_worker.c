/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_worker [--die RANK:HOW] [--stall RANK] [--flood RANK] --until PATH
 *
 * A worker that uses the line to its agent as libhvd does. It says what it hears:
 *
 *   line epoch N under PID        the line is open, and belongs to this epoch; PID is the parent
 *   ended RANK HOW CODE epoch N   another rank has ended
 *   no line: WHY                  there is none, or it has ended
 *
 * --die: when PATH exists, this rank ends ("9" a signal, "x0" an exit status), in the first epoch;
 * the others end when they have heard of it. --stall: this rank reports that it waits for all
 * others, and that it goes on when PATH.goes_on exists. --flood: this rank sends packets and
 * rubbish, and reads nothing. Without --die all end when PATH exists.
 */
#include <sys/socket.h>

#include "line/line.h"
#include "worker.h"

static struct line *open_line(void)
{
    struct error err = ERROR_INIT;
    const char *address = getenv(LINE_VARIABLE);
    struct line *line = address == NULL ? NULL : line_open(address, &err);
    if (line == NULL)
        dprintf(1, "no line: %s\n", address == NULL ? "the variable is not set" : err.text);
    return line;
}

static void die(const char *how)
{
    if (how[0] == 'x')
        _exit((int)to_number(how + 1));
    kill(getpid(), (int)to_number(how));
}

static void report_stall(struct line *line)
{
    struct line_packet packet = {
        .type = LINE_STALLED, .seconds = 60, .operation = "allreduce", .name = "grad.17"};
    for (int rank = 0; rank < world_size(); rank++)
        line_ranks_add(rank == my_rank() ? &packet.waiting : &packet.missing, (uint32_t)rank);
    line_send(line, &packet);
    packet = (struct line_packet){.type = LINE_PROGRESS, .operations = 1234};
    line_send(line, &packet);
}

static void flood(struct line *line)
{
    const struct line_packet packet = {.type = LINE_STALLED, .operation = "x", .name = "flood"};
    for (int i = 0; i < 100000; i++)
        line_send(line, &packet);
    for (int i = 0; i < 50; i++) {
        struct line *more = open_line();
        if (more == NULL)
            break;
        send(line_fd(more), "rubbish", 7, MSG_NOSIGNAL | MSG_DONTWAIT);
        line_close(more);
    }
    dprintf(1, "flooded\n");
}

static void hear_packet(const struct line_packet *packet, bool *opened, bool *ended)
{
    *opened = true;
    if (packet->type == LINE_EPOCH)
        dprintf(1, "line epoch %u under %d\n", packet->epoch, (int)getppid());
    for (int i = 0; packet->type == LINE_ENDED && i < packet->ended_count; i++) {
        const struct line_ended *rank = &packet->ended[i];
        dprintf(1, "ended %u %u %u epoch %u\n", rank->rank, rank->how, rank->code, packet->epoch);
        *ended = true;
    }
}

/* Says what has come. false: the line is over. */
static bool hear(struct line *line, bool *opened, bool *ended)
{
    struct line_packet packet;
    struct error err = ERROR_INIT;
    int result = line_receive(line, &packet, &err);
    for (; result > 0; result = line_receive(line, &packet, &err))
        hear_packet(&packet, opened, ended);
    if (result < 0)
        dprintf(1, "no line: %s\n", err.text);
    return result == 0;
}

int main(int argc, char **argv)
{
    const char *until = option(argc, argv, "--until", "/"),
               *victim = option(argc, argv, "--die", NULL);
    const char *how = victim == NULL ? NULL : strchr(victim, ':');
    bool first = env_int("HVDRUN_EPOCH", 1) == 1, opened = false, ended = false, goes_on = false;
    bool stalls = to_number(option(argc, argv, "--stall", "-1")) == my_rank();
    char signal_file[4096];
    snprintf(signal_file, sizeof(signal_file), "%s.goes_on", until);
    signal(SIGTERM, SIG_IGN); /* it ends when it has heard why */
    struct line *line = open_line();
    if (line == NULL)
        return 1;
    if (to_number(option(argc, argv, "--flood", "-1")) == my_rank()) {
        flood(line);
        wait_for_file(until);
        return 0;
    }
    if (stalls)
        report_stall(line);
    while (hear(line, &opened, &ended) && !ended) {
        struct pollfd wait = {.fd = line_fd(line), .events = POLLIN};
        poll(&wait, 1, 20);
        bool over = opened && access(until, F_OK) == 0;
        if (over && first && how != NULL && to_number(victim) == my_rank())
            die(how + 1);
        if (over && (how == NULL || !first))
            break;
        if (stalls && !goes_on && access(signal_file, F_OK) == 0) {
            goes_on = true;
            line_send(line, &(struct line_packet){.type = LINE_GOES_ON});
        }
    }
    line_close(line);
    return 0;
}
