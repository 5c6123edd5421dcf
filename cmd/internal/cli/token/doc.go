// Package token holds the cede token commands: create, list, describe and delete access
// tokens.
package token
