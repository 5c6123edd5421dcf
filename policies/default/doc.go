// Package defaults gives the rules named default, which are sdk/rules, a place
// among the policies. It owns nothing else. Its name is not its folder's, since
// default is a keyword.
//
// A policy value is used by one goroutine at a time.
package defaults
