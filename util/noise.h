/* noise.h: a function whose values are a monotone map of standard normal noise, known at some
 * noises and read at others: what pictures of bands are made of. */
#ifndef MNP_UTIL_NOISE_H
#define MNP_UTIL_NOISE_H

/* A noise and the value that the function has for it. */
typedef struct noise_value {
    double e, y;
} noise_value;

/* The middle of each of `count` equal shares of the noise, rising, scaled to variance one. */
void noise_levels(int count, double *out);
void noise_sort(noise_value *p, int count); /* by the noise */
/* The map through `count` pairs, 2 or more and sorted, at e: straight between them and beyond. */
double noise_read(const noise_value *p, int count, double e);

#endif
