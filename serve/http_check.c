/* http_check.c: is this request for us, from whom we answer, and in a form that we read? */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "serve/http_internal.h"
#include "util/text.h"

/* The fields that matter. Of most only one may be there: where two differ, two readers may see
 * different requests. */
typedef struct fields {
    const char *host, *origin, *authorization, *type, *length, *transfer, *encoding, *expect,
        *none_match, *site;
    bool lines; /* any Accept asks for them */
    const char *twice;
} fields;

static int note_field(void *user, int kind, const char *key, const char *value) {
    (void)kind;
    fields *f = user;
    const struct {
        const char *name;
        const char **place;
    } known[] = {
        {"Host", &f->host},
        {"Origin", &f->origin},
        {"Authorization", &f->authorization},
        {"Content-Type", &f->type},
        {"Content-Length", &f->length},
        {"Transfer-Encoding", &f->transfer},
        {"Content-Encoding", &f->encoding},
        {"Expect", &f->expect},
        {"If-None-Match", &f->none_match},
        {"Sec-Fetch-Site", &f->site},
    };
    if (!value) value = "";
    if (strcasecmp(key, "Accept") == 0) f->lines |= http_wants_lines(value);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        if (strcasecmp(key, known[k].name) != 0) continue;
        if (*known[k].place) f->twice = known[k].name;
        *known[k].place = value;
    }
    return MHD_YES;
}

/* ---- what is asked for ----------------------------------------------------------------------- */

static void find_route(http_request *r, const char *path) {
    const http_server *s = r->server;
    http_route *to = &r->route;
    to->call = strncmp(path, "/v1/", 4) == 0;
    if (!to->call) {
        to->asset = http_asset_find(path);
        return;
    }
    const char *name = path + 4, *verb;
    if (strcmp(name, "models") == 0) to->asset = &s->models;
    if (strcmp(name, "openapi.json") == 0) to->asset = &s->openapi;
    to->health = strcmp(name, "health") == 0;
    for (int k = 0; (verb = service_verb(k)); k++) {
        bool fixed = strcmp(verb, "models") == 0 || strcmp(verb, "openapi") == 0;
        if (!fixed && strcmp(name, verb) == 0) to->verb = verb;
    }
}

static int check_method(http_request *r, const char *method) {
    bool get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    if (!r->route.verb && !r->route.asset && !r->route.health)
        return http_refuse(r, 404,
                           "there is nothing at this path; /v1/openapi.json lists the calls");
    if (strcmp(method, "OPTIONS") == 0 && *r->origin) return 0;
    if (r->route.verb ? strcmp(method, "POST") == 0 : get) return 0;
    return http_refuse(r, 405, "this path answers %s", r->route.verb ? "POST" : "GET");
}

/* ---- who asks -------------------------------------------------------------------------------- */

/* A page elsewhere may know a name that leads here (DNS rebinding): only names that are ours. */
static int check_host(http_request *r, const char *field, http_host *host) {
    const http_server *s = r->server;
    if (!field || !http_read_host(field, host))
        return http_refuse(r, 400, "a request needs one Host field with a name or an address");
    if (http_is_loopback(host->name) || strcmp(host->name, s->own_name) == 0 ||
        (s->any_address && http_is_address(host->name)) || http_listed(s->o.hosts, host->name))
        return 0;
    return http_refuse(r, 403, "this server is not known by that name: start it with --host NAME");
}

/* A browser says which page a call comes from: our own, or one that was allowed. */
static int check_origin(http_request *r, const fields *f, const http_host *host) {
    if (f->origin && http_listed(r->server->o.allow_origin, f->origin)) {
        snprintf(r->origin, sizeof r->origin, "%s", f->origin);
        return 0;
    }
    bool foreign = f->origin && !http_same_origin(f->origin, host);
    if (r->route.call && f->site && strcmp(f->site, "same-origin") != 0)
        foreign |= strcmp(f->site, "none") != 0;
    if (!foreign) return 0;
    return http_refuse(r, 403, "pages of other origins may not call: start with --allow-origin O");
}

static int check_key(http_request *r, const char *authorization) {
    const char *key = r->server->o.key;
    if (!key || !r->route.call || r->route.health) return 0;
    if (authorization && http_has_key(authorization, key)) return 0;
    return http_refuse(r, 401, "this call needs the server's key: Authorization: Bearer KEY");
}

/* ---- what it brings -------------------------------------------------------------------------- */

/* The client's bytes of a request that is refused are read and dropped, so that it sees the answer;
 * not where there are too many, or where it waits for leave to send them. */
static void decide_closing(http_request *r, const fields *f) {
    int64_t bytes = 0, limit = service_limits_of(r->server->service)->body;
    bool known = !f->length || text_parse_int64(f->length, &bytes) == TEXT_OK;
    r->closes = !known || bytes > limit || f->expect || (f->length && f->transfer);
}

static int check_body(http_request *r, const fields *f) {
    int64_t bytes = 0, limit = service_limits_of(r->server->service)->body;
    if (f->length && f->transfer)
        return http_refuse(r, 400, "Content-Length and Transfer-Encoding exclude each other");
    if (f->transfer && strcasecmp(f->transfer, "chunked") != 0)
        return http_refuse(r, 400, "of transfer encodings only chunked is known");
    if (!r->route.verb) return 0;
    if (!f->type || !http_is_json(f->type) || f->encoding)
        return http_refuse(r, 415, "the body must be JSON: Content-Type: application/json");
    if (!f->length && !f->transfer)
        return http_refuse(r, 411, "a call needs a body: Content-Length or chunks");
    if (f->length && text_parse_int64(f->length, &bytes) != TEXT_OK)
        return http_refuse(r, 400, "Content-Length must be a number");
    if (bytes > limit)
        return http_refuse(r, 413, "a request may have %lld bytes, not %lld", (long long)limit,
                           (long long)bytes);
    return 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int check_size(http_request *r) {
    const mhd_connection_info *info =
        r->server->lib.get_connection_info(r->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (!info || info->header_bytes <= HTTP_HEADERS_MAX) return 0;
    return http_refuse(r, 431, "the header fields may have %d bytes", HTTP_HEADERS_MAX);
}

static int check_server(http_request *r) {
    if (r->connection->surplus)
        return http_refuse(r, 503, "%d connections are open, and more are not allowed",
                           r->server->o.connections);
    if (atomic_load(&r->server->stopping)) return http_refuse(r, 503, "the server is stopping");
    return 0;
}

int http_check(http_request *r, const char *url, const char *method) {
    fields f = {0};
    http_host host;
    text_plain(r->method, sizeof r->method, method);
    text_plain(r->path, sizeof r->path, url);
    r->server->lib.get_connection_values(r->mhd, MHD_HEADER_KIND, note_field, &f);
    find_route(r, url);
    r->lines = f.lines && r->route.verb;
    const http_asset *file = r->route.asset;
    r->fresh = file && file->tag && f.none_match && http_matches_tag(f.none_match, file->tag);

    int status = check_server(r);
    if (!status) status = check_size(r);
    if (!status && f.twice) status = http_refuse(r, 400, "the field %s is there twice", f.twice);
    if (!status) status = check_host(r, f.host, &host);
    if (!status) status = check_origin(r, &f, &host);
    if (!status) status = check_method(r, method);
    if (!status && strcmp(method, "OPTIONS") == 0) return r->status = 204;
    if (!status) status = check_key(r, f.authorization);
    if (!status) status = check_body(r, &f);
    if (status) decide_closing(r, &f);
    if (status == 503) r->closes = true;
    return status;
}
