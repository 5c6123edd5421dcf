// Package acl defines access control: the roles, which of them cover others, and
// the secrets that authenticate a caller.
//
// It never stores a token and never reads a request. The state stores tokens by the
// hash of their secret, core/server creates and finds them, and core/api calls
// Allows once for each request. If a token has expired, the server refuses it: this
// package reads no clock.
//
// All functions are stateless and safe for concurrent use.
package acl
