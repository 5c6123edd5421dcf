// Package storagetest holds fixtures that the tests of the storage packages share.
//
// It is only used by tests.
package storagetest
