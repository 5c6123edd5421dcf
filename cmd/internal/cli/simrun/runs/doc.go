// Package runs holds the parts of commands that play many scenarios: the file of finished
// runs, with which an interrupted command continues, and the number of concurrent runs.
// cede compare and cede policy tune use it.
package runs
