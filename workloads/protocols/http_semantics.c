// SPDX-License-Identifier: MIT
#include "workloads/protocols/http_semantics.h"

const struct protocol_operation http_operations[HTTP_METHODS] = {
    {.name = "get", .weight = 1},
    {.name = "put", .carries_value = true},
    {.name = "post", .carries_value = true},
    {.name = "head", .bodiless = true},
    {.name = "delete"},
};
const char *const http_methods[HTTP_METHODS] = {"GET", "PUT", "POST", "HEAD", "DELETE"};

enum reply_kind http_kind_of_status(unsigned status)
{
    // 304: what the asker has, by the conditions it gave, is what there is (RFC 9110, 15.4.5).
    return status / 100 == 2 || status == 304 ? REPLY_VALUE
           : status == 404 || status == 410   ? REPLY_MISS
           : status / 100 == 5                ? REPLY_SERVER_ERROR
                                              : REPLY_CLIENT_ERROR;
}

bool http_answers(unsigned operation, enum reply_kind kind)
{
    (void)operation;
    return kind != REPLY_STORED && kind != REPLY_NOT_STORED;
}
