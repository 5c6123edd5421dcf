// Package builtin knows the policies that are linked into cede, and reads what a
// user or a scenario writes to name one: `nomad`, or `aging?halfLife=10m` with
// its configuration.
//
// It knows policies by name, which core and plugins never do.
// cmd/internal/policies and cmd/internal/cli call it. All functions may be
// called concurrently.
package builtin
