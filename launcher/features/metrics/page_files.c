/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the status page, as texts. The build defines the name of their folder. */
#include "features/metrics/page_files.h"

#define BEGIN(name)                                                                               \
    ".pushsection .rodata\n.globl " #name "\n.hidden " #name "\n.type " #name ", @object\n" #name \
    ":\n"
#define FILE_OF(file) ".incbin \"" HVDRUN_PAGE_FOLDER "/" file "\"\n"
#define END ".byte 0\n.popsection\n"

__asm__(BEGIN(page_html) FILE_OF("page.html") END);
__asm__(BEGIN(page_css) FILE_OF("page.css") END);
__asm__(BEGIN(page_js) FILE_OF("text.js") FILE_OF("ranks.js") FILE_OF("hosts.js")
            FILE_OF("time_line.js") FILE_OF("curves.js") FILE_OF("output.js") FILE_OF("page.js")
                END);
