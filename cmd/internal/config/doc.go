// Package config owns the configuration of a cede process: its keys, their
// defaults, where each value came from, and what is wrong with it. A configuration
// is made of layers (defaults, YAML files in order, the environment, flags), each
// of which replaces what those before it say; lists are replaced whole, maps are
// merged.
//
// It is strict: a key that there is not is an error that names the file and the
// line, and every problem is told at once; of values that could not be read, what is
// wrong whatever they are. It starts nothing, and reads no secret but those that are
// named as file:PATH and, where it is asked to look, keys of certificates.
//
// cmd/internal/cli and cmd/internal/app call it. Load makes a new Loaded each time,
// which nobody changes: it may be shared.
package config
