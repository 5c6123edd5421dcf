//go:build !race

package guesttest

const racing = false
