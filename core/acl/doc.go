// Package acl owns who may do what: the roles, what each covers, and the secrets
// that prove who is asking.
//
// It never stores a token and never reads a request: the state keeps tokens by
// the hash of their secret, core/server makes and finds them, and core/api asks
// Allows once for each request. It knows no clock.
//
// Everything here is a function without state, safe for concurrent use.
package acl
