/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both ends of dialling back (D2) have to agree on: transport/srun/dial_back.h waits,
 * agent_main/dial_out.h comes.
 *
 * The agent is told in its environment, which it wipes before anything else can read it; its name
 * is SLURMD_NODENAME. The first line after the handshake is the driver's.
 */
#pragma once

#define DIAL_BACK_ENV_DIAL "HVDRUN_AGENT_DIAL" /* "10.0.0.1:4000,[fd00::1]:4000", best first */
#define DIAL_BACK_ENV_KEY "HVDRUN_AGENT_KEY"   /* TLS_KEY_SIZE bytes, hexadecimal */
#define DIAL_BACK_ENV_JOB "HVDRUN_AGENT_JOB"

#define DIAL_BACK_IDENTITY "hvdrun" /* "hvdrun:JOB:NODE" */
#define DIAL_BACK_WELCOME "welcome"
#define DIAL_BACK_REFUSED "refused " /* and why */
#define DIAL_BACK_LINE_MAX 160

/* How an agent that cannot come in begins the line on its stderr; then "NODE: why". */
#define DIAL_BACK_CANNOT "hvdrun-agent: cannot dial back from "
