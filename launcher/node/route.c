/* SPDX-License-Identifier: Apache-2.0 */
#include "node/route.h"

#include <arpa/inet.h>
#include <glob.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/strv.h"
#include "base/text.h"
#include "model/net/address.h"

#define ANY_PORT 9 /* discard; UDP's connect sends nothing */

/* This node's addresses: all, and those that the filter lets pass. */
struct own {
    struct network_address *all, *list;
    size_t all_count, count;
    bool filtered;
};

bool route_source(const char *peer, char *text)
{
    struct network_address address;
    if (!network_address_parse(peer, &address))
        return false;
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(ANY_PORT)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(ANY_PORT)};
    memcpy(&v4.sin_addr, address.bytes, sizeof(v4.sin_addr));
    memcpy(&v6.sin6_addr, address.bytes, sizeof(v6.sin6_addr));
    int family = address.ipv6 ? AF_INET6 : AF_INET;
    struct sockaddr *target = address.ipv6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
    socklen_t length = address.ipv6 ? sizeof(v6) : sizeof(v4);
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    bool found = connect(fd, target, length) == 0 && getsockname(fd, target, &length) == 0;
    const void *bytes = address.ipv6 ? (const void *)&v6.sin6_addr : (const void *)&v4.sin_addr;
    found = found && inet_ntop(family, bytes, text, INET6_ADDRSTRLEN) != NULL;
    close(fd);
    return found;
}

static void own_fill(struct own *own, const struct route_request *request)
{
    own->all = mem_array(request->own_count, sizeof(*own->all));
    own->list = mem_array(request->own_count, sizeof(*own->list));
    for (size_t i = 0; i < request->own_count; i++) {
        const struct node_address *at = &request->own[i];
        if (at->up &&
            network_address_set(&own->all[own->all_count], at->iface, at->text, at->prefix))
            own->all_count++;
    }
    own->filtered = request->filter != NULL && *request->filter != NULL;
    own->count = network_filter_apply(request->filter, own->all, own->all_count, own->list);
}

/* NULL: not one of the list's. */
static const struct network_address *find(const struct network_address *list, size_t count,
                                          const char *text)
{
    struct network_address wanted;
    if (text == NULL || !network_address_parse(text, &wanted))
        return NULL;
    size_t i = 0;
    while (i < count && !network_address_equal(&list[i], &wanted))
        i++;
    return i < count ? &list[i] : NULL;
}

/* An address of another machine? */
static bool is_elsewhere(const struct own *own, const char *peer)
{
    struct network_address address;
    return network_address_parse(peer, &address) && address.fitness != NETWORK_LOOPBACK &&
           find(own->all, own->all_count, peer) == NULL;
}

/* Up to ROUTE_PEERS_MAX different ones, spread over all. */
static size_t pick_peers(const struct own *own, const struct route_request *request,
                         const char **out)
{
    size_t count = 0;
    size_t step = request->peer_count / ROUTE_PEERS_MAX + 1;
    for (size_t start = 0; start < step; start++) {
        for (size_t i = start; i < request->peer_count && count < ROUTE_PEERS_MAX; i += step) {
            size_t k = 0;
            while (k < count && strcmp(out[k], request->peers[i]) != 0)
                k++;
            if (k == count && is_elsewhere(own, request->peers[i]))
                out[count++] = request->peers[i];
        }
    }
    return count;
}

/* Where the interface of this address has its first one in the list. */
static size_t first_of_iface(const struct own *own, const struct network_address *address)
{
    size_t i = 0;
    while (strcmp(own->list[i].iface, address->iface) != 0)
        i++;
    return i;
}

/* The allowed address that the routes start at; where they start at several interfaces, the one
 * that most of them do. NULL: none. */
static const struct network_address *by_route(const struct own *own,
                                              const struct route_request *request,
                                              const char *const *peers, size_t peer_count)
{
    bool (*source)(const char *, char *) = request->source == NULL ? route_source : request->source;
    size_t *votes AUTO_FREE = mem_array(own->count, sizeof(*votes));
    const struct network_address *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < peer_count; i++) {
        char text[INET6_ADDRSTRLEN] = "";
        const struct network_address *at =
            source(peers[i], text) ? find(own->list, own->count, text) : NULL;
        if (at == NULL)
            continue;
        size_t now = ++votes[first_of_iface(own, at)];
        if (now > most) {
            most = now;
            best = at;
        }
    }
    return best;
}

/* The address that the others know, when it is on the chosen interface or none is chosen yet. */
static const struct network_address *as_told(const struct own *own, const char *told,
                                             const struct network_address *chosen)
{
    const struct network_address *at = find(own->list, own->count, told);
    bool other = at != NULL && chosen != NULL &&
                 (at->ipv6 != chosen->ipv6 || strcmp(at->iface, chosen->iface) != 0);
    return at == NULL || other ? chosen : at;
}

static const struct network_address *fittest(const struct own *own)
{
    const struct network_address *best = NULL;
    for (size_t i = 0; i < own->count; i++) {
        if (best == NULL || own->list[i].fitness < best->fitness)
            best = &own->list[i];
    }
    return best;
}

static void add_word(struct strv *list, const char *word)
{
    if (!strv_has(list, word))
        strv_add(list, word);
}

/* NULL of none. */
static char *joined(const struct strv *list)
{
    return list->count > 0 ? strv_join(list->items, list->count, ",") : NULL;
}

/* What the filter includes, as far as it is as fit as the chosen one. */
static void fill_included(const struct own *own, const struct network_address *chosen, bool several,
                          struct route *out)
{
    AUTO_STRV struct strv names = STRV_INIT, subnets = STRV_INIT;
    for (size_t i = 0; i < own->count; i++) {
        if (own->list[i].fitness > chosen->fitness)
            continue;
        char *subnet AUTO_FREE = network_address_subnet(&own->list[i]);
        add_word(&names, own->list[i].iface);
        if (own->list[i].ipv6 == chosen->ipv6)
            add_word(&subnets, subnet);
    }
    out->ifaces = joined(&names);
    out->include = several ? joined(&subnets) : NULL;
}

static char *unfit_subnets(const struct own *own, const struct network_address *chosen)
{
    AUTO_STRV struct strv subnets = STRV_INIT;
    for (size_t i = 0; i < own->all_count; i++) {
        const struct network_address *at = &own->all[i];
        bool unfit = at->fitness == NETWORK_VIRTUAL || at->fitness == NETWORK_LINK_LOCAL;
        if (!unfit || at->ipv6 || strcmp(at->iface, chosen->iface) == 0 ||
            network_address_within(chosen, at, at->prefix))
            continue;
        char *subnet AUTO_FREE = network_address_subnet(at);
        add_word(&subnets, subnet);
    }
    return joined(&subnets);
}

static bool names_nobody(const struct route_request *request)
{
    size_t i = 0;
    while (i < request->peer_count && request->peers[i][0] == '\0')
        i++;
    return i == request->peer_count;
}

/* Are there other nodes, and is each of them this machine? */
static bool all_are_here(const struct own *own, const struct route_request *request)
{
    size_t i = 0;
    while (i < request->peer_count && request->peers[i][0] != '\0' &&
           !is_elsewhere(own, request->peers[i]))
        i++;
    return request->peer_count > 0 && i == request->peer_count;
}

static void use_loopback(const struct own *own, bool several, struct route *out)
{
    *out = (struct route){
        .iface = mem_strdup("lo"), .ifaces = mem_strdup("lo"), .address = mem_strdup("127.0.0.1")};
    if (several && !own->filtered)
        out->include = mem_strdup("127.0.0.0/8");
}

void route_choose(const struct route_request *request, struct route *out)
{
    struct own own = {.all_count = 0};
    const char *peers[ROUTE_PEERS_MAX];
    own_fill(&own, request);
    bool includes = network_filter_includes(request->filter);
    size_t peer_count = pick_peers(&own, request, peers);
    /* An address of this node that is not loopback was chosen for others, even if none is there
     * yet. */
    const struct network_address *told = find(own.list, own.count, request->told);
    bool awaits =
        told != NULL && told->fitness != NETWORK_LOOPBACK && !includes && names_nobody(request);
    bool across = peer_count > 0 || awaits;
    const struct network_address *chosen = NULL;
    if (across)
        chosen = by_route(&own, request, peers, peer_count);
    if (across || includes)
        chosen = as_told(&own, request->told, chosen);
    if (chosen == NULL && (across || includes))
        chosen = fittest(&own);
    bool here = all_are_here(&own, request);
    if (chosen == NULL) {
        use_loopback(&own, here, out);
    } else {
        *out =
            (struct route){.iface = mem_strdup(chosen->iface), .address = mem_strdup(chosen->text)};
        if (includes)
            fill_included(&own, chosen, across || here, out);
        else
            out->ifaces = mem_strdup(chosen->iface);
        if (across && !own.filtered)
            out->exclude = unfit_subnets(&own, chosen);
    }
    free(own.all);
    free(own.list);
}

void route_leave_subnets(struct route *route)
{
    free(route->include);
    free(route->exclude);
    route->include = route->exclude = NULL;
}

void route_destroy(struct route *route)
{
    route_leave_subnets(route);
    free(route->iface);
    free(route->ifaces);
    free(route->address);
    *route = (struct route){.iface = NULL};
}

#define FILE_MAX ((size_t)1 << 20)
#define FILE_NAME "openmpi-mca-params.conf"

static bool line_chooses(const char *line)
{
    static const char *const names[] = {"btl_tcp_if_include", "btl_tcp_if_exclude"};
    line += strspn(line, " \t");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *after = line + (text_begins(line, names[i]) ? strlen(names[i]) : 0);
        if (after > line && after[strspn(after, " \t")] == '=')
            return true;
    }
    return false;
}

bool mpi_params_text_chooses_tcp(const char *text)
{
    while (!line_chooses(text)) {
        text = strchr(text, '\n');
        if (text == NULL)
            return false;
        text++;
    }
    return true;
}

static bool file_chooses(const char *path)
{
    struct buf text AUTO_BUF = BUF_INIT(FILE_MAX);
    if (fd_read_file(path, &text, NULL) < 0)
        return false;
    return mpi_params_text_chooses_tcp(buf_text(&text));
}

/* PREFIX/bin in PATH: an installation that belongs to PREFIX has its files in PREFIX/etc. */
static bool beside_path_chooses(const char *path)
{
    bool chooses = false;
    while (!chooses && path != NULL && *path != '\0') {
        size_t length = strcspn(path, ":");
        if (length > 4 && memcmp(path + length - 4, "/bin", 4) == 0) {
            char *file AUTO_FREE = mem_printf("%.*s/etc/" FILE_NAME, (int)(length - 4), path);
            chooses = file_chooses(file);
        }
        path += length + (path[length] == ':' ? 1 : 0);
    }
    return chooses;
}

bool mpi_params_choose_tcp(const char *home, const char *path)
{
    if (home != NULL) {
        char *file AUTO_FREE = mem_printf("%s/.openmpi/mca-params.conf", home);
        if (file_chooses(file))
            return true;
    }
    if (beside_path_chooses(path))
        return true;
    glob_t found;
    bool chooses = false;
    if (glob("/etc/openmpi*/" FILE_NAME, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc && !chooses; i++)
            chooses = file_chooses(found.gl_pathv[i]);
        globfree(&found);
    }
    return chooses || file_chooses("/etc/" FILE_NAME);
}
