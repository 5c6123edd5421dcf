// Package decision holds the cede decision commands: write certificates of decisions to
// evict, and verify them without a server.
package decision
