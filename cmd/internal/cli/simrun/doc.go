// Package simrun holds the shared parts of commands that play scenarios: reading,
// generating and writing scenarios, the flags that configure policies, the log of policy calls,
// and the errors of a run.
package simrun
