// Package binding holds the commands of federation: cede cluster for member clusters
// and cede binding for the bindings that are assigned to them, and their files.
package binding
