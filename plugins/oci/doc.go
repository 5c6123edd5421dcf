// Package oci pulls policies from container registries: a module, or a bundle of which
// each file is a layer, as `oras push REGISTRY/NAME:TAG policy.yaml policy.wasm` stores
// them.
//
// It speaks the part of the distribution protocol that a pull needs, and verifies every
// byte against its digest. It never runs a policy and pushes nothing.
//
// All functions may be called concurrently. Registries are untrusted: sizes are bounded,
// and files are written to the given folder only.
package oci
