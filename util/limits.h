/* limits.h: how large things may be, in one place. A file that asks for more is refused with a line
 * that names both sizes, before memory is taken for it.
 *
 * One line each: name, value, what it bounds; why it is there. `scripts/limits.sh` prints these
 * lines as the table of SECURITY.md, and a test keeps the two equal. */
#ifndef MNP_BASE_LIMITS_H
#define MNP_BASE_LIMITS_H

/* A row stays one line, hence: */
/* clang-format off */

/* ---- files ---- */
#define MODEL_FILE_MAX         (5LL << 28)    /* bytes of a model file; its weights are held twice while it is read */
#define AGENT_FILE_MAX         (1 << 28)      /* bytes of an agent file; its network is small */
#define STATE_FILE_EXTRA       (1 << 20)      /* bytes of a train state beside its tensors, whose size is known; its texts are short */
#define CSV_BYTES_MAX          (1 << 28)      /* bytes of a CSV file; every cell takes a pointer beside its text */
#define CSV_COLUMNS_MAX        4096           /* columns of a CSV file; each is compared with all */
#define CSV_NAME_MAX           1024           /* bytes of a column's name; names are compared with each other */
#define CATEGORY_LEVELS_MAX    64             /* different texts of a column that is a category; each is an input of the model */
#define GROUP_COLUMNS_MAX      16             /* columns that tell curves apart; they have a fixed place */
#define NPY_FILE_MAX           (1LL << 34)    /* bytes of a .npy file; it is held twice while it is read */
#define NPY_DIMS_MAX           8              /* dimensions of a .npy array; a shape has a fixed place */
#define PNG_FILE_MAX           (1 << 28)      /* bytes of a PNG file; twice the raw pixels of the largest image */
#define SETTINGS_FILE_MAX      (1 << 20)      /* bytes of geofluvial.json; it has seven entries */
#define SAFETENSORS_HEADER_MAX (1 << 22)      /* bytes of a safetensors header; its tree may take fifty times as much */
#define SAFETENSORS_DIMS_MAX   8              /* dimensions of a tensor; a shape has a fixed place */
#define JSON_DEPTH_MAX         64             /* levels of a JSON text; its reader calls itself */
#define FSIO_NUMBER_MAX        1024           /* characters of a number; it is copied to the stack */
#define OPTION_NAME_MAX        48             /* bytes of an option's name; it has a fixed place */
#define OPTION_VALUE_MAX       4096           /* bytes of an option's value; it has a fixed place */

/* ---- images ---- */
#define IMAGE_SIDE_MAX         4096           /* rows or columns of an image that is read or drawn; 64 MB of values */
#define IMAGE_VALUES_MAX       (1LL << 31)    /* pixels of a set of images; 8 GB of values */
#define PNG_SIDE_MAX           (1 << 20)      /* rows or columns of a PNG file that is written; well inside the format's own bound */
#define PNG_PIXELS_MAX         (1 << 28)      /* pixels of a PNG file that is written; it is held in memory */
#define RASTER_MAX             (1 << 26)      /* pixels of a simulated river's raster; it is held in memory */
#define MEANDER_SIDE_MAX       (1 << 15)      /* side of a crop of a raster; sums of its pixels stay in 32 bits */
#define MEANDER_NODES_MAX      (1 << 20)      /* nodes of a river's line; a step visits all */
#define CROPS_MAX              64             /* images cut from one raster; their places are kept on the stack */

/* ---- models ---- */
#define MODEL_PARAMETERS_MAX   (1 << 28)      /* weights of a model, padding included; 1 GB, and training holds five times as much */
#define MODEL_X_MAX            64             /* inputs of a function; their scales have a fixed place */
#define MODEL_STEPS_MAX        64             /* Markov steps T; a chain's steps are kept on the stack */
#define MODEL_WIDTH_MAX        4096           /* width of a layer, a latent or the features of x; products of widths stay in 32 bits */
#define MODEL_NOTES_MAX        64             /* notes on a model; their list has a fixed place */
#define SAMPLES_MAX            (1 << 17)      /* draws that answer one question; they are numbered in a field of twice as many */
#define GRADIENTS_MAX          (1 << 20)      /* gradients of a particle; hours of work, and moves are numbered */
#define REPLICATES_MAX         (1 << 10)      /* runs of an evidence that are averaged; their sets are listed at once */
#define ORDERS_MAX             10000          /* orders of targets in turn; each costs a score of every target */
#define CALIBRATION_MAX        10000          /* functions of a calibration; its band sums over all counts of them */
#define CALIBRATION_DRAWS_MAX  1000           /* draws that a rank is among; the band has an interval for each */
#define TRAIN_SAMPLES_MAX      4096           /* draws for each function of a training step; all are held at once */
#define RQS_BINS_MAX           64             /* bins of a spline; kernels keep a spline on the stack */
#define MIXTURE_PARTS_MAX      64             /* normals of a mixture; kernels keep their weights on the stack */
#define NATURAL_KNOTS_MAX      16             /* knots of a natural spline; its matrix has a fixed place */
#define MIXED_COLUMNS_MAX      256            /* columns of the population curve of a mixed model; a fit takes their cube */
#define MIXED_RANDOM_MAX       24             /* columns of a curve's own part in a mixed model; a search over the square of their square */
#define MIXED_DRAWS_MAX        1024           /* draws of a mixed model's parameters; a question visits all */
#define FAMILY_POINTS_MAX      4096           /* points of a drawn function; a draw factors a matrix of this side */

/* ---- bandits ---- */
#define ACTIONS_MAX            64             /* actions of a log; each is an input of the model */
#define ACTIONS_NAME_MAX       64             /* bytes of an action's name; it has a fixed place */
#define BANDIT_DIMS_MAX        64             /* numbers of a bandit's context; kept on the stack */
#define BANDIT_ACTIONS_MAX     64             /* actions of a bandit; kept on the stack */
#define LEARNER_INPUTS_MAX     128            /* inputs of maml and c-bruno; context and actions together */
#define MLP_LAYERS_MAX         4              /* layers of an agent's network; they have a fixed place */

/* ---- requests of the service; a caller may set others ---- */
#define SERVICE_BODY_MAX       (1 << 22)      /* bytes of a request; its tree may take fifty times as much */
#define SERVICE_CONTEXT_MAX    4096           /* points of a request's context, targets or wells; attention takes their square */
#define SERVICE_PLACES_MAX     (1 << 14)      /* places of a request; each is a number in the reply */
#define SERVICE_JOINT_MAX      2048           /* context and places of a process without latents; a matrix of this side is factored */
#define SERVICE_SAMPLES_MAX    4096           /* functions of a request; each has latents of its own */
#define SERVICE_VALUES_MAX     (1 << 22)      /* functions times places of a request; 32 MB, and 80 MB of text at most */
#define SERVICE_GRADIENTS_MAX  2000           /* gradients of a particle of a request; ten times what exact takes by itself */
#define SERVICE_PIXELS_MAX     (1 << 18)      /* pixels of a request's map; 512 x 512 */

/* ---- the command, threads and processes ---- */
#define GRID_POINTS_MAX        10000000       /* points of a grid; 80 MB for each input */
#define PREDICT_VALUES_MAX     (1 << 28)      /* draws times targets of mnp predict; 2 GB */
#define QUANTILES_MAX          100            /* quantiles of mnp predict; they have a fixed place */
#define SAMPLE_VALUES_MAX      (1 << 27)      /* draws times targets of mnp sample; 1 GB, and a row of text for each */
#define MAP_VALUES_MAX         (1 << 29)      /* draws times pixels of a map; 2 GB */
#define SEEDS_MAX              64             /* runs of mnp train --seeds; all are held at once */
#define LAWS_POINTS_MAX        128            /* points of a function that mnp check uses; every one is predicted given many others */
#define POINTS_DIMS_MAX        MODEL_X_MAX    /* inputs the command can ask about; those of a model */
#define MAP_SIDE_MAX           IMAGE_SIDE_MAX /* rows or columns of a map; those of an image */
#define POOL_THREADS_MAX       1024           /* worker threads; more than any machine has */
#define COMM_RANKS_MAX         1024           /* processes of a job; the places of their parts are kept on the stack */

/* clang-format on */

#endif
