// Package config loads and checks the configuration of a cede process: its keys,
// their defaults, the source of each value, and its problems. A configuration is
// merged from layers (defaults, YAML files in order, the environment, flags). A later
// layer replaces the values of earlier ones; lists are replaced as a whole, maps are
// merged.
//
// It is strict: an unknown key is an error that names the file and the line, and all
// problems are returned together. If a value cannot be read, only problems that do
// not depend on it are reported. The package starts nothing. It reads secrets only
// from values of the form file:PATH and, if requested, keys of certificates.
//
// cmd/internal/cli and cmd/internal/app call it. Load returns a new Loaded each time,
// which is immutable and may be shared.
package config
