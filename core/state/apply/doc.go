// Package apply changes the state by the entries of the log: plans, node and
// client updates, member clusters and assignments. It holds the rules that span
// several tables, such as the follow-up evaluation for each job that loses an
// allocation. Package state holds the tables themselves.
//
// It never reads a clock and starts no goroutine. Every function is a pure
// function of the transaction and its arguments, time included, so that every
// server arrives at the same state.
//
// core/replication calls it for each entry, core/sim for each simulated one, and
// core/planner when it commits without a log. A function belongs to the goroutine
// of its transaction.
package apply
