// Package condition evaluates the conditions of `cede compare --fail-if`: expressions in
// CEL over the metrics of a comparison. plugins/rules/syntax bounds and explains them as
// it does the expressions of rules; cel-go checks and evaluates them.
//
// An Expression is immutable and safe for concurrent use.
package condition

// Help documents the language for `cede help`.
const Help = `A condition is an expression in CEL (https://cel.dev). If it is true, the comparison
fails:

    victims(nomad) > victims(default)
    wastedWork.cpu(nomad) > 1.02 * wastedWork.cpu(default)
    worse('queueDelay.75.p99', nomad, default) || goodput(nomad) < 0.9

METRIC(POLICY)       the median of a metric over all runs of a policy. METRIC
                     is a dotted name as in the table, POLICY a value of -p
metric(METRIC, P)    the same; METRIC or P in quotes ('...') if it contains
                     characters other than letters, digits, _, . and -
low(...) high(...)   the ends of the 95 % interval: low(victims(nomad))
worse(METRIC, P, Q)  P is worse than Q, and not by chance: the 95 % interval of
                     the paired differences lies on the bad side of 0
better(METRIC, P, Q) the same on the good side
x.orValue(y)         x, or y if the runs do not contain x
min(x, y) max(x, y) abs(x)
+ - * /  < <= > >= == !=  && || !  c ? x : y  ( )
                     numbers are doubles: 3 is 3.0. A division by zero is an error
`
