/* rounding.h: do rounded products (tf32, bf16) cost a training run its score? Now and then a step's
 * gradient is computed in fp32 as well, with the same weights, batch and random numbers (watch.h);
 * what is found is collected here, and judged. */
#ifndef MNP_RUN_ROUNDING_H
#define MNP_RUN_ROUNDING_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rounding_check {
    double distance; /* |g - g32| / |g32| of a step's gradient                             */
    double sampling; /* sd of g32 from batch to batch, in the same unit: |g32|             */
    double shift;    /* loss - loss32 of that batch: what rounding adds, in nats per point */
} rounding_check;

/* The verdict falls when a median over the last checks reaches its limit.
 *
 * Of the shift. Rounding puts a noise of variance r^2 on a value that the model could tell to
 * s_0^2. The model that is trained with it learns s^2 = s_0^2 + r^2: its score is lower by
 * ln(s / s_0), and without the noise its loss would be lower by r^2 / 2 s^2. So a shift of d comes
 * with a loss of -ln(1 - 2 d) / 2 nats per point, which is d where it is small. A twentieth of a
 * nat is more than seeds differ by.
 *
 * Of the distance. |g32| has the signal and the batch's own noise in it, so the distance is small
 * where either is large beside the rounding. At a third of it steps begin to go where the rounding
 * goes. With weights at the end of a training it is 0.03 to 0.13 for families that lose nothing in
 * tf32, and 4 to 23 for the one that loses a nat (lab/NOTEBOOK.md, "Precisions"). */
#define ROUNDING_SHIFT    0.05
#define ROUNDING_DISTANCE 0.3

enum {
    ROUNDING_KEPT = 5,     /* checks that are looked at                                       */
    ROUNDING_FEWEST = 3,   /* before there are so many there is no verdict                    */
    ROUNDING_STEPS = 1000, /* between two checks at least: one takes as long as a few steps   */
    ROUNDING_NUMBERS = 3 * (ROUNDING_KEPT + 2) + 3 /* of a record as numbers */
};

typedef struct rounding_rule {
    int64_t every; /* checks are at multiples of it; 0: there are none */
    int64_t from;  /* earlier ones do not count: the warm-up           */
    int64_t fewest;
    double distance, shift; /* limits */
} rounding_rule;

/* Checks at validations, or at every second one and so on. */
rounding_rule rounding_rule_of(int64_t valid_every, int64_t warmup);

typedef struct rounding_record {
    int64_t checks;                     /* made so far                                   */
    rounding_check latest;              /* NaN before the first                          */
    int64_t counted;                    /* since the warm-up                             */
    rounding_check last[ROUNDING_KEPT]; /* of these; the k-th is at k modulo their number */
    rounding_check judged;              /* the medians that the verdict is about         */
    int64_t verdict;                    /* the step after which it fell; 0: it has not   */
} rounding_record;

void rounding_begin(rounding_record *r);
bool rounding_due(const rounding_rule *rule, int64_t step);
/* Medians over the checks that are kept; NaN where there are none. */
rounding_check rounding_median(const rounding_record *r);
/* Takes the check of the step with this number, 0 the first. True: the verdict falls now. */
bool rounding_take(const rounding_rule *rule, rounding_record *r, rounding_check c, int64_t step);

/* For a checkpoint; reading refuses what no run can have and leaves r as it is. */
void rounding_write(const rounding_record *r, double out[ROUNDING_NUMBERS]);
bool rounding_read(rounding_record *r, const double in[ROUNDING_NUMBERS]);

#endif
