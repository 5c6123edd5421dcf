// Package builtin knows the policies that are linked into cede, and turns what
// a user or a scenario names into a version of one: `nomad`, or
// `aging?halfLife=10m` with its configuration.
//
// It knows policies by name, which core and plugins never do. cmd/internal/cli
// calls it. All functions may be called concurrently.
package builtin
