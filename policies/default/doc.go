// Package default gives the rules named default, which are sdk/rules, a place
// among the policies. It owns nothing else. The package is named defaults in
// source, since default is a keyword.
//
// A policy value is used by one goroutine at a time.
package defaults
