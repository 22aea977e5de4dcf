/* microhttpd.h: the interface of GNU libmicrohttpd as far as the server uses it; it is loaded when
 * a server starts, so neither its headers nor the library are needed to build the command. */
#ifndef MNP_SERVE_MICROHTTPD_H
#define MNP_SERVE_MICROHTTPD_H

#include <sys/types.h>

#include "util/env.h"

typedef struct mhd_daemon mhd_daemon;
typedef struct mhd_connection mhd_connection;
typedef struct mhd_response mhd_response;

/* Of a connection; which member holds is known from the question. */
typedef union mhd_connection_info {
    int fd;
    size_t header_bytes;
    void *socket_context;
} mhd_connection_info;

enum { MHD_NO = 0, MHD_YES = 1 };
/* flags of start_daemon */
enum {
    MHD_USE_INTERNAL_POLLING_THREAD = 8,
    MHD_USE_ITC = 1024,
    MHD_ALLOW_SUSPEND_RESUME = 8192 | MHD_USE_ITC,
    MHD_USE_AUTO = 65536
};
/* options of start_daemon, each followed by its value */
enum {
    MHD_OPTION_END = 0,
    MHD_OPTION_CONNECTION_MEMORY_LIMIT = 1, /* size_t */
    MHD_OPTION_CONNECTION_LIMIT = 2,        /* unsigned */
    MHD_OPTION_CONNECTION_TIMEOUT = 3,      /* unsigned, seconds without a byte */
    MHD_OPTION_NOTIFY_COMPLETED = 4,        /* mhd_completed, void * */
    MHD_OPTION_LISTEN_SOCKET = 12,          /* int */
    MHD_OPTION_NOTIFY_CONNECTION = 27       /* mhd_notify, void * */
};
enum { MHD_HEADER_KIND = 1, MHD_RESPMEM_PERSISTENT = 0 };
enum {
    MHD_CONNECTION_INFO_CONNECTION_FD = 6,
    MHD_CONNECTION_INFO_SOCKET_CONTEXT = 7,
    MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE = 10
};
enum { MHD_CONNECTION_NOTIFY_STARTED = 0, MHD_CONNECTION_NOTIFY_CLOSED = 1 };
enum { MHD_REQUEST_TERMINATED_COMPLETED_OK = 0 };
#define MHD_SIZE_UNKNOWN UINT64_MAX
enum { MHD_CONTENT_READER_END_OF_STREAM = -1, MHD_CONTENT_READER_END_WITH_ERROR = -2 };

typedef int (*mhd_accept)(void *user, const void *address, unsigned bytes);
typedef int (*mhd_access)(void *user, mhd_connection *, const char *url, const char *method,
                          const char *version, const char *upload, size_t *upload_bytes,
                          void **request);
typedef int (*mhd_each_value)(void *user, int kind, const char *key, const char *value);
typedef void (*mhd_completed)(void *user, mhd_connection *, void **request, int how);
typedef void (*mhd_notify)(void *user, mhd_connection *, void **socket_context, int what);
typedef ssize_t (*mhd_read)(void *user, uint64_t at, char *out, size_t max);
typedef void (*mhd_read_end)(void *user);

typedef struct mhd_api {
#define LIBRARY(file)
#define FUNCTION(result, name, args) result(*name) args;
#include "serve/microhttpd.def"
} mhd_api;

/* MNP_EUNSUPPORTED with the package to install where it is not there. */
mnp_status mhd_load(env *e, mhd_api *out);

#endif
