// Package job holds the cede job commands: write, validate, plan, run, describe and
// stop jobs. Package jobspec of core reads job files.
package job
