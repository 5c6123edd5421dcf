// Package trial computes the statistics of a trial: two versions of a policy decide in
// alternate blocks of time, and the order within each pair of blocks is random.
//
// Estimate returns the confidence sequence of the mean difference within pairs. It holds
// at every number of pairs at once, so a trial may be evaluated after every block and
// ended at any of them. Summarize applies it to the blocks of a trial.
//
// Validity rests on the random order alone: if both versions have the same effect, the
// sign of each difference is a fair coin, whatever the load of the cluster, its trend and
// the tails of its distribution. Ends of intervals other than the comparison with 0 assume
// in addition that the effect of the version is a constant shift.
//
// The package is pure: it reads no clock, draws no random numbers besides those of the
// seed of a trial, and holds no state.
package trial
