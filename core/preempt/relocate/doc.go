// Package relocate finds where candidates could run if they were evicted: with free
// capacity on another node, or once allocations of lower priority have left there, one
// level deep. Policies read the answers as columns (policy.RelocationColumns).
//
// It applies the rules by which instances are placed: model.Fits for capacity, and Places,
// which the scheduler implements, for everything else. It never plans a move, and an answer
// does not reserve it: another candidate may take the capacity first.
//
// core/preempt starts a Finder for each search of which a policy reads the columns. The
// answers do not depend on the number of workers. A Finder is safe for concurrent use, a
// View serves one worker.
package relocate
