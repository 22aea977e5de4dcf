/* http_listen.c: the socket that listens. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/http_internal.h"

typedef union place {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
} place;

static socklen_t place_bytes(const place *p) {
    return p->any.sa_family == AF_INET6 ? sizeof p->six : sizeof p->four;
}

static bool read_address(const char *text, int port, place *out) {
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, text, &out->four.sin_addr) == 1) {
        out->four.sin_family = AF_INET;
        out->four.sin_port = htons((uint16_t)port);
        return true;
    }
    if (inet_pton(AF_INET6, text, &out->six.sin6_addr) != 1) return false;
    out->six.sin6_family = AF_INET6;
    out->six.sin6_port = htons((uint16_t)port);
    return true;
}

bool http_address_is_loopback(const char *address) {
    place p;
    if (!read_address(address, 0, &p)) return false;
    return p.any.sa_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&p.six.sin6_addr)
                                       : ntohl(p.four.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* The address as a browser writes it, in a Host field and in what it opens. 0.0.0.0 is no address
 * to open: this machine is. */
static void put_names(http_server *s, const place *bound) {
    char text[INET6_ADDRSTRLEN];
    bool six = bound->any.sa_family == AF_INET6;
    const void *address = six ? (const void *)&bound->six.sin6_addr : &bound->four.sin_addr;
    int port = ntohs(six ? bound->six.sin6_port : bound->four.sin_port);
    inet_ntop(bound->any.sa_family, address, text, sizeof text);
    s->any_address = six ? IN6_IS_ADDR_UNSPECIFIED(&bound->six.sin6_addr)
                         : bound->four.sin_addr.s_addr == htonl(INADDR_ANY);
    snprintf(s->own_name, sizeof s->own_name, six ? "[%s]" : "%s", text);
    snprintf(s->url, sizeof s->url, "http://%s:%d/", s->any_address ? "localhost" : s->own_name,
             port);
}

static mnp_status refuse(http_server *s, int err) {
    const char *remedy = "";
    if (err == EADDRINUSE) remedy = ": another program listens there; say --port 0 for a free one";
    if (err == EACCES) remedy = ": take a port from 1024 on";
    if (err == EADDRNOTAVAIL) remedy = ": this machine does not have that address";
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
    return env_fail(&s->e, MNP_EIO, "cannot listen on %s, port %d: %s%s", s->o.address, s->o.port,
                    strerror(err), remedy);
}

mnp_status http_listen(http_server *s) {
    place p;
    int on = 1;
    if (!read_address(s->o.address, s->o.port, &p))
        return env_fail(&s->e, MNP_EINVAL, "'%s' is no address in numbers, such as 192.168.1.5",
                        s->o.address);
    s->fd = socket(p.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd < 0) return refuse(s, errno);
    socklen_t bytes = sizeof p;
    /* a port whose last connections are still fading is free */
    setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(s->fd, &p.any, place_bytes(&p)) != 0 || listen(s->fd, SOMAXCONN) != 0 ||
        getsockname(s->fd, &p.any, &bytes) != 0)
        return refuse(s, errno);
    put_names(s, &p);
    return MNP_OK;
}
