// Package bundle owns what a policy is on disk: a module (a WebAssembly file or
// an executable) with its manifest, and the signature over both. It reads,
// checks, signs and verifies bundles; it never runs one.
//
// A bundle is a folder with policy.yaml in it. A module alone is a bundle too,
// without a signature, whose manifest says no more than its name and digest.
//
// plugins/registry and cmd call it. All functions may be called concurrently.
package bundle
