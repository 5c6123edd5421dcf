// Package audit composes the records of changes by operators: the action and its effect
// from the command that is proposed, and the origin from the context of the request.
//
// A record travels with the entry of its command, so that it is stored if and only if the
// command takes effect, and every server stores the same text. The package writes nothing
// itself. Its values are safe for concurrent use.
package audit
