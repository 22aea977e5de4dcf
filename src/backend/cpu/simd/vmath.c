/* vmath.c: elementary functions over arrays, y[i] = f(x[i]), in place allowed; errors as stated in
 * simd_math.h. An element's result does not depend on its place in the array: the last, partial
 * vector goes through the same arithmetic. */
#include "backend/cpu/simd/simd_math.h"
#include "backend/cpu/simd/table.h"

#define ARRAY_FUNCTION(name, f)                                                                    \
    void ISA(name)(int64_t n, const float *x, float *y) {                                          \
        int64_t i = 0;                                                                             \
        for (; i + VL <= n; i += VL) vstore(y + i, f(vload(x + i)));                               \
        if (i == n) return;                                                                        \
        float last[VL] = {0};                                                                      \
        memcpy(last, x + i, (size_t)(n - i) * sizeof *x);                                          \
        vstore(last, f(vload(last)));                                                              \
        memcpy(y + i, last, (size_t)(n - i) * sizeof *y);                                          \
    }

ARRAY_FUNCTION(cpu_exp, vexp)
ARRAY_FUNCTION(cpu_log, vlog)
ARRAY_FUNCTION(cpu_softplus, vsoftplus)
ARRAY_FUNCTION(cpu_sigmoid, vsigmoid)
ARRAY_FUNCTION(cpu_tanh, vtanh)
