/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both ends of dialling back (D2) have to agree on: the driver waits
 * (transport/dial_back.h), the agent comes (agent_main/dial_out.h).
 *
 * An agent below srun finds its orders in its environment and wipes them before anything else can
 * read them. Its name is SLURMD_NODENAME. One that a user starts has them from its command line
 * (agent_main/dial_words.h). The driver sends the first line after the handshake.
 */
#pragma once

#define DIAL_BACK_ENV_DIAL "HVDRUN_AGENT_DIAL" /* "10.0.0.1:4000,[fd00::1]:4000", best first */
#define DIAL_BACK_ENV_KEY "HVDRUN_AGENT_KEY"   /* TLS_KEY_SIZE bytes, hexadecimal */
#define DIAL_BACK_ENV_JOB "HVDRUN_AGENT_JOB"

#define DIAL_BACK_IDENTITY "hvdrun"  /* "hvdrun:JOB:NODE" */
#define DIAL_BACK_ANY "*"            /* as NODE: any that is free; not a name of a host */
#define DIAL_BACK_WELCOME "welcome " /* and the version of hvdrun */
#define DIAL_BACK_WAIT "wait "       /* and why: the agent may come in later in this job */
#define DIAL_BACK_REFUSED "refused " /* and why */
#define DIAL_BACK_LINE_MAX 160

/* How an agent that cannot come in begins the line on its stderr; then "NODE: why". */
#define DIAL_BACK_CANNOT "hvdrun-agent: cannot dial back from "
