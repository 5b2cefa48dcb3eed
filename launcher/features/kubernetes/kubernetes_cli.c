/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun kubernetes`: only the secret is not pure. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "cli/features.h"
#include "features/kubernetes/kube_words.h"

const char kubernetes_feature[] = "manifests that run a job on Kubernetes";

tool_run kubernetes_run;

#define SECRET_SIZE 32

static int make_secret(char text[2 * SECRET_SIZE + 1], struct error *err)
{
    unsigned char bytes[SECRET_SIZE];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return error_errno(err, errno, "cannot make a secret");
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(&text[2 * i], 3, "%02x", bytes[i]);
    explicit_bzero(bytes, sizeof(bytes));
    return 0;
}

int kubernetes_run(char *const *words, struct buf *out, struct error *err)
{
    struct kube_words read;
    char secret[2 * SECRET_SIZE + 1];
    if (kube_words_read(words, &read, err) < 0)
        return -1;
    if (read.help) {
        kube_words_help(out);
        return 0;
    }
    if (read.with_secret && make_secret(secret, err) < 0)
        return -1;
    read.manifest.secret = read.with_secret ? secret : NULL;
    if (manifest_check(&read.manifest, err) < 0)
        return -1;
    manifest_put(&read.manifest, out);
    return 0;
}
