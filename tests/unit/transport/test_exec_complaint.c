/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "transport/exec/words.h"

struct sample {
    const char *text;
    enum transport_stage stage;
    const char *why; /* a part of it */
};

/* As OpenSSH prints them. */
static const struct sample samples[] = {
    {"me@c1: Permission denied (publickey,password).\n", STAGE_AUTH, "authorized_keys"},
    {"Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures\n", STAGE_AUTH,
     "IdentitiesOnly"},
    {"No ED25519 host key is known for c1 and you have requested strict checking.\n"
     "Host key verification failed.\n",
     STAGE_HOST_KEY, "ssh-keyscan"},
    {"@@@@@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@@@\n"
     "Host key for c1 has changed and you have requested strict checking.\n"
     "Host key verification failed.\n",
     STAGE_HOST_KEY, "ssh-keygen -R"},
    {"ssh: Could not resolve hostname c1: Name or service not known\n", STAGE_RESOLVE, "DNS"},
    {"ssh: connect to host c1 port 22: Connection refused\n", STAGE_CONNECT, "start sshd"},
    {"ssh: connect to host c1 port 22: Connection timed out\n", STAGE_CONNECT, "firewall"},
    {"ssh: connect to host c1 port 22: No route to host\n", STAGE_CONNECT, "cannot be reached"},
    {"Unable to negotiate with 10.0.0.1 port 22: no matching host key type found. Their offer: "
     "ssh-rsa\n",
     STAGE_HANDSHAKE, "algorithm"},
    {"kex_exchange_identification: read: Connection reset by peer\n"
     "Connection reset by 10.0.0.1 port 22\n",
     STAGE_HANDSHAKE, "MaxStartups"},
    {"/home/ann/.ssh/config: line 3: Bad configuration option: prot\n", STAGE_CONFIG, "correct"},
};

static void test_openssh(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct exec_complaint found;
        assert_true(exec_complaint_find(samples[i].text, true, &found));
        if (found.stage != samples[i].stage || strstr(found.why, samples[i].why) == NULL)
            fail_msg("%s: %s: %s", samples[i].text, transport_stage_name(found.stage), found.why);
        assert_non_null(strstr(samples[i].text, found.line));
        assert_null(strchr(found.line, '\n'));
        assert_false(exec_complaint_find(samples[i].text, false, &found));
    }
}

static void test_line_is_the_whole_one(void **state)
{
    (void)state;
    struct exec_complaint found;
    assert_true(
        exec_complaint_find("hello\nme@c1: Permission denied (publickey).\nbye\n", true, &found));
    assert_string_equal(found.line, "me@c1: Permission denied (publickey).");
}

static void test_no_shell_in_the_container(void **state)
{
    (void)state;
    struct exec_complaint found;
    const char *docker = "OCI runtime exec failed: exec failed: unable to start container process: "
                         "exec: \"/bin/sh\": stat /bin/sh: no such file or directory: unknown\n";
    assert_true(exec_complaint_find(docker, false, &found));
    assert_int_equal(found.stage, STAGE_START);
    assert_non_null(strstr(found.why, "image with a shell"));
}

static void test_containers(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } said[] = {
        {"Error response from daemon: No such container: c1\n", "docker ps"},
        {"Error: no container with name or ID \"c1\" found: no such container\n", "podman ps"},
        {"Error: can only create exec sessions on running containers: container state improper\n",
         "is not running"},
        {"Error response from daemon: Container c1 is paused, unpause the container before exec\n",
         "is paused"},
        {"Error response from daemon: Container 91b07d04a204 is not running\n",
         "is not running: start it"},
        {"The connection to the server localhost:8080 was refused - did you specify the right host "
         "or port?\n",
         "KUBECONFIG"},
        {"Error from server (NotFound): pods \"c1\" not found\n", "kubectl get pods"},
        {"Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon "
         "running?\n",
         "DOCKER_HOST"},
        {"permission denied while trying to connect to the Docker daemon socket at "
         "unix:///var/run/docker.sock: Get \"http://%2Fvar%2Frun%2Fdocker.sock/v1.24/containers/c1/"
         "json\": dial unix /var/run/docker.sock: connect: permission denied\n",
         "group docker"},
        {"permission denied while trying to connect to the docker API at "
         "unix:///var/run/docker.sock\n",
         "group docker"},
    };
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        struct exec_complaint found;
        assert_true(exec_complaint_find(said[i].text, false, &found));
        assert_int_equal(found.stage, STAGE_CONNECT);
        assert_non_null(strstr(found.why, said[i].why));
    }
}

static void test_nothing_known(void **state)
{
    (void)state;
    struct exec_complaint found;
    assert_false(exec_complaint_find("", true, &found));
    assert_false(exec_complaint_find("Warning: Permanently added 'c1' (ED25519) to the list of "
                                     "known hosts.\n",
                                     true, &found));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_openssh),
        cmocka_unit_test(test_line_is_the_whole_one),
        cmocka_unit_test(test_no_shell_in_the_container),
        cmocka_unit_test(test_containers),
        cmocka_unit_test(test_nothing_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
