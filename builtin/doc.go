// Package builtin lists the policies that are linked into cede, and parses references
// of users and scenarios to them: `nomad`, or `aging?halfLife=10m` with its
// configuration.
//
// It is the only package that refers to policies by name; core and the hosts of policies never
// do. cmd and the plugin for kube-scheduler register its policies. All functions are safe for
// concurrent use.
package builtin
