/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/resolve.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/thread.h"

struct resolve_job {
    STAILQ_ENTRY(resolve_job) place;
    char *name;
    int family;
    int error, errnum; /* of getaddrinfo */
    struct addrinfo *found;
};

STAILQ_HEAD(resolve_jobs, resolve_job);

/* What the threads share with the loop; freed by the last that lets go. */
struct resolve_shared {
    pthread_mutex_t lock;
    struct resolve_jobs wanted, ready;
    int threads, holders;
    int event_fd;
    resolve_lookup lookup;
};

struct resolve_request {
    LIST_ENTRY(resolve_request) all;
    struct resolver *resolver;
    struct loop_timer *timer; /* the deadline, or "answer at once" */
    char *name;
    int family;
    int64_t limit_ms;
    struct resolve_result *at_once; /* numeric addresses */
    void (*done)(void *context, const struct resolve_result *result);
    void *context;
};

struct resolver {
    struct loop *loop;
    struct loop_fd *watch;
    struct resolve_shared *shared;
    LIST_HEAD(, resolve_request) requests;
};

static int lookup_here(const char *name, int family, struct addrinfo **found)
{
    struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM};
    return getaddrinfo(name, NULL, &hints, found);
}

static void job_destroy(struct resolve_job *job)
{
    if (job->found != NULL)
        freeaddrinfo(job->found);
    free(job->name);
    free(job);
}

static void jobs_destroy(struct resolve_jobs *jobs)
{
    while (!STAILQ_EMPTY(jobs)) {
        struct resolve_job *job = STAILQ_FIRST(jobs);
        STAILQ_REMOVE_HEAD(jobs, place);
        job_destroy(job);
    }
}

/* With the lock held; it is given back. */
static void shared_let_go(struct resolve_shared *shared)
{
    int holders = --shared->holders;
    pthread_mutex_unlock(&shared->lock);
    if (holders > 0)
        return;
    jobs_destroy(&shared->wanted);
    jobs_destroy(&shared->ready);
    pthread_mutex_destroy(&shared->lock);
    close(shared->event_fd);
    free(shared);
}

/* A full counter means that the loop will wake up anyway. */
static void wake(struct resolve_shared *shared)
{
    const uint64_t one = 1;
    ssize_t written = fd_write(shared->event_fd, &one, sizeof(one));
    (void)written;
}

static void *resolve_thread(void *arg)
{
    struct resolve_shared *shared = arg;
    pthread_mutex_lock(&shared->lock);
    while (!STAILQ_EMPTY(&shared->wanted)) {
        struct resolve_job *job = STAILQ_FIRST(&shared->wanted);
        STAILQ_REMOVE_HEAD(&shared->wanted, place);
        pthread_mutex_unlock(&shared->lock);
        job->error = shared->lookup(job->name, job->family, &job->found);
        job->errnum = errno;
        if (job->error != 0)
            job->found = NULL;
        pthread_mutex_lock(&shared->lock);
        STAILQ_INSERT_TAIL(&shared->ready, job, place);
        wake(shared);
    }
    shared->threads--;
    shared_let_go(shared);
    return NULL;
}

/* With the lock held. One more thread, unless there are as many as there may be: the job then waits
 * for one of them. */
static int start_thread(struct resolve_shared *shared)
{
    if (shared->threads >= RESOLVE_THREADS_MAX)
        return 0;
    pthread_t thread;
    int errnum = thread_start_small(&thread, "resolver", resolve_thread, shared);
    if (errnum == 0) {
        pthread_detach(thread);
        shared->threads++;
        shared->holders++;
    }
    return shared->threads > 0 ? 0 : errnum;
}

static void result_fill(struct resolve_result *result, const struct addrinfo *found)
{
    for (; found != NULL && result->count < RESOLVE_ADDRESSES_MAX; found = found->ai_next) {
        if (found->ai_addrlen > sizeof(struct sockaddr_storage) ||
            (found->ai_family != AF_INET && found->ai_family != AF_INET6))
            continue;
        memcpy(&result->addresses[result->count++], found->ai_addr, found->ai_addrlen);
    }
}

static void result_explain(struct resolve_result *result, const struct resolve_job *job)
{
    const char *remedy = "check its spelling, /etc/hosts and the name server";
    if (job->error == EAI_AGAIN)
        remedy = "the name server did not answer: check /etc/resolv.conf, or give the address";
    const char *cause = gai_strerror(job->error);
    if (job->error == 0)
        cause = "it has no address of the wanted family";
    else if (job->error == EAI_SYSTEM)
        cause = strerrordesc_np(job->errnum);
    snprintf(result->why, sizeof(result->why), "cannot resolve %.100s: %s (%s)", job->name,
             cause == NULL ? "unknown error" : cause, remedy);
}

void resolver_cancel(struct resolve_request *request)
{
    if (request == NULL)
        return;
    LIST_REMOVE(request, all);
    loop_timer_destroy(request->timer);
    free(request->at_once);
    free(request->name);
    free(request);
}

static void request_answer(struct resolve_request *request, const struct resolve_result *result)
{
    void (*done)(void *, const struct resolve_result *) = request->done;
    void *context = request->context;
    /* A result of the request's own must outlive it for the call. */
    struct resolve_result *own AUTO_FREE = request->at_once;
    request->at_once = NULL;
    resolver_cancel(request);
    done(context, result);
}

static struct resolve_request *request_for(struct resolver *resolver, const char *name, int family)
{
    struct resolve_request *at;
    LIST_FOREACH (at, &resolver->requests, all) {
        if (at->at_once == NULL && at->family == family && strcmp(at->name, name) == 0)
            return at;
    }
    return NULL;
}

static void answers_ready(void *context, int what)
{
    (void)what;
    struct resolver *resolver = context;
    struct resolve_shared *shared = resolver->shared;
    uint64_t count;
    fd_read(shared->event_fd, &count, sizeof(count));
    pthread_mutex_lock(&shared->lock);
    struct resolve_job *job = STAILQ_FIRST(&shared->ready);
    if (job != NULL)
        STAILQ_REMOVE_HEAD(&shared->ready, place);
    if (!STAILQ_EMPTY(&shared->ready)) /* one answer per turn */
        wake(shared);
    pthread_mutex_unlock(&shared->lock);
    if (job == NULL)
        return;
    struct resolve_result result = {.count = 0};
    result_fill(&result, job->found);
    if (result.count == 0)
        result_explain(&result, job);
    /* All requests are answered in this turn, each by its own timer: this one may destroy others.
     */
    struct resolve_request *request = request_for(resolver, job->name, job->family);
    for (; request != NULL; request = request_for(resolver, job->name, job->family)) {
        request->at_once = mem_dup(&result, sizeof(result));
        loop_timer_set(request->timer, 0);
    }
    job_destroy(job);
}

static void request_fire(void *context)
{
    struct resolve_request *request = context;
    if (request->at_once != NULL) {
        request_answer(request, request->at_once);
        return;
    }
    struct resolve_result late = {.count = 0};
    snprintf(late.why, sizeof(late.why),
             "cannot resolve %.100s: no answer within %.3g s (check /etc/resolv.conf, or give the "
             "address)",
             request->name, (double)request->limit_ms / 1000);
    request_answer(request, &late);
}

struct resolver *resolver_create(struct loop *loop, resolve_lookup lookup, struct error *err)
{
    int event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event_fd < 0) {
        error_errno(err, errno, "cannot create an event descriptor");
        return NULL;
    }
    struct resolve_shared *shared = MEM_NEW((struct resolve_shared){
        .holders = 1, .event_fd = event_fd, .lookup = lookup == NULL ? lookup_here : lookup});
    STAILQ_INIT(&shared->wanted);
    STAILQ_INIT(&shared->ready);
    pthread_mutex_init(&shared->lock, NULL);
    struct resolver *resolver = MEM_NEW((struct resolver){.loop = loop, .shared = shared});
    resolver->watch = loop_fd_create(loop, event_fd, answers_ready, resolver);
    return resolver;
}

void resolver_destroy(struct resolver *resolver)
{
    if (resolver == NULL)
        return;
    while (!LIST_EMPTY(&resolver->requests))
        resolver_cancel(LIST_FIRST(&resolver->requests));
    loop_fd_destroy(resolver->watch);
    pthread_mutex_lock(&resolver->shared->lock);
    jobs_destroy(&resolver->shared->wanted);
    shared_let_go(resolver->shared);
    free(resolver);
}

/* Queues the lookup; what keeps it from being done is the request's answer. */
static void request_look_up(struct resolve_request *request)
{
    struct resolve_shared *shared = request->resolver->shared;
    struct resolve_job *job =
        MEM_NEW((struct resolve_job){.name = mem_strdup(request->name), .family = request->family});
    pthread_mutex_lock(&shared->lock);
    int errnum = start_thread(shared);
    if (errnum == 0)
        STAILQ_INSERT_TAIL(&shared->wanted, job, place);
    pthread_mutex_unlock(&shared->lock);
    if (errnum == 0)
        return;
    job_destroy(job);
    struct resolve_result *result = mem_alloc(sizeof(*result));
    snprintf(result->why, sizeof(result->why), "cannot resolve %.100s: cannot start a thread: %s",
             request->name, strerrordesc_np(errnum));
    request->at_once = result;
}

struct resolve_request *
resolver_ask(struct resolver *resolver, const char *name, int family, int64_t limit_ms,
             void (*done)(void *context, const struct resolve_result *result), void *context)
{
    struct resolve_request *request = MEM_NEW((struct resolve_request){.resolver = resolver,
                                                                       .name = mem_strdup(name),
                                                                       .family = family,
                                                                       .limit_ms = limit_ms,
                                                                       .done = done,
                                                                       .context = context});
    request->timer = loop_timer_create(resolver->loop, request_fire, request);
    struct addrinfo hints = {
        .ai_family = family, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *found = NULL;
    if (getaddrinfo(name, NULL, &hints, &found) == 0) {
        request->at_once = mem_alloc(sizeof(*request->at_once));
        result_fill(request->at_once, found);
        freeaddrinfo(found);
    } else {
        if (request_for(resolver, name, family) == NULL)
            request_look_up(request);
    }
    loop_fd_watch(resolver->watch, LOOP_READ);
    LIST_INSERT_HEAD(&resolver->requests, request, all);
    loop_timer_set(request->timer, request->at_once != NULL ? 0 : limit_ms);
    return request;
}
