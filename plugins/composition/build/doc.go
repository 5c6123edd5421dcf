// Package build creates the archive of a composition from the policies that its manifest
// names: built-in ones, rules, modules, executables, folders of policies, and versions that
// servers have loaded.
//
// It is linked where policies are built; servers load archives and need none of this package.
// All functions are safe for concurrent use.
package build
