// Package bundle owns the on-disk form of a policy: a module (a WebAssembly file or an
// executable) with its manifest, and the signature of both. It reads, verifies and signs
// bundles; it never runs one.
//
// A bundle is a directory with policy.yaml. A single module is a bundle too: it has no
// signature, and a manifest with only its name and digest.
//
// plugins/registry and cmd call it. All functions may be called concurrently.
package bundle
