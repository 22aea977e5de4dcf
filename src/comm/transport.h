/* transport.h: what carries messages between the processes of a job: the table that libmnp_mpi.so
 * exports, and that tests implement over threads. Functions return 0 or an error number of the
 * transport. Messages between two ranks with the same tag arrive in the order they were sent; one
 * thread of a process uses the transport. */
#ifndef MNP_COMM_TRANSPORT_H
#define MNP_COMM_TRANSPORT_H

#include <stddef.h>

enum { TRANSPORT_VERSION = 1, TRANSPORT_NAME = 128 };

typedef struct transport_info {
    int rank, size;
    int local; /* the rank among those of its host */
    char host[TRANSPORT_NAME], library[TRANSPORT_NAME];
} transport_info;

typedef struct transport {
    int version;
    int (*open)(void **link, transport_info *info);
    void (*close)(void *link, int all);    /* all: in good order, all ranks call it   */
    void (*abort)(void *link, int status); /* ends every process of the job, this too */
    /* Both return at once; the memory stays as it is until test() says done. */
    int (*send)(void *link, const void *from, size_t bytes, int rank, int tag, void **request);
    int (*recv)(void *link, void *to, size_t bytes, int rank, int tag, void **request);
    /* In place, on all ranks, in an order the transport chooses. */
    int (*sum)(void *link, float *data, size_t count, void **request);
    /* *request becomes NULL when the message has left or arrived. */
    int (*test)(void *link, void **request);
    void (*drop)(void *link, void **request); /* a request nobody waits for any more */
    void (*error_text)(int error, char *out, size_t size);
} transport;

/* The one exported symbol: const transport *mnp_mpi_transport(void). */
typedef const transport *(*transport_entry)(void);
#define TRANSPORT_SYMBOL "mnp_mpi_transport"

#endif
