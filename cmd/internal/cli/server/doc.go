// Package server holds the cede server commands: list the servers of a pool, and have
// them join or leave.
package server
