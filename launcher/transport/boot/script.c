/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/boot/script.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "transport/boot/agent_image.h"

/* What a host has said about itself, and whether our agent can run there. Pure. */

#define REMEDY                       \
    "install hvdrun " HVDRUN_VERSION \
    " there, in the PATH of a plain `sh`, to use the agent of that installation"

/* Copies a word and returns what follows it. */
static const char *word(const char *text, char *out, size_t room)
{
    text += strspn(text, " ");
    size_t length = strcspn(text, " ");
    snprintf(out, room, "%.*s", (int)length, text);
    return text + length;
}

void boot_host_parse(const char *text, struct boot_host *out)
{
    text = word(text, out->kernel, sizeof(out->kernel));
    text = word(text, out->machine, sizeof(out->machine));
    snprintf(out->libc, sizeof(out->libc), "%s", text + strspn(text, " "));
}

static bool is_x86_32(const char *machine)
{
    return machine[0] == 'i' && isdigit((unsigned char)machine[1]) &&
           strcmp(machine + 2, "86") == 0;
}

static bool same_machine(const char *host, const char *image)
{
    return strcmp(host, image) == 0 || (is_x86_32(host) && is_x86_32(image)) ||
           (strncmp(host, "armv", 4) == 0 && strncmp(image, "armv", 4) == 0);
}

/* The version at the end of "glibc 2.36" or "ldd (Debian GLIBC 2.36-9) 2.36". */
static bool glibc_version(const char *libc, long *major, long *minor)
{
    if (strncmp(libc, "glibc ", 6) != 0 && strncmp(libc, "ldd (", 5) != 0)
        return false;
    const char *last = strrchr(libc, ' ');
    char *end = NULL;
    if (last == NULL || !isdigit((unsigned char)last[1]))
        return false;
    *major = strtol(last + 1, &end, 10);
    if (*end != '.' || !isdigit((unsigned char)end[1]))
        return false;
    *minor = strtol(end + 1, NULL, 10);
    return true;
}

int boot_host_check(const struct boot_host *host, const struct agent_image *image,
                    struct error *err)
{
    long major, minor;
    if (strcmp(host->kernel, "Linux") != 0)
        return error_set(err, "hvdrun runs on Linux only, and this host runs %s",
                         host->kernel[0] != '\0' ? host->kernel : "an unknown system");
    if (!same_machine(host->machine, image->facts.machine))
        return error_set(err, "the %s agent cannot run on this %s host: " REMEDY,
                         image->facts.machine, host->machine);
    if (image->facts.glibc_major == 0)
        return 0;
    if (strstr(host->libc, "musl") != NULL)
        return error_set(err,
                         "the agent needs glibc %d.%d, and this host has musl libc: use an image "
                         "with glibc (Debian, Ubuntu, Fedora...), or " REMEDY,
                         image->facts.glibc_major, image->facts.glibc_minor);
    if (glibc_version(host->libc, &major, &minor) &&
        (major < image->facts.glibc_major ||
         (major == image->facts.glibc_major && minor < image->facts.glibc_minor)))
        return error_set(err, "the agent needs glibc %d.%d, and this host has %ld.%ld: " REMEDY,
                         image->facts.glibc_major, image->facts.glibc_minor, major, minor);
    return 0;
}

/* The script. */

#define UNIQUE_MAX 100
#define SHORT_HASH 24 /* digits of it in the file's name */

/* Variables are called h_..., since the shell would pass on a changed one of the user's. */
static const char tools[] =
    "h_say() { printf '%s\\n' \"$h_n $*\"; }\n"
    /* ours, of this kind and mode, and no link: h_mine PATH MODE */
    "h_mine() { set -- \"$2\" $(LC_ALL=C ls -ldn \"$1\" 2>/dev/null)\n"
    " case ${2:-} in \"$1\"*) [ \"$4\" = \"$h_u\" ];; *) false;; esac; }\n"
    /* the right bytes */
    "h_sum() { h_x=$(sha256sum <\"$1\" 2>/dev/null); [ \"${h_x%% *}\" = \"$h_hash\" ]; }\n"
    /* it starts here, in this place and with this C library */
    "h_try() { h_x=$(\"$1\" --version 2>&1 </dev/null) && [ \"$h_x\" = \"$h_v\" ]; }\n"
    "h_good() { h_mine \"$1\" drwx------ && h_mine \"$1/$h_f\" -rwx------ && h_sum \"$1/$h_f\" &&"
    " h_try \"$1/$h_f\"; }\n"
    "h_run() { [ -z \"$h_m\" ] || umask \"$h_m\"\n"
    " h_say run \"$1\"; exec \"$1\" --marker \"$h_n\"; exit 126; }\n"
    "h_no() { rm -f \"$h_t\"; h_say no \"$@\"; false; }\n";

/* The image that was found good is remembered beside it (checked-...), so that the next start need
 * not read it: the boot of this machine, inode, mode, owner, size and the time of the last change
 * to any of these or to the bytes. The words before the path count, since ls aligns them. Another
 * owner or mode is never good, whatever the file says. A time without parts of a second proves
 * nothing; a folder that hosts may share (the third) says nothing about how the image runs on this
 * one. h_look FOLDER sets h_y. */
static const char memory[] =
    "h_look() { h_x=$(LC_ALL=C ls -ldnic --time-style=full-iso \"$1\" \"$1/$h_f\" 2>/dev/null) &&"
    " read -r h_y </proc/sys/kernel/random/boot_id || return\n"
    " h_y=\"$h_y ${h_x#*\"$h_nl\"}\"\n"
    " set -- $h_x\n"
    " case \"$2 $h_y\" in *.000000000*) return 1;; drwx------*) ;; *) return 1;; esac\n"
    " [ \"$4\" = \"$h_u\" ] || return\n"
    " set -- $h_y; h_y=\"$1 $2 $3 $4 $5 $6 $7 $8 $9\"\n"
    " case ${3:-} in -rwx------*) [ \"$5\" = \"$h_u\" ];; *) false;; esac; }\n"
    "h_same() { [ -f \"$1/$h_r\" ] && h_look \"$1\" && IFS= read -r h_x <\"$1/$h_r\" &&"
    " [ \"$h_x\" = \"$h_y\" ]; }\n"
    "h_keep() { [ \"$1\" = \"$h_3\" ] || { h_look \"$1\" &&"
    " (umask 077; printf '%s\\n' \"$h_y\" >\"$1/$h_r\"); } 2>/dev/null; }\n";

/* h_put FOLDER: asks for the bytes and stores them there. ln(1), since it does not replace what
 * another host, which shares the folder, has put there meanwhile and runs already. */
static const char store[] =
    "h_put() { h_t=$1/.$h_f.$h_q.$$; h_i=0\n"
    " command -v sha256sum >/dev/null 2>&1 ||"
    " { h_no \"$1: the host has no sha256sum to check what arrives\"; return; }\n"
    " until h_e=$({ LC_ALL=C mkdir -p \"$1\" && h_mine \"$1\" drwx------ &&"
    " LC_ALL=C cat </dev/null >\"$h_t\"; } 2>&1)\n"
    " do h_i=$((h_i+1)); [ $h_i -lt 3 ] ||"
    " { h_no \"$1:\" ${h_e:-not a folder of this user alone with mode 0700}; return; }; done\n"
    " h_say ready \"$1\"\n"
    " h_e=$({ head -c \"$h_l\" | { LC_ALL=C cat >\"$h_t\" || cat >/dev/null; }; } 2>&1)\n"
    " h_sum \"$h_t\" || { h_no \"$1:\" ${h_e:-what arrived is damaged}; return; }\n"
    " chmod 700 \"$h_t\"\n"
    " h_try \"$h_t\" || { h_no \"$1: a program cannot be run there:\" $h_x; return; }\n"
    " find \"$1/.\" ! -name . -prune -type f \\( -name 'hvdrun-agent-*' -mtime +30 -o"
    " -name 'checked-*' -mtime +30 -o"
    " -name '.hvdrun-agent-*' -mtime +1 \\) -exec rm -f {} \\; 2>/dev/null\n"
    " ln \"$h_t\" \"$1/$h_f\" 2>/dev/null || h_good \"$1\" ||\n"
    "  { h_e=$(LC_ALL=C mv -f \"$h_t\" \"$1/$h_f\" 2>&1) || { h_no \"$1:\" $h_e; return; }; }\n"
    " rm -f \"$h_t\"; h_keep \"$1\"; h_run \"$1/$h_f\"; }\n";

/* Without a program of its own where the shell can say it: each costs a host about a millisecond.
 */
static const char facts[] =
    /* the driver is gone: remove what has come of the program */
    "h_t=; trap 'rm -f \"$h_t\"; exit 1' HUP INT PIPE TERM\n"
    "if [ -t 0 ]; then h_say terminal; exit 1; fi\n"
    "h_m=; h_u=; h_nl='\n'\n"
    "while read -r h_x h_y h_i h_z; do case $h_x in Uid:) h_u=$h_i; break;; esac; done"
    " 2>/dev/null </proc/self/status\n"
    "case $h_u in ''|*[!0-9]*) h_u=$(id -u);; esac\n"
    "h_1=; h_3=; case ${TMPDIR:-} in /*) h_2=$TMPDIR;; *) h_2=/tmp;; esac\n"
    "h_2=$h_2/hvdrun-$h_u\n"
    "case ${XDG_RUNTIME_DIR:-} in /*) [ -d \"$XDG_RUNTIME_DIR\" ] &&"
    " [ ! -h \"$XDG_RUNTIME_DIR\" ] && [ -O \"$XDG_RUNTIME_DIR\" ] &&"
    " h_1=$XDG_RUNTIME_DIR/hvdrun;; esac\n"
    "case ${XDG_CACHE_HOME:-} in /*) h_3=$XDG_CACHE_HOME/hvdrun;; *)"
    " case ${HOME:-} in /*) h_3=$HOME/.cache/hvdrun;; esac;; esac\n";

static const char dialogue[] =
    "for h_d in \"$h_1\" \"$h_2\" \"$h_3\"; do [ -n \"$h_d\" ] && [ -f \"$h_d/$h_f\" ] || "
    "continue\n"
    " h_same \"$h_d\" || { h_good \"$h_d\" && { find \"$h_d/$h_f\" -mtime +7 -exec touch -c {} \\;"
    " 2>/dev/null; h_keep \"$h_d\"; :; }; } || continue\n"
    " h_run \"$h_d/$h_f\"; done\n"
    "h_c=$(getconf GNU_LIBC_VERSION 2>/dev/null)\n"
    "case $h_c in glibc*) ;; *) h_c=$(ldd --version 2>&1 </dev/null | head -n 1)\n"
    " for h_x in /lib/ld-musl-*; do [ -e \"$h_x\" ] && h_c=musl; done;; esac\n"
    "h_say host \"$(uname -s)\" \"$(uname -m)\" \"$h_c\"\n"
    "h_p=$(command -v hvdrun) && h_p=${h_p%/*}\n"
    "for h_a in \"$h_p\"/../lib*/hvdrun/hvdrun-agent \"$h_p\"/../lib/*/hvdrun/hvdrun-agent '';"
    " do [ -x \"$h_a\" ] && h_try \"$h_a\" && break; done\n"
    "h_say need \"$h_a\"; read -r h_x || exit 1\n"
    "if [ \"$h_x\" = use ]; then h_run \"$h_a\"; fi\n"
    "h_m=$(umask); umask 077\n"
    "for h_d in \"$h_1\" \"$h_2\" \"$h_3\"; do [ -n \"$h_d\" ] && h_put \"$h_d\"; done\n"
    "h_say fail; exit 1; }\n";

void boot_marker(char out[BOOT_MARKER_ROOM])
{
    uint8_t random[(BOOT_MARKER_ROOM - 1) / 2];
    if (getrandom(random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random)) {
        /* Early at a machine's start. It keeps answers apart from noise, and is not a secret. */
        uint64_t seed = (uint64_t)clock_mono_ns() * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid();
        for (size_t i = 0; i < sizeof(random); i++)
            random[i] = (uint8_t)(seed >> (i % 8 * 8));
    }
    text_hex(random, sizeof(random), out);
}

void boot_script(const struct agent_image *image, const char *marker, const char *unique,
                 struct buf *out)
{
    char *name AUTO_FREE = mem_strndup(unique, UNIQUE_MAX);
    for (char *at = name; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at) && *at != '-' && *at != '_')
            *at = '_';
    }
    int half = (BOOT_MARKER_ROOM - 1) / 2;
    buf_printf(out, "{ h_n='%.*s''%s'\n", half, marker, marker + half);
    buf_printf(out, "h_v='hvdrun-agent %s'; h_r='%s-%.*s'; h_q='%s'\n", HVDRUN_VERSION,
               HVDRUN_VERSION, SHORT_HASH, image->hash, name);
    buf_puts(out, "h_f=hvdrun-agent-$h_r; h_r=checked-$h_r\n");
    buf_printf(out, "h_l=%zu; h_hash='%s'\n", image->length, image->hash);
    buf_puts(out, tools);
    buf_puts(out, memory);
    buf_puts(out, store);
    buf_puts(out, facts);
    buf_puts(out, dialogue);
}
