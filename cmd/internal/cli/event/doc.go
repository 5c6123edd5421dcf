// Package event holds cede event stream, which prints events of a server as they
// happen.
package event
