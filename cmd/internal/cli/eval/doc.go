// Package eval holds the cede eval commands: list, describe and explain evaluations.
package eval
