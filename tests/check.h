/* check.h: a tiny test harness. A test program is one file:
 *
 *     static void adds_up(void) { CHECK(1 + 1 == 2); NEAR(0.1 + 0.2, 0.3, 1e-15, 0); }
 *     int main(void) { RUN(adds_up); return check_done(); }
 *
 * A test passes when none of its checks failed. The last line of the program is
 * "N passed, N failed" (", N skipped" follows where a test called SKIP), and the exit status is 0
 * only if nothing failed. A test without a single check counts as failed. */
#ifndef MNP_TESTS_CHECK_H
#define MNP_TESTS_CHECK_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct check_state {
    int passed, failed, skipped;
    long checks;
    int bad; /* failed checks of the present test */
    bool skip;
    const char *skip_why;
    const char *where; /* a word set by CASE(): which of many cases is running */
} check_state;

static check_state check_;

#define CASE(name) (check_.where = (name))
#define SKIP(why)  (check_.skip = true, check_.skip_why = (why))

__attribute__((unused)) static void check_bad(const char *file, int line, const char *what) {
    if (check_.bad++ < 8)
        fprintf(stderr, "%s:%d: %s%s%s%s\n", file, line, what, check_.where ? " [" : "",
                check_.where ? check_.where : "", check_.where ? "]" : "");
}

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        check_.checks++;                                                                           \
        if (!(cond)) check_bad(__FILE__, __LINE__, "failed: " #cond);                              \
    } while (0)

/* |got - want| <= abs_tol + rel_tol |want|; a NaN never passes, equal infinities do. */
#define NEAR(got, want, abs_tol, rel_tol)                                                          \
    check_near(__FILE__, __LINE__, #got, (double)(got), (double)(want), (abs_tol), (rel_tol))

__attribute__((unused)) static bool check_near(const char *file, int line, const char *what,
                                               double got, double want, double at, double rt) {
    check_.checks++;
    if (got == want || fabs(got - want) <= at + rt * fabs(want)) return true;
    char text[256];
    snprintf(text, sizeof text, "%.120s = %.17g, want %.17g (off by %.3g)", what, got, want,
             got - want);
    check_bad(file, line, text);
    return false;
}

#define STREQ(got, want)                                                                           \
    do {                                                                                           \
        const char *g_ = (got), *w_ = (want);                                                      \
        check_.checks++;                                                                           \
        if (!g_ || !w_ || strcmp(g_, w_) != 0) {                                                   \
            char t_[400];                                                                          \
            snprintf(t_, sizeof t_, #got " is \"%.150s\", want \"%.150s\"", g_ ? g_ : "(null)",    \
                     w_ ? w_ : "(null)");                                                          \
            check_bad(__FILE__, __LINE__, t_);                                                     \
        }                                                                                          \
    } while (0)

#define RUN(test) check_run(#test, test)
/* A case of statistics: the same paths as its neighbours, many times, to see a number. Sanitizers
 * make it ten times slower and learn nothing from it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RUN_STATISTICS(test) check_pass_over(#test, test)
#else
#define RUN_STATISTICS(test) RUN(test)
#endif

__attribute__((unused)) static void check_run(const char *name, void (*test)(void)) {
    long before = check_.checks;
    check_.bad = 0;
    check_.skip = false;
    check_.where = NULL;
    test();
    if (check_.skip && !check_.bad) {
        check_.skipped++;
        printf("skip %s: %s\n", name, check_.skip_why);
    } else if (check_.bad || check_.checks == before) {
        check_.failed++;
        printf("FAIL %s (%s)\n", name, check_.bad ? "see stderr" : "it checked nothing");
    } else {
        check_.passed++;
        printf("ok   %s (%ld checks)\n", name, check_.checks - before);
    }
    fflush(stdout);
}

__attribute__((unused)) static void check_pass_over(const char *name, void (*test)(void)) {
    (void)test;
    check_.skipped++;
    printf("skip %s: statistics, without sanitizers\n", name);
}

__attribute__((unused)) static int check_done(void) {
    printf("%d passed, %d failed", check_.passed, check_.failed);
    if (check_.skipped) printf(", %d skipped", check_.skipped);
    printf("\n");
    return check_.failed ? 1 : 0;
}

#endif
