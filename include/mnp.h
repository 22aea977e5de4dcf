/* mnp.h: Markov Neural Processes in C: the core of libmnp. Chapters of their own, each of which
 * includes this file, are the other headers mnp_*.h; anything that is in none of them is private.
 * What holds for every call of all headers stands here, exceptions at the call.
 *
 * Failure
 *   - A call that can fail returns mnp_status. MNP_OK apart, nothing was changed, handed out or
 *     leaked: a handle's place holds NULL, a struct is untouched, an array holds no answer.
 *   - The reason is one line of text in the context: mnp_last_error(ctx). A trainer, predictor or
 *     player leaves it in the context it was made with. Where that handle itself is NULL, nobody
 *     can keep a text, and the status is all.
 *   - Every call checks its arguments. A NULL that is not allowed, a number that is not finite, a
 *     negative count, an unknown value of an enumeration, a size that no memory has: MNP_EINVAL.
 *     What cannot be checked, and is the caller's to see to: that a pointer is good for as many
 *     numbers as the call says, and that a handle was not destroyed.
 *   - Calls without a status take NULL as well: a _destroy and other void calls do nothing, numbers
 *     are 0 (NaN where 0 has a meaning), texts are "", or NULL where the comment says so.
 *   - MNP_ENOMEM and MNP_ECANCELLED may come from any call that works, MNP_ENUMERIC from any that
 *     computes with a model: what it would answer is not finite; MNP_EIO and MNP_EFORMAT from
 *     those with a file; MNP_EPEER from those that a job shares (mnp_job.h).
 *
 * Lifetime
 *   - A handle belongs to whoever made it, until its _destroy, once. Handles keep alive what they
 *     need: a trainer its context, model and data, a predictor and a player their context and
 *     model. So the order of the _destroy calls does not matter, and what was made from a handle
 *     works on after that handle's own _destroy.
 *   - The callbacks and the allocator of a context must therefore stay until the last handle made
 *     with it is destroyed, models and data included; those of one call until it returns.
 *   - Inputs are const and copied: strings, arrays and structs may go when the call returns.
 *   - A text or array that a call returns belongs to the handle it was asked of, and stays until
 *     that handle's _destroy, unless the comment says less.
 *
 * Threads
 *   - A handle is used by one thread at a time. A context is used by every call that takes it, and
 *     by every call on a trainer, predictor or player made with it: one thread at a time for all of
 *     these together.
 *   - Models and data are only read where they are const. Many threads may share one, each with a
 *     context of its own, as long as none of them trains the model or sets its notes. Each may
 *     destroy what it made at any time: what another thread's handles need stays.
 *   - Calls that take no handle may be made from any thread.
 *   - A context starts worker threads of its own (mnp_ctx_opts.threads). The allocator must allow
 *     calls from several threads at once; log, cancel and progress are called one at a time.
 *
 * Structs with a `size`
 *   - The caller sets it to sizeof the struct and zeroes the rest; zero in a field means the
 *     default. A NULL pointer to options means all defaults.
 *   - So both sides may grow. Smaller than the struct's first version is refused. A larger one, of
 *     a newer header, is taken as long as the fields not known here are zero; in a result they are
 *     set to zero. `size` itself is never changed.
 *
 * The library never prints, exits, reads the environment or keeps global state. */
#ifndef MNP_H
#define MNP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MNP_VERSION_MAJOR 0
#define MNP_VERSION_MINOR 1
#define MNP_VERSION_PATCH 0
#define MNP_VERSION       "0.1.0"

#if defined(__GNUC__)
#define MNP_API               __attribute__((visibility("default")))
#define MNP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define MNP_API
#define MNP_PRINTF(fmt, args)
#endif

/* ---- status ---------------------------------------------------------------------------------- */

typedef enum mnp_status {
    MNP_OK = 0,
    MNP_EINVAL,       /* an argument or option is wrong                         */
    MNP_ENOMEM,       /* memory could not be had                                */
    MNP_EIO,          /* the operating system refused a read or a write         */
    MNP_EFORMAT,      /* a file is not what it claims to be                     */
    MNP_EUNSUPPORTED, /* this build or this device cannot do it                 */
    MNP_EDEVICE,      /* the accelerator failed                                 */
    MNP_ENUMERIC,     /* a NaN or an infinity appeared where none may           */
    MNP_ECANCELLED,   /* the cancel callback said stop                          */
    MNP_EPEER         /* another process of the job failed or is silent         */
} mnp_status;

/* Static texts, never NULL; "unknown status" for a number that is none. */
MNP_API const char *mnp_status_name(mnp_status s);
MNP_API const char *mnp_version(void); /* MNP_VERSION of the library itself */

/* ---- context --------------------------------------------------------------------------------- */

typedef struct mnp_ctx mnp_ctx;

/* Replaces malloc and free. `alloc` returns memory aligned to `align` (a power of two) or NULL;
 * both may be called by several threads at once. Neither without the other. */
typedef struct mnp_allocator {
    void *(*alloc)(void *user, size_t bytes, size_t align);
    void (*free)(void *user, void *ptr);
    void *user;
} mnp_allocator;

typedef enum mnp_log_level { MNP_LOG_DEBUG, MNP_LOG_INFO, MNP_LOG_WARN } mnp_log_level;
typedef void (*mnp_log_fn)(void *user, mnp_log_level level, const char *text);
/* Asked between pieces of long work; a true answer ends it with MNP_ECANCELLED. Neither it nor log
 * may call the library. */
typedef bool (*mnp_cancel_fn)(void *user);

typedef struct mnp_ctx_opts {
    size_t size;             /* sizeof(mnp_ctx_opts)                  */
    int threads;             /* worker threads, up to 1024; 0 = all cores */
    mnp_allocator allocator; /* both NULL: the C library's            */
    mnp_log_fn log;
    void *log_user;
    mnp_cancel_fn cancel;
    void *cancel_user;
} mnp_ctx_opts;

/* opts may be NULL. Without a context there is no text: the status is all. */
MNP_API mnp_status mnp_ctx_create(const mnp_ctx_opts *opts, mnp_ctx **out);
/* Leaves the job (mnp_job.h), if the context is in one: then all ranks call it, and it waits for
 * them. Memory and workers go with the last handle that needs the context. */
MNP_API void mnp_ctx_destroy(mnp_ctx *ctx);
/* The last failure, one line; "" when there was none. Until the next call that uses ctx. */
MNP_API const char *mnp_last_error(const mnp_ctx *ctx);

/* ---- data ------------------------------------------------------------------------------------ */

/* One function's points: x is (n, x_dim) row by row; y is (n), or NULL where it is asked for. */
typedef struct mnp_set {
    int64_t n;
    const double *x, *y;
} mnp_set;

typedef struct mnp_data mnp_data;
typedef struct mnp_model mnp_model;

typedef enum mnp_split { MNP_TRAIN, MNP_VALID, MNP_TEST } mnp_split;

typedef struct mnp_data_opts {
    size_t size; /* sizeof(mnp_data_opts) */
    mnp_split split;
    int64_t functions;           /* families: how many; 0 = 50 000 / 5 000 / 5 000             */
    uint64_t seed;               /* of the family's functions, or of a file's hold-out         */
    double holdout;              /* files: share held out for MNP_VALID; 0 = 0.2, < 0 = none   */
    const char *function_column; /* files: column names "a,b"; NULL = guessed, and reported; several
                                    of this one tell curves apart together                   */
    const char *x_columns;
    const char *y_column;      /* several are several outputs: which one is an input then      */
    const char *cache;         /* folder that keeps generated sets; NULL = none              */
    const char *action_column; /* files: one more input for each of its values, 1 or 0 (bandits) */
    double test; /* tables: share held out for MNP_TEST; 0 = 0.2, or none with holdout < 0; < 0 =
                    none: MNP_TEST is then MNP_VALID, as in a table of fewer than 10 curves */
    const mnp_model *like; /* tables: read as the model's own was: its columns, units, categories;
                              where holdout and test are 0 its split too, or all of another table.
                              MNP_TEST: a category that it has not seen is the mean of the others,
                              with a warning                                                   */
    bool wide;             /* tables: one curve in a row                                       */
} mnp_data_opts;

/* `what` is a family with its variant ("monotonic", "periodic:noise_var=1e-3"), a CSV file, or
 * images: "images:DIR" (a folder of `mnp gen geofluvial` or of PNG files), "images:F.npy", or
 * "geofluvial:size=64" (drawn here). Images are functions of (row, col) in [-1, 1]. opts may be
 * NULL. MNP_EINVAL, MNP_EIO or MNP_EFORMAT name the file, and the line where there is one. */
MNP_API mnp_status mnp_data_open(mnp_ctx *ctx, const char *what, const mnp_data_opts *opts,
                                 mnp_data **out);
/* The same of a CSV file that is in memory, `bytes` of text. A model made for it keeps its columns
 * and units, but cannot open it again. */
MNP_API mnp_status mnp_data_open_memory(mnp_ctx *ctx, const char *text, size_t bytes,
                                        const mnp_data_opts *opts, mnp_data **out);
/* The file or folder that mnp_data_open() reads for `what`, a part of that text; NULL: a family or
 * images drawn here, also where a file has that name. */
MNP_API const char *mnp_data_path(const char *what);
/* `count` functions from arrays, each of at least one point, with x and y; 1 to 64 inputs.
 * MNP_EINVAL names the first bad number: it must be finite in single precision. */
MNP_API mnp_status mnp_data_from_sets(mnp_ctx *ctx, const mnp_set *sets, int64_t count,
                                      int64_t x_dim, mnp_data **out);
MNP_API void mnp_data_destroy(mnp_data *data);
MNP_API int64_t mnp_data_functions(const mnp_data *data);
MNP_API int64_t mnp_data_points(const mnp_data *data);
MNP_API int64_t mnp_data_x_dim(const mnp_data *data);
/* Images: every function is a grid of so many rows and columns, row by row; 0 where it is none.
 * Either place may be NULL. */
MNP_API void mnp_data_grid(const mnp_data *data, int64_t *rows, int64_t *cols);
MNP_API double mnp_data_noise(const mnp_data *data); /* sd that belongs on targets; NaN for NULL */
/* The seed it was opened with; 0 for arrays. */
MNP_API uint64_t mnp_data_seed(const mnp_data *data);
MNP_API const char *mnp_data_name(const mnp_data *data);
/* What was read, for people: three lines on curves, columns and ranges, then what else there is to
 * say; and what is doubtful about it, a line each, "" where nothing is. */
MNP_API const char *mnp_data_report(const mnp_data *data);
MNP_API const char *mnp_data_warnings(const mnp_data *data);
MNP_API const char *mnp_data_x_name(const mnp_data *data, int64_t k); /* NULL: there is no k-th */
MNP_API const char *mnp_data_y_name(const mnp_data *data);
/* The column that tells curves apart, "a/b" where two do so together; "" where there is none. */
MNP_API const char *mnp_data_group_name(const mnp_data *data);
/* Points of function i, as the data hold them: x (n, x_dim), y (n). They are float, as models
 * compute, where a mnp_set is double, as people measure. No place may be NULL. A column that single
 * precision would blur (times since 1970) is counted from its origin, which is 0 for all others:
 * raw = x + origin. */
MNP_API mnp_status mnp_data_function(mnp_ctx *ctx, const mnp_data *data, int64_t i, int64_t *n,
                                     const float **x, const float **y);
MNP_API double mnp_data_x_origin(const mnp_data *data, int64_t k);
MNP_API double mnp_data_y_origin(const mnp_data *data);
/* The preset of mnp and np that suits the data: "tiny" for a person's table of fewer than 5000
 * curves, "image" for images, otherwise "paper". Other processes have no "image". */
MNP_API const char *mnp_data_preset(const mnp_data *data);
MNP_API mnp_status mnp_data_write_csv(mnp_ctx *ctx, const mnp_data *data, const char *path);
/* Curves of a built-in family with their contexts and targets, as mnp_evaluate() with this seed and
 * the data set's own sizes splits them: arrays x, y, context, targets and mask in an .npz file
 * (docs/dev/formats.md). */
MNP_API mnp_status mnp_data_write_npz(mnp_ctx *ctx, const mnp_data *data, uint64_t seed,
                                      const char *path);
/* Name and one line of help of the k-th built-in family, static texts; NULL after the last. help
 * may be NULL. */
MNP_API const char *mnp_data_family(int k, const char **help);

/* ---- models ---------------------------------------------------------------------------------- */

/* process (NULL = "mnp") is one of mnp_model_process(), where "oracle" needs the data of a family
 * drawn from a Gaussian process; preset (NULL = what suits the data, as mnp_data_preset()) one of
 * mnp_model_preset(); options "T=5 rff=40" on top of it, or NULL. The data fix the number of
 * inputs, the frequency scale and, for files, the standardisation; NULL makes a model of one input,
 * unscaled. */
MNP_API mnp_status mnp_model_create(mnp_ctx *ctx, const char *process, const char *preset,
                                    const char *options, const mnp_data *data, uint64_t seed,
                                    mnp_model **out);
/* A model for `data` that starts from the weights of another one, with its options. Inside, x and y
 * of the new data get the mean and the spread that those of the old data had; the frequencies stay.
 * Its note "init" says so in a line. MNP_EINVAL: the two have not the same inputs, or the model has
 * nothing to learn. */
MNP_API mnp_status mnp_model_create_from(mnp_ctx *ctx, const mnp_model *from, const mnp_data *data,
                                         mnp_model **out);
/* The same with "attend=on" (attend_width, attend_blocks) or other options of its training
 * (train_score, objective, kl, kl_weight). What is added to its networks starts at zero, so that
 * the model says at first what `from` says; new networks start from the seed. NULL changes nothing.
 * MNP_EINVAL: another option, or a weight would change its shape or be gone. */
MNP_API mnp_status mnp_model_extend(mnp_ctx *ctx, const mnp_model *from, const char *options,
                                    const mnp_data *data, uint64_t seed, mnp_model **out);
MNP_API mnp_status mnp_model_load(mnp_ctx *ctx, const char *path, mnp_model **out);
MNP_API mnp_status mnp_model_save(mnp_ctx *ctx, const mnp_model *model, const char *path);
/* A file of about half the size, for the web and other slow lines: the matrices of networks have
 * half precision (F16), which rounds a weight by 2^-11 of the largest in its matrix at most.
 * Biases, frequencies, scales and notes stay as they are, a matrix that half precision does not
 * hold so well too, and all of a process that is no network (gp, cbp, oracle, lmm). */
MNP_API mnp_status mnp_model_save_half(mnp_ctx *ctx, const mnp_model *model, const char *path);
/* The same from memory: `bytes` holds a model file. And to memory: its bytes into a caller's block
 * of `size`, and their number into `length`. out may be NULL with size 0, to learn the number;
 * MNP_EINVAL where size is less. */
MNP_API mnp_status mnp_model_load_memory(mnp_ctx *ctx, const void *bytes, size_t size,
                                         mnp_model **out);
MNP_API mnp_status mnp_model_save_memory(mnp_ctx *ctx, const mnp_model *model, void *out,
                                         size_t size, size_t *length);
MNP_API void mnp_model_destroy(mnp_model *model);
/* Numbers that are learned; of lmm_average=on those of all its laws together. */
MNP_API int64_t mnp_model_parameters(const mnp_model *model);
MNP_API int64_t mnp_model_x_dim(const mnp_model *model);
/* T; splines of cbp; 1 for predictors; 0 for gp. */
MNP_API int64_t mnp_model_steps(const mnp_model *model);
MNP_API int64_t mnp_model_latent(const mnp_model *model); /* width of one z_t; 0: none */
/* Whether points are independent given the context (cnp, tnp, convcnp): then the model is no
 * process, and a score is the sum of the points' own. */
MNP_API bool mnp_model_factorises(const mnp_model *model);
/* Whether its maps see the context themselves (attend=on): each context then has a process of its
 * own, which the network draws; refine, exact and evidences are MNP_EUNSUPPORTED. */
MNP_API bool mnp_model_attends(const mnp_model *model);
/* All options as text; owned by the model. */
MNP_API const char *mnp_model_options(const mnp_model *model);
/* How it was made: "data", "seed", "steps", ...; NULL where it is not noted. The text stays until
 * that note is set again. */
MNP_API const char *mnp_model_note(const mnp_model *model, const char *key);
/* value NULL: the note goes. Keys that begin with "mnp." are the file's own and refused. */
MNP_API mnp_status mnp_model_set_note(mnp_ctx *ctx, mnp_model *model, const char *key,
                                      const char *value);
MNP_API const char *mnp_model_note_key(const mnp_model *model, int k); /* NULL after the last */

/* How far a raw value lies from the centre of the training data, in units of its spread: of input
 * k, or of the output where k is the number of inputs. Beyond MNP_REACH the model refuses it,
 * beyond MNP_FAR its answers say little. NaN where there is no such k. */
#define MNP_REACH 16777216.0 /* 2^24 */
#define MNP_FAR   100.0
MNP_API double mnp_model_distance(const mnp_model *model, int64_t k, double value);

/* What a Gaussian process has learned, in a line and in the units of its data: "periodic: sd 1.1,
 * period 8 in t, ...; noise: sd 0.1 in y". Into a caller's buffer, cut to `size` bytes. Returns the
 * length it would have; 0: other models, whose numbers say nothing by themselves. */
MNP_API size_t mnp_model_learned(const mnp_model *model, char *out, size_t size);
/* Of a model of a person's table: the range of input k, or of the output where k is the number of
 * inputs, over the curves it was trained on. Of a built-in family: the range that its inputs come
 * from. False: not known, or a category. And a raw value as the table would have it, a date where
 * those are dates, into a caller's buffer, cut to `size` bytes. */
MNP_API bool mnp_model_range(const mnp_model *model, int64_t k, double *lo, double *hi);
MNP_API void mnp_model_text(const mnp_model *model, int64_t k, double value, char *out,
                            size_t size);

/* The most points that its training showed as a context; 0: not known. And the standard deviation
 * of the noise on y, of a built-in family or of river images; NaN: not known, or there is none. */
MNP_API int64_t mnp_model_context_max(const mnp_model *model);
MNP_API double mnp_model_noise(const mnp_model *model);

/* The model's own data again: opened as its notes say, with the seed and the columns of that time.
 * functions as in mnp_data_opts, but 0 for MNP_TRAIN = as many as at that time; cache may be NULL.
 * MNP_EINVAL: it was trained on arrays, or does not say on what; beside it what mnp_data_open()
 * finds wrong. */
MNP_API mnp_status mnp_data_reopen(mnp_ctx *ctx, const mnp_model *model, mnp_split split,
                                   int64_t functions, const char *cache, mnp_data **out);

/* A table of points for a model: what is known of one or several curves, or the places to ask about
 * (with_y false). It is read as the model's own table was, with its columns, dates, categories and
 * outputs; the column names of opts, which may be NULL, stand in for those that are called
 * otherwise, and its other fields are not looked at. Rows stay in their order. With y a row without
 * y is dropped. Places may leave out what is constant in a curve, for the context to say, and which
 * of several outputs is meant: then each row becomes one for each. A column of opts that tells
 * curves apart may be absent from places. MNP_EFORMAT names the line. MNP_EINVAL: a context holds
 * several curves of a model without a group column. */
typedef struct mnp_table mnp_table;
MNP_API mnp_status mnp_table_open(mnp_ctx *ctx, const mnp_model *model, const char *path,
                                  bool with_y, const mnp_data_opts *opts, mnp_table **out);
/* The same of a CSV file that is in memory, `bytes` of text; messages call it `name`. */
MNP_API mnp_status mnp_table_open_memory(mnp_ctx *ctx, const mnp_model *model, const char *name,
                                         const char *text, size_t bytes, bool with_y,
                                         const mnp_data_opts *opts, mnp_table **out);
/* Points with y to score given those of `context` (NULL: none). What is constant in a curve may be
 * left out here too: it is then filled in from the context's curve of that name, or from its only
 * one where just one of the tables has a group column. MNP_EFORMAT also where the context does not
 * say it, and where several curves meet a table without a group column. */
MNP_API mnp_status mnp_table_open_targets(mnp_ctx *ctx, const mnp_model *model, const char *path,
                                          const mnp_table *context, const mnp_data_opts *opts,
                                          mnp_table **out);
/* Places that no file holds. A grid: "lo:hi:n" for each input that changes within a curve, or for
 * each that is no category, joined by commas, the last one running fastest; lo and hi may be dates.
 * And places without a group column, asked of every curve of a context. */
MNP_API mnp_status mnp_table_grid(mnp_ctx *ctx, const mnp_model *model, const char *grid,
                                  mnp_table **out);
MNP_API mnp_status mnp_table_spread(mnp_ctx *ctx, const mnp_model *model, const mnp_table *places,
                                    const mnp_table *context, mnp_table **out);
MNP_API void mnp_table_destroy(mnp_table *table);
MNP_API int64_t mnp_table_rows(const mnp_table *table);
/* The rows: x (rows, inputs) and y (rows) as the model takes them. y is NULL where it was not read;
 * x is NaN where the context has to say it. */
MNP_API const double *mnp_table_x(const mnp_table *table);
MNP_API const double *mnp_table_y(const mnp_table *table);
/* How many curves there are, the number of a row's, -1 where there is no such row, and the name of
 * the k-th: "" where the table has no group column, NULL where there is no k-th. */
MNP_API int64_t mnp_table_groups(const mnp_table *table);
MNP_API int64_t mnp_table_group(const mnp_table *table, int64_t row);
MNP_API const char *mnp_table_group_name(const mnp_table *table, int64_t k);
MNP_API int64_t mnp_table_find(const mnp_table *table, const char *name); /* by its name, or -1 */
MNP_API int64_t mnp_table_group_rows(const mnp_table *table, int64_t k);  /* rows of the k-th */
/* A value that the model gives for a row, in the units of the row's output. NaN: no such row. */
MNP_API double mnp_table_raw(const mnp_table *table, int64_t row, double y);
/* What was read, and what is doubtful about it: other names than the model's, x or y outside what
 * it was trained on, values that look like other units, categories it has not seen. A line each. */
MNP_API const char *mnp_table_report(const mnp_table *table);
MNP_API const char *mnp_table_warnings(const mnp_table *table);
/* Its cells as they stand in the file: how many columns, the name of the k-th, what it was taken
 * for, and the text of a row in it. NULL and MNP_COLUMN_OTHER where there is none. */
typedef enum mnp_column {
    MNP_COLUMN_OTHER, /* not used */
    MNP_COLUMN_GROUP,
    MNP_COLUMN_NUMBER, /* an input: a number, a date, a category */
    MNP_COLUMN_DATE,
    MNP_COLUMN_CATEGORY,
    MNP_COLUMN_Y
} mnp_column;
MNP_API int64_t mnp_table_columns(const mnp_table *table);
MNP_API const char *mnp_table_column(const mnp_table *table, int64_t k);
MNP_API mnp_column mnp_table_column_is(const mnp_table *table, int64_t k);
MNP_API const char *mnp_table_cell(const mnp_table *table, int64_t row, int64_t k);
/* The column that number i of x comes from; -1: it was left out, or there is no such number. */
MNP_API int64_t mnp_table_x_column(const mnp_table *table, int64_t i);

/* One of the model's weights, a matrix: entry (r, c) is data[r * stride + c]. The numbers are the
 * model's own and stay until its _destroy: read them, and see training change them. */
typedef struct mnp_tensor {
    size_t size;      /* sizeof(mnp_tensor)                                      */
    const char *name; /* as in the model file: "flow.3.0.wx"                     */
    int64_t rows, cols, stride;
    const float *data;
    bool trained; /* false: drawn once and fixed, like the Fourier frequencies */
} mnp_tensor;

MNP_API const char *mnp_model_tensor_name(const mnp_model *model, int64_t k); /* NULL: no k-th */
/* MNP_EINVAL: there is none of that name. */
MNP_API mnp_status mnp_model_tensor(mnp_ctx *ctx, const mnp_model *model, const char *name,
                                    mnp_tensor *out);

/* The training step as it is run, one line per operation, for a function of n points with up to m
 * of context (0 <= m <= n); into a caller's buffer, cut to `size` bytes. Returns the length it
 * would have (like snprintf), so out may be NULL with size 0; 0 on failure, with a text. */
MNP_API size_t mnp_model_plan(mnp_ctx *ctx, const mnp_model *model, int64_t n, int64_t m, char *out,
                              size_t size);

/* ---- training -------------------------------------------------------------------------------- */

typedef struct mnp_trainer mnp_trainer;

typedef struct mnp_train_opts {
    size_t size;         /* sizeof(mnp_train_opts)                                     */
    const char *options; /* "steps=2000 batch=50 lr=1e-3 context=2:20"; see mnp help train */
    uint64_t seed;
    const char *device; /* see mnp_predictor_create(); NULL = "cpu". "cuda:auto" begins in
                         * tf32 and goes on in fp32 once that is seen to cost score   */
} mnp_train_opts;

typedef struct mnp_train_report {
    size_t size;             /* sizeof(mnp_train_report)                          */
    int64_t step, steps;     /* done, and the length of the schedule, or where patience ended it */
    double loss, kl, loglik; /* of the last batch, per point, raw units           */
    double grad_norm, rate;
    double valid, best_valid; /* validation score; NaN and -inf before the first   */
    int64_t best_step;
    /* On a GPU in tf32 or bf16 a step is now and then computed in fp32, too, with the same weights
     * and functions. Of the last such step; NaN before, and where products are exact: */
    double rounding;     /* |g - g32| / |g32|, how far the gradient is from that in fp32          */
    double sampling;     /* the standard deviation of g32 from batch to batch, over |g32|         */
    double shift;        /* loss - loss in fp32, nats per point                                   */
    int64_t rounding_at; /* the step after which they were found to cost score; 0: they were not  */
    int64_t exact_from;  /* precision auto: the step from which it computes in fp32; 0: not yet   */
} mnp_train_report;

/* The model is trained in place: nobody else may use it during mnp_trainer_run(). valid and opts
 * may be NULL. The device is found out here: see mnp_predictor_create(). */
MNP_API mnp_status mnp_trainer_create(mnp_ctx *ctx, mnp_model *model, const mnp_data *train,
                                      const mnp_data *valid, const mnp_train_opts *opts,
                                      mnp_trainer **out);
MNP_API void mnp_trainer_destroy(mnp_trainer *trainer);
/* Up to `steps` more steps, 0 or more, never beyond the schedule. report may be NULL; it is filled
 * whatever comes of the steps, and after MNP_ECANCELLED, or MNP_ENUMERIC (a loss that is not
 * finite: the weights are those before that step), the run can be saved and go on. */
MNP_API mnp_status mnp_trainer_run(mnp_trainer *trainer, int64_t steps, mnp_train_report *report);
MNP_API mnp_status mnp_trainer_report(const mnp_trainer *trainer, mnp_train_report *out);
/* The state of the run, for mnp_trainer_resume() of a trainer made with the same arguments. A file
 * that is refused changes nothing. new_schedule: its weights, and step 0 of this trainer's own
 * schedule. */
MNP_API mnp_status mnp_trainer_save(mnp_trainer *trainer, const char *path);
MNP_API mnp_status mnp_trainer_resume(mnp_trainer *trainer, const char *path, bool new_schedule);
/* The best weights so far, as a model file; and: put them into the model. */
MNP_API mnp_status mnp_trainer_save_best(mnp_trainer *trainer, const char *path);
MNP_API mnp_status mnp_trainer_save_last(mnp_trainer *trainer, const char *path);
MNP_API mnp_status mnp_trainer_take_best(mnp_trainer *trainer);
MNP_API size_t mnp_trainer_memory(const mnp_trainer *trainer); /* bytes of the compiled step */
/* What is doubtful about the run so far (rounded products cost score, which comes first; it
 * overfits, it diverged), a line each, into a caller's buffer, cut to `size` bytes; "" where
 * nothing is. */
MNP_API void mnp_trainer_warnings(const mnp_trainer *trainer, char *out, size_t size);

/* ---- scoring --------------------------------------------------------------------------------- */

typedef enum mnp_protocol {
    MNP_STRICT, /* score the points outside the context */
    MNP_AUTHORS /* score all points, the context too    */
} mnp_protocol;

/* Targets in turn, each given the context and the targets before it: in which order. */
typedef enum mnp_order {
    MNP_ORDER_RANDOM,
    MNP_ORDER_X /* by rising first input */
} mnp_order;

/* What a call finds of one function (mnp_eval_opts.each): what it does not find is NaN or NULL.
 * Arrays are (targets), in the order of the function's targets, and the call's own: copy them. */
typedef struct mnp_function_scores {
    size_t size; /* sizeof(mnp_function_scores) */
    int64_t function, context, targets;
    double joint;             /* log p(targets | context), nats per target: as mnp_scores.loglik, or
                               * mnp_predictive.joint_exact, or mnp_truth.joint */
    double in_turn, order_sd; /* as in mnp_scores, of this function */
    double covered50, covered80, covered95;
    const double *marginal; /* log-density of each target by itself: of draws, or of the truth */
    const double *mixture;  /* log of the mean of p(y | z); exact for a model without latents  */
    const double *crps;
    const double *mean, *sd; /* of the draws, or of the true distribution */
    const double *entropy;   /* of the true distribution, nats            */
    /* of mnp_predictive.joint_exact: standard error and estimated bias, share of hurried runs */
    double joint_error, joint_bias, joint_hurried;
} mnp_function_scores;

typedef struct mnp_eval_opts {
    size_t size;       /* sizeof(mnp_eval_opts)                                          */
    int64_t functions; /* 0 = all                                                        */
    int64_t samples;   /* importance samples L, up to 131 072; 0 = 20                    */
    int64_t draws;     /* for coverage and CRPS; 0 = 39, < 0 = none                      */
    mnp_protocol protocol;
    int64_t context_lo, context_hi; /* sizes; both 0 = the data set's own                */
    uint64_t seed;
    const char *device; /* see mnp_predictor_create(); NULL = "cpu" */
    void (*progress)(void *user, int64_t done, int64_t total); /* or NULL */
    void *progress_user;
    /* images */
    const char
        *context;     /* "uniform:40", "uniform:20:160", "top", "left" or "center"; NULL: sizes */
    int64_t targets;  /* pixels scored, chosen at random; 0 = all                     */
    int64_t proposal; /* pixels the posterior sees beside the context; 0 = 2048       */
    double noise;     /* sd added to targets; 0 = the data set's own, < 0 = none      */
    int64_t seen;     /* images: pixels of a larger context the model looks at; 0 = 1024 */
    /* instead of context_lo and context_hi: every function is scored with each of these sizes, at
     * most MNP_SCORE_BINS in rising order; a larger context has the points of a smaller one */
    const int64_t *sizes; /* (n_sizes), or NULL */
    int64_t n_sizes;
    int64_t orders;  /* > 0: score the targets in turn too, in so many orders (MNP_STRICT)  */
    mnp_order order; /* see mnp_score_in_turn()                                            */
    /* called with the scores of each function, in their order; or NULL. In a job every rank is told
     * of its own part. Not of images */
    void (*each)(void *user, const mnp_function_scores *scores);
    void *each_user;
    bool no_truth; /* leave out what the truth scores: it may take longer than the model */
} mnp_eval_opts;

enum { MNP_SCORE_BINS = 8 };

/* Nats per scored point. */
typedef struct mnp_scores {
    size_t size;       /* sizeof(mnp_scores) */
    double loglik, se; /* importance-weighted bound, standard error over functions */
    double elbo, kl, ess;
    double loglik_prior_sampling, se_prior_sampling;
    double loglik_true, se_true; /* the process that made the data (families, MNP_STRICT); or NaN */
    double coverage50, coverage80, coverage95, crps;
    int64_t functions, points;
    int64_t samples; /* 0: the process has no latents, and its scores are exact */
    int bins;        /* the score by context size */
    int64_t bin_lo[MNP_SCORE_BINS], bin_hi[MNP_SCORE_BINS], bin_functions[MNP_SCORE_BINS];
    double bin_loglik[MNP_SCORE_BINS], bin_se[MNP_SCORE_BINS];
    /* images: mean over pixels of log p(pixel | context), each by itself, latents drawn from the
     * context; of the pixels that the proposal did not see; else NaN */
    double loglik_pixels, se_pixels;
    /* targets in turn (mnp_eval_opts.orders): the mean over orders and functions, its standard
     * error, and the standard deviation over the orders of a function, as a root mean square; else
     * NaN */
    double loglik_in_turn, se_in_turn, order_sd;
    /* on a device with rounded products (tf32, bf16, mixed): what the score of the first 64
     * functions gains in fp32, in nats per point; NaN elsewhere, and where it could not be found
     * (for want of memory, say), which is logged as a warning */
    double rounding;
} mnp_scores;

/* opts may be NULL. */
MNP_API mnp_status mnp_evaluate(mnp_ctx *ctx, const mnp_model *model, const mnp_data *data,
                                const mnp_eval_opts *opts, mnp_scores *out);

/* A score that a model keeps as its note "score.strict" or "score.authors", rounded to 4 decimals:
 * "2.3862 +- 0.0063 on 5000 functions, 20 samples, seed 0". It speaks of the model's own data. */
typedef struct mnp_noted_score {
    size_t size; /* sizeof(mnp_noted_score) */
    double loglik, se;
    int64_t functions; /* 0: the model keeps no score of that protocol */
    int64_t samples;
    uint64_t seed;
} mnp_noted_score;

/* score NULL: the note goes. loglik is within 1e15, se too and not negative (NaN: not known),
 * functions at least 1. */
MNP_API mnp_status mnp_model_set_score(mnp_ctx *ctx, mnp_model *model, mnp_protocol protocol,
                                       const mnp_noted_score *score);
/* MNP_EFORMAT: the note is no score. */
MNP_API mnp_status mnp_model_score(mnp_ctx *ctx, const mnp_model *model, mnp_protocol protocol,
                                   mnp_noted_score *out);

/* log p(targets | context) of one function, in nats: the bound with `samples` draws, 1 to 131 072,
 * and the prior-sampling estimate. context may be NULL or empty, bound and prior may be NULL. */
MNP_API mnp_status mnp_score_set(mnp_ctx *ctx, const mnp_model *model, const mnp_set *context,
                                 const mnp_set *targets, int64_t samples, uint64_t seed,
                                 double *bound, double *prior);

typedef struct mnp_turn_opts {
    size_t size; /* sizeof(mnp_turn_opts) */
    mnp_order order;
    int64_t orders; /* of a score: random ones, 0 = 1; by x there is one */
    uint64_t seed;
    const char *device; /* see mnp_predictor_create(); NULL = "cpu" */
} mnp_turn_opts;

/* The same by the chain rule, sum over k of log p(y_k | context, y_1 .. y_{k-1}), for models
 * without latents: scores (orders). A process gives the same in every order; cnp, tnp and convcnp,
 * which predict each point by itself, have a joint density by this alone, which depends on the
 * order. context and opts may be NULL. MNP_EUNSUPPORTED with latents. */
MNP_API mnp_status mnp_score_in_turn(mnp_ctx *ctx, const mnp_model *model, const mnp_set *context,
                                     const mnp_set *targets, const mnp_turn_opts *opts,
                                     double *scores);
/* Draws with noise at x (n, X), each place given the context and those that were drawn before it:
 * y (samples, n). Every draw has an order of its own (MNP_ORDER_RANDOM). */
MNP_API mnp_status mnp_sample_in_turn(mnp_ctx *ctx, const mnp_model *model, const mnp_set *context,
                                      const double *x, int64_t n, const mnp_turn_opts *opts,
                                      int64_t samples, double *y);

/* How well the laws of a stochastic process hold, as numbers (docs/dev/math.md):
 *   permutation  largest change of a point's log-density when the set is reordered
 *   marginal     largest relative change of a point's term when other targets are dropped, given z
 *   conditional  root mean square over functions of log p(A|C) + log p(B|C,A) - log p(B|C) -
 *                log p(A|C,B) per point, without the noise of the estimates; and its standard error
 *   conditional_noise  that noise: the standard deviation of one function's estimate
 * and, from mnp_check_laws() of mnp_check.h alone,
 *   conditional_errors  the mean square of that gap divided by its own standard error: within 2, it
 *                       cannot be told from nothing
 *   joint        mean over functions of log p(A,B|C) - log p(A|C) - log p(B|C,A) per point
 *   half_...     the same with half_samples, half of the samples
 *   hurried      exact: runs of the sampler whose gradients did not last */
typedef struct mnp_laws {
    size_t size; /* sizeof(mnp_laws) */
    double permutation, marginal;
    double conditional, conditional_se;
    int64_t functions, samples;
    double conditional_noise;
    double conditional_errors, joint, joint_se;
    int64_t half_samples;
    double half_conditional, half_conditional_se, half_conditional_noise;
    double half_joint, half_joint_se;
    int64_t hurried;
} mnp_laws;

/* Over `functions` of the data, with `samples` draws for each estimate; both 1 or more. */
MNP_API mnp_status mnp_check(mnp_ctx *ctx, const mnp_model *model, const mnp_data *data,
                             int64_t functions, int64_t samples, uint64_t seed, mnp_laws *out);

/* ---- prediction ------------------------------------------------------------------------------ */

typedef struct mnp_predictor mnp_predictor;

typedef enum mnp_base {
    MNP_BASE_ZERO,  /* push y_0 = 0: the smooth function (gp: a draw of the function) */
    MNP_BASE_NORMAL /* push iid normals: with the process's own noise                 */
} mnp_base;

/* device (NULL = "cpu") is "cpu", "cuda", or "auto": cuda where it works, otherwise cpu and a line
 * in the log. cuda and auto take a precision: "cuda:tf32", "cuda:bf16", "cuda:fp32" (the default);
 * and kernels: ":fused" (the default) runs whole parts of the paper's model as one kernel each,
 * ":general" op by op, as for any other shape ("cuda:tf32:general"). It is found out here, once:
 * MNP_EINVAL for a name that does not exist, with those that do; MNP_EUNSUPPORTED or MNP_EDEVICE
 * where cuda cannot work, with the reason. */
MNP_API mnp_status mnp_predictor_create(mnp_ctx *ctx, const mnp_model *model, const char *device,
                                        mnp_predictor **out);
MNP_API void mnp_predictor_destroy(mnp_predictor *p);
/* The observed set: replace it, add a point, forget it. An empty set, or NULL, is the prior over
 * functions. Any of these makes the drawn latents void; a failure leaves set and latents as they
 * were. */
MNP_API mnp_status mnp_predictor_condition(mnp_predictor *p, const mnp_set *context);
MNP_API mnp_status mnp_predictor_observe(mnp_predictor *p, const double *x, double y);
MNP_API void mnp_predictor_reset(mnp_predictor *p);
MNP_API int64_t mnp_predictor_observed(const mnp_predictor *p);
/* Draw S functions (their latents) from q(z | set), 1 to 131072 of them; they stay the same for all
 * later queries. A process without latents (gp, cbp, oracle) draws anew, jointly over the targets
 * of each query. */
MNP_API mnp_status mnp_predictor_draw_latents(mnp_predictor *p, uint64_t seed, int64_t samples);

/* How the functions are drawn (docs/user/consistency.md). */
typedef enum mnp_condition {
    MNP_NETWORK, /* from q(z | set), the inference network: at once, an approximation          */
    MNP_REFINE,  /* chains that start there and move towards p(z | set), one for each function */
    MNP_EXACT    /* particles tempered from q(z | set) to p(z | set), the conditional of one   */
                 /* stochastic process; log p(set) is estimated on the way                     */
} mnp_condition;

typedef struct mnp_draw_opts {
    size_t size; /* sizeof(mnp_draw_opts) */
    mnp_condition condition;
    int64_t samples;   /* functions, 1 to 131 072; 0 = 100                                    */
    int64_t gradients; /* of each particle, in moves of 5; 0 = 30 (refine), 200 at most (exact) */
    uint64_t seed;
    /* Gradients of each particle; of a set of 512 points or more those of single particles, and one
     * more of each. On the CPU it is called many times during such a gradient, and the cancel
     * callback ends the work within seconds; likewise, in functions, while a network with attention
     * draws. NULL: nobody is told. */
    void (*progress)(void *user, int64_t done, int64_t total);
    void *progress_user;
    /* network: the noise of the latents is cos(angle) times that of `seed` plus sin(angle) times
     * that of `towards`. For every angle that is standard normal noise again: as the angle grows,
     * each function moves along a great circle of functions of the same law. 0: that of `seed`, bit
     * for bit; pi / 2: that of `towards`. The noise of measurements stays that of `seed`. Other
     * angles than 0 need two different seeds. */
    uint64_t towards;
    double angle; /* in radians */
} mnp_draw_opts;

enum {                        /* mnp_draw_report.warnings */
       MNP_DRAW_RHAT = 1,     /* the particles had not settled: rhat above 1.1                */
       MNP_DRAW_REJECTED = 2, /* acceptance below 0.3                                         */
       MNP_DRAW_FIT = 4,      /* by 0.1 nats per point a worse fit than the network's draws   */
       MNP_DRAW_HURRIED = 8,  /* the gradients did not last for as many temperatures as wanted */
       MNP_DRAW_FEW = 16,     /* worth less than a tenth of their number                      */
       MNP_DRAW_MISSED = 32   /* they miss the set: log p below -2 per point of scaled y       */
};

/* How it went. Numbers that the way of drawing does not have are NaN or 0. */
typedef struct mnp_draw_report {
    size_t size;             /* sizeof(mnp_draw_report) */
    mnp_condition condition; /* what was done: MNP_NETWORK also where there are no points to      */
                             /* condition on or no latents                                        */
    int64_t particles, gradients;
    double acceptance;
    double particle_ess; /* independent particles that these are worth */
    double rhat;         /* of log p(set | z) over the last moves: 1 where they have settled  */
    double log_evidence, log_evidence_sd; /* log p(set) in nats                               */
    double fit_before, fit_after; /* log p(set | z) per point: the network's draws, and these */
    uint32_t warnings;
    int64_t added;    /* points since the draw before, whose particles these are; 0: begun afresh */
    double log_added; /* log p(those points | the set before) in nats                          */
    bool moved;       /* weights alone left too few effective: moved, or begun afresh          */
} mnp_draw_report;

/* Draws like mnp_predictor_draw_latents(), in the way that opts say. opts and report may be NULL. A
 * warning is no failure: the functions are there. The same bits for any number of threads. Where
 * points were observed since an exact draw with the same gradients and seed, at most half as many
 * as there were, its particles go on: new points weigh them, move them once fewer than half are
 * effective, and let them begin afresh below a tenth. So draws follow a set at little cost.
 * MNP_EINVAL: an angle other than 0 with refine or exact, or with one seed twice;
 * MNP_EUNSUPPORTED: of a process without latents. */
MNP_API mnp_status mnp_predictor_draw(mnp_predictor *p, const mnp_draw_opts *opts,
                                      mnp_draw_report *report);
/* Values of the S functions at n targets, 1 or more: y (S, n). Draws one function with seed 0 if
 * none were. MNP_ENUMERIC where a value is not finite; y then holds no answer. */
MNP_API mnp_status mnp_predictor_predict(mnp_predictor *p, const double *x, int64_t n,
                                         mnp_base base, double *y);
/* The whole chain y_0 .. y_T at the targets: path (T+1, S, n), in the model's own units. */
MNP_API mnp_status mnp_predictor_path(mnp_predictor *p, const double *x, int64_t n, mnp_base base,
                                      double *path);
/* log p(y_i | z_s): logp (S, n); without latents log p(y_i | set), S times. */
MNP_API mnp_status mnp_predictor_logp(mnp_predictor *p, const mnp_set *targets, double *logp);

/* What is wanted of S draws at n targets, and where it goes; a place that is NULL is left out.
 * sd divides by S - 1, and is 0 for one draw. A quantile of probability p lies between the two
 * draws nearest to place p (S - 1) of the sorted ones, counted from 0: y_(k) + (h - k) (y_(k+1) -
 * y_(k)) with h = p (S - 1), k = floor(h) (definition 7 of Hyndman and Fan). */
typedef struct mnp_summary {
    size_t size;         /* sizeof(mnp_summary)              */
    int64_t levels;      /* how many quantiles               */
    const double *level; /* (levels) probabilities in 0 .. 1 */
    double *mean, *sd;   /* (n)                              */
    double *quantiles;   /* (levels, n)                      */
    double *draws;       /* (S, n)                           */
} mnp_summary;
/* Of what mnp_predictor_predict() would answer. */
MNP_API mnp_status mnp_predictor_summary(mnp_predictor *p, const double *x, int64_t n,
                                         mnp_base base, const mnp_summary *out);
/* Of what would be measured at each target by itself, with noise: smooth in x, as a picture wants
 * it, where as many draws would be ragged. Of a process without latents they are integrals of its
 * density, whatever its form: a quantile has its probability to about 1e-4, of a normal law and of
 * a skewed one. What lies beyond MNP_REACH is left out of mean and sd. The draws of `out` are not
 * filled, and the functions that were drawn stay. */
MNP_API mnp_status mnp_predictor_bands(mnp_predictor *p, const double *x, int64_t n,
                                       const mnp_summary *out);
/* Of draws y (samples, n) that the caller has. */
MNP_API mnp_status mnp_summarise(mnp_ctx *ctx, const double *y, int64_t samples, int64_t n,
                                 const mnp_summary *out);

/* One model given many contexts, each by itself: `count` of them, any of them empty; the worker
 * threads share them; on a GPU they come one by one. target_sets is 1 (all are asked about the
 * same targets) or count; a set's y is not read. In every array of `out` the numbers of context k
 * follow those of k - 1: mean and sd (n_0 + n_1 + ...), draws S n_k and quantiles levels n_k for
 * each. Context k gets the bits of a predictor of its own after mnp_predictor_draw() with the seed
 * `seed` + k, whatever the number of threads. A failure names a context that has it; opts may be
 * NULL. */
typedef struct mnp_many_opts {
    size_t size;     /* sizeof(mnp_many_opts)                         */
    int64_t samples; /* S; 0 = 200                                    */
    uint64_t seed;
    mnp_base base;
    const char *device;      /* see mnp_predictor_create(); NULL = "cpu"   */
    mnp_condition condition; /* how functions are drawn: mnp_draw_opts */
    int64_t gradients;
    mnp_draw_report *reports; /* (count) gets how each drawing went, its size set in all; or NULL */
} mnp_many_opts;
MNP_API mnp_status mnp_predict_many(mnp_ctx *ctx, const mnp_model *model, const mnp_set *contexts,
                                    int64_t count, const mnp_set *targets, int64_t target_sets,
                                    const mnp_many_opts *opts, const mnp_summary *out);

/* Forecasts of many curves: each curve of `places` given its own points in `context`, by the
 * curves' names; one without points there, or with context NULL, is a draw of the population. Into
 * arrays of `out` with a number for each row of the places, in their order and in the units of the
 * row's output: mean and sd (rows), quantiles (levels, rows), draws (S, rows). Draws have the noise
 * of measurements, whatever the kind of model, unless `smooth` is set. A curve's random numbers
 * come from the seed and its name alone, and from the seed where the table has no group column. So
 * its answer has the same bits whatever other curves are in the tables, and for any number of
 * threads. MNP_EINVAL: one of the two tables has a group column and the other has none;
 * mnp_table_spread() asks every curve. */
typedef struct mnp_groups_opts {
    size_t size;     /* sizeof(mnp_groups_opts)                                               */
    int64_t samples; /* S; 0 = 200                                                            */
    uint64_t seed;
    const char *device;      /* see mnp_predictor_create(); NULL = "cpu"                      */
    mnp_condition condition; /* how functions are drawn: mnp_draw_opts                        */
    int64_t gradients;
    int64_t work_max; /* curves of more points times S are left to the network; 0: none are   */
    int64_t smooth;   /* 1: draws without the noise of measurements                           */
    mnp_draw_report *reports; /* (curves of the places), as in mnp_many_opts; or NULL         */
    void (*progress)(void *user, int64_t done, int64_t total); /* curves; of one: mnp_draw_opts */
    void *progress_user;
} mnp_groups_opts;
MNP_API mnp_status mnp_predict_groups(mnp_ctx *ctx, const mnp_model *model,
                                      const mnp_table *context, const mnp_table *places,
                                      const mnp_groups_opts *opts, const mnp_summary *out);
/* Curves that have no points, or are not asked about: a line each, into a caller's buffer, cut to
 * `size` bytes. Returns the length it would have (like snprintf). */
MNP_API size_t mnp_table_match(mnp_ctx *ctx, const mnp_table *context, const mnp_table *places,
                               char *out, size_t size);
/* How functions were drawn when the model was scored, from its note "condition" (network, refine or
 * exact); the network where mnp_model_attends(). False: it does not say, and out is untouched. */
MNP_API bool mnp_model_condition(const mnp_model *model, mnp_condition *out);

/* Given its latents a function is, at every x, a monotone map of the base noise. Its values at n
 * targets for fixed levels of the noise, each the same at all targets: y (MNP_LEVELS, S, n). Level
 * 0 is the smooth function; the others are equally likely and go upwards, so their mean, spread and
 * share below a number are those of the function with its noise. Targets may be asked about in
 * parts. MNP_EUNSUPPORTED for a process without latents. */
enum { MNP_LEVELS = 9 };
MNP_API mnp_status mnp_predictor_levels(mnp_predictor *p, const double *x, int64_t n, double *y);
MNP_API double mnp_level(int k); /* the base noise of level k; NaN where there is none */

/* ---- scores of draws --------------------------------------------------------------------------
 */

/* What a model answers about held-out points is scored target by target, from S draws with noise,
 * and jointly by the evidence (docs/user/scores.md has the definitions). */
typedef struct mnp_predictive_opts {
    size_t size;   /* sizeof(mnp_predictive_opts)                                              */
    int64_t draws; /* S, 2 to 131 072; 0 = 512                                                 */
    mnp_condition condition;
    int64_t gradients;  /* of each particle; 0 = 30 (refine), 200 at most (exact)              */
    int64_t replicates; /* R of the joint score, 2 or more; 0 = no joint score                 */
    bool sandwich;      /* bounds of log p(context) on functions of the model itself           */
    int64_t particles;  /* of each run of the joint score, 2 to 131 072; 0 = 64                */
} mnp_predictive_opts;

enum { MNP_PREDICTIVE_ROWS = 1 + MNP_SCORE_BINS, MNP_PIT_BINS = 10 };

/* Log-densities in nats per target, means over functions. What is not known or was not asked for is
 * NaN: the truth's scores need a family of data whose density is known. */
typedef struct mnp_predictive {
    size_t size;                    /* sizeof(mnp_predictive)                                  */
    int64_t context_lo, context_hi; /* sizes of the contexts                                   */
    int64_t functions, targets;
    double marginal, marginal_se; /* log of a kernel density of the draws; over functions      */
    double marginal_mixture, marginal_mixture_half; /* log of the mean of p(y | z): S, S / 2   */
    double marginal_true;
    double marginal_short, marginal_short_se; /* marginal_true - marginal, by function         */
    double crps, crps_true;                   /* in units of y                                 */
    double kl_true; /* KL(truth || normal with the draws' mean and deviation), by target       */
    double coverage50, coverage80, coverage95;
    double pit[MNP_PIT_BINS]; /* shares of the targets by their rank among the draws           */
    double context_off;       /* median |mean at a context point - y|, in noise deviations     */
    double joint_exact, joint_exact_se; /* log p(y_T | C); its error from the replicates       */
    double joint_exact_bias;            /* estimate of how far it is off, mostly below 0       */
    double joint_true, joint_short, joint_short_se;   /* joint_true - joint_exact, over functions */
    double gradients, acceptance, particle_ess, rhat; /* means; NaN for the network            */
    int64_t warned; /* functions whose draws a warning of mnp_draw_report is about             */
    /* log p(context), nats: values drawn from the model at the same inputs, so that the latents are
     * known; mean of the lower bound, of the upper one, of their difference; its standard error */
    double sandwich_lower, sandwich_upper, sandwich_gap, sandwich_se;
    double joint_hurried; /* share of the joint score's runs whose gradients did not last       */
} mnp_predictive;

/* Functions, contexts, seed, device and progress are those of `opts`, as mnp_evaluate() takes them;
 * the targets are the points outside the context. out (rows), all with the same size: out[0] over
 * all functions, then by context size, as many as fit; the rest have 0 functions. opts and how may
 * be NULL. */
MNP_API mnp_status mnp_evaluate_draws(mnp_ctx *ctx, const mnp_model *model, const mnp_data *data,
                                      const mnp_eval_opts *opts, const mnp_predictive_opts *how,
                                      mnp_predictive *out, int64_t rows);

/* Scores of the process that made the data, nats per target: what no model can exceed on average.
 * joint: log p(targets | context); marginal: each target by itself. Both as the mean over functions
 * of the mean over their targets, with its standard error, and over all targets (pooled). marginal
 * and crps are NaN where targets one by one are not known. */
typedef struct mnp_truth {
    size_t size;                    /* sizeof(mnp_truth)     */
    int64_t context_lo, context_hi; /* sizes of the contexts */
    int64_t functions, targets;
    double joint, joint_se, joint_pooled;
    double marginal, marginal_se, marginal_pooled;
    double crps; /* in units of y */
} mnp_truth;

/* Functions, contexts, seed and progress are those of `opts`, as mnp_evaluate() takes them, which
 * may be NULL. The data are a built-in family's. out (rows): as mnp_evaluate_draws() fills it. */
MNP_API mnp_status mnp_evaluate_truth(mnp_ctx *ctx, const mnp_data *data, const mnp_eval_opts *opts,
                                      mnp_truth *out, int64_t rows);

/* ---- lists, for help and tools --------------------------------------------------------------- */

/* Name and one line of help of the k-th process and the k-th preset for mnp_model_create(), static
 * texts; NULL after the last. help may be NULL. Not every process has every preset. */
MNP_API const char *mnp_model_process(int k, const char **help);
MNP_API const char *mnp_model_preset(int k, const char **help);
/* The k-th device that works here, a name for mnp_predictor_create() and the like, static; NULL
 * after the last. about: what it is ("NVIDIA H200, 150 GB"), into a caller's buffer, cut to `size`
 * bytes; NULL with 0. A GPU is asked each time, which may take a second. */
MNP_API const char *mnp_device(mnp_ctx *ctx, int k, char *about, size_t size);
/* The precision that a device's name comes to (NULL = "cpu"): "fp32", "tf32", "bf16", "mixed" or
 * "auto", static. Of the device auto without a GPU "fp32", unless precision auto is asked for.
 * Whether a GPU that is named works is not looked at. MNP_EINVAL for a name that does not exist. */
MNP_API mnp_status mnp_device_precision(mnp_ctx *ctx, const char *device, const char **out);

/* Options stand in tables: of the model, the training, two agents and the images of rivers. The
 * k-th table, static; NULL after the last. */
MNP_API const char *mnp_options_table(int k);

typedef enum mnp_option_type {
    MNP_OPTION_INTEGER,
    MNP_OPTION_REAL,
    MNP_OPTION_SWITCH, /* on or off                          */
    MNP_OPTION_CHOICE, /* one of `choices`                   */
    MNP_OPTION_RANGE,  /* "lo:hi", or one number for both    */
    MNP_OPTION_INTEGER_RANGE
} mnp_option_type;

/* All texts are static. */
typedef struct mnp_option {
    size_t size; /* sizeof(mnp_option) */
    const char *name;
    mnp_option_type type;
    const char *fallback; /* the default, as text                            */
    const char *choices;  /* "affine|rqs"; NULL where any value of its type goes */
    double lo, hi;        /* limits of numbers; infinite where there is none */
    const char *help;     /* one line                                        */
} mnp_option;

/* The k-th option of a table. False: there is none, or no such table; out is then untouched. */
MNP_API bool mnp_options_at(const char *table, int k, mnp_option *out);
/* Has it an option of that name? False too for a table that does not exist. */
MNP_API bool mnp_options_has(const char *table, const char *name);
/* The table as text, one line for each option, into a caller's buffer, cut to `size` bytes; out may
 * be NULL. Returns the length it would have (like snprintf); 0: there is no such table. */
MNP_API size_t mnp_options_help(const char *table, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
