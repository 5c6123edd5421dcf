// Package examples owns stories: a cluster, what happens to it, and what must
// come out, each in a folder with a page that tells it. README.md lists them.
//
// There is no code in it but its tests, which play every story and compare what
// the commands print with what the pages show. It is never imported.
package examples
