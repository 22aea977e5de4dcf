/* mpi.c: the transport over MPI; the only file that includes mpi.h. It is compiled into
 * libmnp_mpi.so, which comm.c loads on demand: nothing else needs an MPI, at build time or at run
 * time. Messages have a communicator of their own, so that a host program's cannot meet them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/transport.h"

typedef struct mpi_link {
    MPI_Comm job;
    int ours; /* MPI was started here and is ended here */
} mpi_link;

static MPI_Comm job_of(void *link) {
    return ((mpi_link *)link)->job;
}

static void error_text(int error, char *out, size_t size) {
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    int length = 0, started = 0;
    MPI_Initialized(&started);
    if (started) MPI_Error_string(error, text, &length);
    snprintf(out, size, "%s", text);
}

static int describe(mpi_link *l, transport_info *info) {
    MPI_Comm host;
    int length = 0, error = MPI_Comm_rank(l->job, &info->rank);
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "", name[MPI_MAX_PROCESSOR_NAME] = "";
    if (!error) error = MPI_Comm_size(l->job, &info->size);
    if (!error) error = MPI_Get_processor_name(name, &length);
    if (!error) error = MPI_Get_library_version(text, &length);
    if (!error)
        error = MPI_Comm_split_type(l->job, MPI_COMM_TYPE_SHARED, info->rank, MPI_INFO_NULL, &host);
    if (!error) {
        error = MPI_Comm_rank(host, &info->local);
        MPI_Comm_free(&host);
    }
    snprintf(info->host, sizeof info->host, "%.127s", name);
    snprintf(info->library, sizeof info->library, "%.*s", (int)strcspn(text, ",\n"), text);
    return error;
}

static int open_job(void **link, transport_info *info) {
    int started = 0, level = 0, error = MPI_Initialized(&started);
    mpi_link *l = calloc(1, sizeof *l);
    if (!l) return MPI_ERR_NO_MEM;
    l->ours = !started;
    if (!error && !started) error = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    if (!error) error = MPI_Comm_dup(MPI_COMM_WORLD, &l->job);
    if (!error) error = MPI_Comm_set_errhandler(l->job, MPI_ERRORS_RETURN);
    if (!error) error = describe(l, info);
    if (error) {
        free(l);
        return error;
    }
    *link = l;
    return 0;
}

static void close_job(void *link, int all) {
    mpi_link *l = link;
    if (all && l->ours) MPI_Finalize();
    free(l);
}

static void abort_job(void *link, int status) {
    MPI_Abort(job_of(link), status);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* MPI_Request is whatever the MPI likes; outside it is a pointer. Its few bytes, and those of a
 * link, come from malloc as MPI's own do, not from the context's allocator: a collective request
 * that was dropped lives as long as the process, and may outlive that allocator. */
typedef struct request {
    MPI_Request r;
    int collective; /* cannot be cancelled */
} request;

static request *make(int collective) {
    request *q = malloc(sizeof *q);
    if (q) *q = (request){.r = MPI_REQUEST_NULL, .collective = collective};
    return q;
}

static int keep(int error, request *made, void **out) {
    *out = error ? NULL : made;
    if (error) free(made);
    return error;
}

static int send_message(void *link, const void *from, size_t bytes, int rank, int tag, void **out) {
    request *q = make(0);
    if (!q) return MPI_ERR_NO_MEM;
    return keep(MPI_Isend(from, (int)bytes, MPI_BYTE, rank, tag, job_of(link), &q->r), q, out);
}

static int receive_message(void *link, void *to, size_t bytes, int rank, int tag, void **out) {
    request *q = make(0);
    if (!q) return MPI_ERR_NO_MEM;
    return keep(MPI_Irecv(to, (int)bytes, MPI_BYTE, rank, tag, job_of(link), &q->r), q, out);
}

static int sum_words(void *link, float *data, size_t count, void **out) {
    request *q = make(1);
    if (!q) return MPI_ERR_NO_MEM;
    return keep(
        MPI_Iallreduce(MPI_IN_PLACE, data, (int)count, MPI_FLOAT, MPI_SUM, job_of(link), &q->r), q,
        out);
}

static int test_request(void *link, void **at) {
    (void)link;
    request *q = *at;
    int done = 0, error = MPI_Test(&q->r, &done, MPI_STATUS_IGNORE);
    if (!error && done) {
        free(q);
        *at = NULL;
    }
    return error;
}

static void drop_request(void *link, void **at) {
    (void)link;
    request *q = *at;
    *at = NULL;
    if (q->collective) return; /* stays until the process ends, which is soon */
    MPI_Cancel(&q->r);
    MPI_Request_free(&q->r);
    free(q);
}

__attribute__((visibility("default"))) const transport *mnp_mpi_transport(void) {
    static const transport table = {TRANSPORT_VERSION, open_job,        close_job, abort_job,
                                    send_message,      receive_message, sum_words, test_request,
                                    drop_request,      error_text};
    return &table;
}
