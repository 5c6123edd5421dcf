// Package rulestest holds the reference interpreter of rules, for tests: it evaluates
// checked expressions over the tables of the SDK, as docs/reference/rules.md defines them.
// It shares no code with package link, whose modules must have the same answers.
//
// A Policy is used by one goroutine at a time.
package rulestest
