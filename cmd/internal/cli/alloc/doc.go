// Package alloc holds the cede alloc commands: list, describe and stop allocations,
// and print their logs.
package alloc
