/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the folder page/, which the build embeds. The script is several files in a row. */
#pragma once

extern const char page_html[], page_css[], page_js[];
