/* wells.c: see wells.h. */
#include "cli/wells.h"

#include "base/rng.h"
#include "util/csv.h"

mnp_status wells_write(env *e, const char *path, const float *y, int64_t rows, int64_t cols,
                       int64_t count, uint64_t seed) {
    int64_t n = rows * cols, left = count;
    if (count < 1 || count > n)
        return env_fail(e, MNP_EINVAL, "an image of %lld x %lld has 1 to %lld pixels to measure",
                        (long long)rows, (long long)cols, (long long)n);
    rng_stream s = rng_stream_make((rng_key){seed}, RNG_SPLIT_EVAL, 0);
    buf table;
    csv_writer w;
    buf_init(&table, e);
    csv_writer_init(&w, &table, '\0');
    csv_put_text(&w, "row");
    csv_put_text(&w, "col");
    csv_put_text(&w, "value");
    csv_end_row(&w);
    for (int64_t i = 0; i < n && left > 0; i++) { /* each with the chance that it still has */
        if ((int64_t)rng_below(&s, (uint64_t)(n - i)) >= left) continue;
        left--;
        csv_put_integer(&w, i / cols);
        csv_put_integer(&w, i % cols);
        csv_put_float(&w, y[i]);
        csv_end_row(&w);
    }
    mnp_status status = table.status;
    if (status == MNP_OK) status = fsio_write(e, path, table.data, table.len);
    buf_free(&table);
    return status;
}
