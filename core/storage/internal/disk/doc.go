// Package disk owns what the storage needs to know about files and file systems
// beyond package os: free space, allocated bytes, and holes in sparse files.
//
// Its functions are safe for concurrent use.
package disk
