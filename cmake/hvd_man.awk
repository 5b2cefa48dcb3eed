# SPDX-License-Identifier: Apache-2.0
# Writes the man pages of libhvd from the comments of hvd.h:
#
#   awk -v folder=FOLDER -v version=VERSION -f hvd_man.awk hvd.h
#
# A page is a block of declarations without a blank line inside. Its comments are the description, and
# the first sentence is the summary. A block whose comment begins with "The same" belongs to the page
# before. A comment without declarations, at the beginning of a section, becomes a part of each page of
# that section. The first comment and the lists of constants make the page hvd(3).

# ---- Text for roff -----------------------------------------------------------------------------

function escape(text) {
    gsub(/\\/, "\\e", text)
    gsub(/\^/, "\\(ha", text)
    gsub(/~/, "\\(ti", text)
    gsub(/-/, "\\-", text)
    return text
}

# What stands at the beginning of a line must not look like a request.
function line(text) {
    return (text ~ /^[.']/ ? "\\&" : "") text
}

# One word of a comment, with marks around it: names, functions, constants.
function word(text,    rest) {
    if (match(text, /hvd_[a-z_]+\(\)/)) {
        rest = substr(text, RSTART, RLENGTH - 2)
        return substr(text, 1, RSTART - 1) "\\fB" rest "\\fP(3)" substr(text, RSTART + RLENGTH)
    }
    if (match(text, /(HVD_[A-Z0-9_]+|hvd_[a-z_]+)/))
        return substr(text, 1, RSTART - 1) "\\fB" substr(text, RSTART, RLENGTH) "\\fP" substr(text, RSTART + RLENGTH)
    return text
}

function styled(text,    parts, words, count, n, i, k, out, styled_part) {
    count = split(text, parts, "`")
    for (i = 1; i <= count; i++) {
        if (i % 2 == 0) {
            out = out "\\fI" escape(parts[i]) "\\fP"
            continue
        }
        n = split(escape(parts[i]), words, " ")
        styled_part = parts[i] ~ /^ / ? " " : ""
        for (k = 1; k <= n; k++)
            styled_part = styled_part (k > 1 ? " " : "") word(words[k])
        out = out styled_part (parts[i] ~ / $/ && n > 0 ? " " : "")
    }
    return out
}

# The lines of a comment as paragraphs, which begin with the request `between`, and list items.
function paragraphs(comment, between,    lines, count, i, out, begun) {
    count = split(comment, lines, "\n")
    for (i = 1; i <= count; i++) {
        if (lines[i] == "") {
            if (begun)
                out = out between "\n"
            begun = 0
        } else if (lines[i] ~ /^- /) {
            out = out ".IP \\(bu 2\n" line(styled(substr(lines[i], 3))) "\n"
            begun = 1
        } else {
            sub(/^ +/, "", lines[i])
            out = out line(styled(lines[i])) "\n"
            begun = 1
        }
    }
    sub(/(\.[PI]P\n)+$/, "", out)
    return out
}

function code(text,    lines, count, i, out) {
    sub(/\n+$/, "", text)
    count = split(text, lines, "\n")
    for (i = 1; i <= count; i++)
        out = out line(escape(lines[i])) "\n"
    return ".nf\n" out ".fi\n"
}

# The beginning of the first sentence, without marks.
function summary(comment,    text) {
    text = comment
    gsub(/\n/, " ", text)
    sub(/^ +/, "", text)
    if (match(text, /([.:;]( |$)| \()/))
        text = substr(text, 1, RSTART - 1)
    gsub(/`/, "", text)
    if (text ~ /^[A-Z][a-z ]/)
        text = tolower(substr(text, 1, 1)) substr(text, 2)
    return escape(text)
}

# ---- Pages -------------------------------------------------------------------------------------

function begin_page() {
    pages++
    page_section[pages] = section
    page_groups[pages] = 0
    page_names[pages] = ""
}

function add_group(comment, names, text,    page, group) {
    page = pages
    group = ++page_groups[page]
    group_comment[page, group] = comment
    group_names[page, group] = names
    group_code[page, group] = text
    page_names[page] = page_names[page] (page_names[page] == "" || names == "" ? "" : " ") names
}

# Ends a comment with its declarations.
function end_group() {
    if (names != "") {
        if (!page_open && comment !~ /^The same/)
            begin_page()
        page_open = 1
        add_group(comment, names, declarations)
    } else if (comment != "" && section != "" && !has_constants) {
        intro[section] = intro[section] (intro[section] == "" ? "" : "\n\n") comment
    }
    comment = names = declarations = ""
    has_constants = 0
}

function first_name(page,    all) {
    split(page_names[page], all, " ")
    return all[1]
}

function head(title, name, text) {
    return ".\\\" Generated from hvd.h.\n.TH " toupper(title) " 3 \"\" \"hvdrun " version "\" \"libhvd\"\n.nh\n.ad l\n" \
           ".SH NAME\n" name " \\- " text "\n"
}

function write_page(page,    file, all, count, i, group, listed) {
    file = folder "/" first_name(page) ".3"
    count = split(page_names[page], all, " ")
    for (i = 1; i <= count; i++)
        listed = listed (i > 1 ? ", " : "") all[i]
    printf "%s", head(first_name(page), listed, summary(group_comment[page, 1])) > file
    printf ".SH SYNOPSIS\n.nf\n#include <hvd.h>\n.fi\n" > file
    for (group = 1; group <= page_groups[page]; group++)
        printf ".PP\n%s", code(group_code[page, group]) > file
    printf ".SH DESCRIPTION\n" > file
    for (group = 1; group <= page_groups[page]; group++) {
        if (group_comment[page, group] == "")
            continue
        if (page_groups[page] > 1) {
            count = split(group_names[page, group], all, " ")
            for (i = 1; i <= count; i++)
                printf "%s\\fB%s\\fP", i == 1 ? ".TP\n" : ", ", all[i] > file
            printf "\n" > file
        }
        printf "%s", paragraphs(group_comment[page, group], page_groups[page] > 1 ? ".IP" : ".PP") > file
    }
    if (intro[page_section[page]] != "")
        printf ".SH NOTES\n%s", paragraphs(intro[page_section[page]], ".PP") > file
    printf ".SH SEE ALSO\n%s\n", related(page) > file
    close(file)
    count = split(page_names[page], all, " ")
    for (i = 2; i <= count; i++) {
        file = folder "/" all[i] ".3"
        printf ".so man3/%s.3\n", first_name(page) > file
        close(file)
    }
}

# The other pages of the section.
function related(page,    other, out) {
    out = ".BR hvd (3)"
    for (other = 1; other <= pages; other++)
        if (other != page && page_section[other] == page_section[page])
            out = out ",\n.BR " first_name(other) " (3)"
    return out
}

function write_overview(    file, i, page, all, count, text) {
    file = folder "/hvd.3"
    text = overview
    sub(/^libhvd: /, "", text)
    printf "%s.SH SYNOPSIS\n.nf\n#include <hvd.h>\n.fi\n.SH DESCRIPTION\n%s", head("hvd", "hvd", summary(text)),
           paragraphs(substr(text, index(text, "\n\n") + 2), ".PP") > file
    for (i = 1; i <= sections; i++) {
        printf ".SS %s\n", escape(section_name[i]) > file
        for (page = 1; page <= pages; page++)
            if (page_section[page] == section_name[i])
                printf ".TP\n.BR %s (3)\n%s\n", first_name(page), line(summary(group_comment[page, 1])) > file
    }
    printf ".SH CONSTANTS\n%s", constants > file
    close(file)
}

# ---- Lines of the header -----------------------------------------------------------------------

# X(NAME, value, ..., "text") of a list.
function add_constant(text,    parts, count, name, meaning) {
    sub(/^ *X\(/, "", text)
    match(text, /".*"/)
    meaning = substr(text, RSTART + 1, RLENGTH - 2)
    count = split(substr(text, 1, RSTART - 1), parts, /, */)
    name = parts[1]
    if (count > 3)
        meaning = meaning " (" parts[3] (parts[3] == 1 ? " byte)" : " bytes)")
    constants = constants ".TP\n\\fB" name "\\fP (" escape(parts[2]) ")\n" line(escape(meaning)) "\n"
}

# The comment above a list: without the form of its entries.
function begin_constants(    text) {
    if (comment == "" || has_constants)
        return
    has_constants = 1
    text = comment
    sub(/^X\([^)]*\)[.:] */, "", text)
    sub(/^ *\n?/, "", text)
    if (text != "")
        constants = constants paragraphs(toupper(substr(text, 1, 1)) substr(text, 2), ".PP")
}

# The name that a declaration gives: of a function, a struct, a type.
function declared(text,    name) {
    if (text ~ /^struct hvd_[a-z_]+[ ;]/) {
        name = text
        sub(/^struct /, "", name)
        sub(/[ ;].*/, "", name)
        return name
    }
    if (match(text, /\(\*hvd_[a-z_]+\)/))
        return substr(text, RSTART + 2, RLENGTH - 3)
    if (text ~ /^typedef/ && match(text, /hvd_[a-z_]+;/))
        return substr(text, RSTART, RLENGTH - 1)
    if (match(text, /hvd_[a-z_]+\(/))
        return substr(text, RSTART, RLENGTH - 1)
    return ""
}

function add_declaration(text,    name) {
    if (sub(/^HVD_API /, "", text))
        gsub(/\n        /, "\n", text)
    name = declared(text)
    if (name == "")
        return
    names = names (names == "" ? "" : " ") name
    declarations = declarations text "\n"
}

in_comment || /^\/\*/ {
    text = $0
    if (!in_comment) {
        end_group()
        sub(/^\/\*/, "", text)
    } else {
        sub(/^ \*( |$)/, "", text)
        if (text ~ /^ \*\/$/)
            text = "*/"
    }
    in_comment = text !~ /\*\/[ \t]*$/
    sub(/[ \t]*\*\/[ \t]*$/, "", text)
    if (text ~ /^ ---- /) {
        sub(/^ ---- /, "", text)
        sub(/ *-*$/, "", text)
        section = text
        section_name[++sections] = text
        next
    }
    sub(/^ /, "", text)
    if (text ~ /SPDX|clang-format/)
        next
    comment = comment (comment == "" ? "" : "\n") text
    next
}

in_declaration {
    declaration = declaration "\n" $0
    if ($0 ~ end_of_declaration) {
        in_declaration = 0
        add_declaration(declaration)
    }
    next
}

/^(HVD_API|struct|typedef) / {
    end_of_declaration = $0 ~ /^struct .*\{$/ ? "^};" : ";"
    declaration = $0
    if ($0 ~ end_of_declaration)
        add_declaration(declaration)
    else
        in_declaration = 1
    next
}

/^#define HVD_[A-Z]+_LIST\(X\)/ {
    text = $2
    sub(/_LIST.*/, "", text)
    constants = constants ".SS enum " tolower(text) "\n"
    next
}

/^ *X\(HVD_/ {
    begin_constants()
    add_constant($0)
    next
}

/^#define HVD_[A-Z_]+ +[0-9(-]/ {
    begin_constants()
    text = $0
    sub(/^[^\/]*\/\* */, "", text)
    sub(/ *\*\/$/, "", text)
    constants = constants ".TP\n\\fB" $2 "\\fP (" escape($3) ")\n" line(styled(text)) "\n"
    next
}

/^$/ {
    if (overview == "" && names == "") {
        overview = comment
        comment = ""
    }
    end_group()
    page_open = 0
}

END {
    end_group()
    for (page = 1; page <= pages; page++)
        write_page(page)
    write_overview()
}
