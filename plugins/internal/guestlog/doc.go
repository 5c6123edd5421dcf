// Package guestlog owns the output of guests: it makes their text printable and forwards a
// bounded number of lines to the host's log.
//
// It never interprets the text. Policy hosts call it. A Log is safe for concurrent use.
package guestlog
