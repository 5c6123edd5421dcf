// Package plainyaml states errors of the YAML library without the types of Go programs and
// the tags of YAML. It decodes nothing itself. All functions are safe for concurrent use.
package plainyaml
