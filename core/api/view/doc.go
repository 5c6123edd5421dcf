// Package view translates the engine's objects into the JSON types of sdk/client:
// jobs, allocations, evaluations, nodes, policies and tokens, whole or as entries of
// lists. It reads snapshots, makes no decisions and writes nothing.
//
// core/api calls it. All functions are safe for concurrent use.
package view
