# epidemics.awk: a simulator of epidemics (SIR), as an example: who is infected, in percent of a town.
#
#   awk -v runs=4000 -v seed=1 -f examples/epidemics.awk > runs.csv            # run,day,infected
#   awk -v runs=100000 -v given=early.csv -v peak=15 -v at=30,45,60 -f examples/epidemics.awk
#
# Every run has its own reproduction number, infectious period and first cases. Surveys on random days
# measure the infected share with an error of half a percent. With `given` (a table of the same columns)
# runs are weighed by how well they fit it, and what follows is printed: the true forecast, by brute force.
function uniform(lo, hi) { # Park and Miller's generator: the same numbers from every awk
    state = (state * 16807) % 2147483647
    return lo + (hi - lo) * state / 2147483647
}
function normal() { return sqrt(-2 * log(uniform(0, 1))) * cos(6.283185307179586 * uniform(0, 1)) }
function epidemic(    s, i, k, day, r0, days, new) { # infected[day], and the highest of them
    r0 = uniform(1.5, 4); days = uniform(4, 12); i = 10 ^ uniform(-4, -2.5); s = 1 - i
    highest = 0
    for (day = 0; day <= DAYS; day++) {
        infected[day] = 100 * i
        if (infected[day] > highest) highest = infected[day]
        for (k = 0; k < 10; k++) {
            new = r0 / days * s * i * 0.1
            s -= new; i += new - i / days * 0.1
        }
    }
}
function surveys(run,    k, day) {
    for (k = 0; k < 30; k++) {
        day = int(uniform(0, DAYS + 1))
        printf "%d,%d,%.2f\n", run, day, infected[day] + NOISE * normal()
    }
}
function weight(    k, off, sum) { # of a run: how probable the points given are
    for (k = 1; k <= points; k++) {
        off = (value[k] - infected[at_day[k]]) / NOISE
        sum += off * off
    }
    return exp(-sum / 2)
}
function stop(why) { print why > "/dev/stderr"; exit 1 }
BEGIN {
    DAYS = 90; NOISE = 0.5; FS = ","
    state = 2 * seed + 12345
    for (k = 0; k < 100; k++) uniform(0, 1)
    if (given == "") {
        print "run,day,infected"
        for (run = 1; run <= runs; run++) { epidemic(); surveys(run) }
        exit
    }
    while ((getline line < given) > 0) {
        split(line, field, ",")
        if (field[2] + 0 != field[2]) continue # the header
        if (field[2] != int(field[2]) || field[2] < 0 || field[2] > DAYS) stop(given ": day " field[2] ": days are whole, 0 to " DAYS)
        points++; at_day[points] = field[2]; value[points] = field[3]
    }
    if (points == 0) stop(given ": no points")
    places = split(at, place, ",")
    for (run = 1; run <= runs; run++) {
        epidemic()
        w = weight(); all += w; squares += w * w
        if (highest > peak) above += w
        for (k = 1; k <= places; k++) { mean[k] += w * infected[place[k]]; power[k] += w * infected[place[k]] ^ 2 }
    }
    if (all == 0) stop("no run fits " given ": ask for more runs, or look at the points")
    printf "more than %g %% at once: probability %.3f (%d runs, worth %.0f)\n", peak, above / all, runs, all * all / squares
    for (k = 1; k <= places; k++) {
        m = mean[k] / all
        printf "day %d: mean %.2f, sd %.2f\n", place[k], m, sqrt(power[k] / all - m * m + NOISE * NOISE)
    }
}
