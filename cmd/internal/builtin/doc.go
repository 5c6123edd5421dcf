// Package builtin lists the policies that are linked into cede, and parses references
// of users and scenarios to them: `nomad`, or `aging?halfLife=10m` with its
// configuration.
//
// It is the only package that refers to policies by name; core and plugins never do.
// cmd/internal/policies and cmd/internal/cli call it. All functions are safe for
// concurrent use.
package builtin
