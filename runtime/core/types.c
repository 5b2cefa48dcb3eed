/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of hvd.h: what its statuses and types are. All rooms of libhvd may call them. */
#include "include/hvd.h"

const char *hvd_status_text(int status)
{
    switch (status) {
#define STATUS_CASE(name, value, text) \
    case name: return text;
        HVD_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    default: return "not a status of libhvd";
    }
}

size_t hvd_type_bytes(int type)
{
    switch (type) {
#define TYPE_CASE(name, value, bytes, text) \
    case name: return bytes;
        HVD_TYPE_LIST(TYPE_CASE)
#undef TYPE_CASE
    default: return 0;
    }
}

const char *hvd_type_name(int type)
{
    switch (type) {
#define TYPE_CASE(name, value, bytes, text) \
    case name: return text;
        HVD_TYPE_LIST(TYPE_CASE)
#undef TYPE_CASE
    default: return NULL;
    }
}
