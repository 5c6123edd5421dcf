// Package rebalance implements `cede rebalance`: it shows and runs plans of moves that make
// room for jobs that wait.
package rebalance
