// Package web serves the console: pages that show the state of the cluster in a browser.
//
// The sources are in ui, in TypeScript. Their bundle in assets is committed and embedded, so
// that a build needs no other tool than Go. The pages read the HTTP API, with the token that
// the user enters, and follow its event stream; this package has no access to the state, and
// serves the same bytes to everyone.
//
// The handler is safe for concurrent use.
package web

//go:generate npm --prefix ui ci --no-audit --no-fund
//go:generate npm --prefix ui run build
