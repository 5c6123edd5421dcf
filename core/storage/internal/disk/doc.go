// Package disk owns the properties of files and file systems that the storage needs
// beyond package os: free space, allocated bytes, and holes in sparse files.
//
// Its functions are safe for concurrent use.
package disk
