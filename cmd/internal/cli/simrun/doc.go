// Package simrun holds what commands that play scenarios share: reading and writing
// scenario files, the flags that say how policies run, the log of policy calls, and
// the errors of a run.
package simrun
