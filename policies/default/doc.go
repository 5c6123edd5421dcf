// Package defaults makes the rules of sdk/rules available as the policy "default". It
// has no other content. Its name differs from its folder's, because default is a
// keyword.
//
// A policy must be used by one goroutine at a time.
package defaults
