/* http_header.h: what the server reads out of header fields. They come from anybody, so any text is
 * safe here, and what is not clearly right is wrong. */
#ifndef MNP_SERVE_HTTP_HEADER_H
#define MNP_SERVE_HTTP_HEADER_H

#include <stdbool.h>
#include <stddef.h>

/* host[:port] of a Host field or an origin. */
enum { HTTP_NAME_MAX = 256 };
typedef struct http_host {
    char name[HTTP_NAME_MAX]; /* in lower case, without a dot at the end; an IPv6 address in [] */
    int port;                 /* 0: none was named */
} http_host;

bool http_read_host(const char *text, http_host *out);
/* Is `origin`, "http://host[:port]" or https and nothing after it, the server that the request
 * calls `host`? A proxy may have taken TLS off, so the scheme is not compared. */
bool http_same_origin(const char *origin, const http_host *host);

/* Is it one of the names in "a,b,c"? */
bool http_listed(const char *list, const char *name);
/* A name or address of this machine that no name server can give away: localhost, 127.0.0.0/8,
 * [::1]. And any address in numbers. */
bool http_is_loopback(const char *name);
bool http_is_address(const char *name);

/* "application/json", with or without charset=utf-8. */
bool http_is_json(const char *content_type);
/* Does an Accept field ask for lines of JSON? */
bool http_wants_lines(const char *accept);
/* Does an If-None-Match field name this tag ("..." with its quotes)? */
bool http_matches_tag(const char *field, const char *tag);

/* "Bearer KEY" with this key. The time it takes does not depend on how much of the key is right. */
enum { HTTP_KEY_MAX = 256 };
bool http_has_key(const char *authorization, const char *key);

#endif
