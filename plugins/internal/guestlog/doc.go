// Package guestlog owns what guests say: it makes their words fit to be shown
// and passes a bounded number of their lines on to the host's log.
//
// It decides nothing by what they say. Hosts of policies call it. A Log is safe
// for concurrent use.
package guestlog
