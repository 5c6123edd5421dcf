// Package hosttest owns the test cases of policy hosts: random inputs with every existing
// column, and the answers of an instance in a form that can be compared bit by bit.
//
// It is only used by tests. It is not safe for concurrent use.
package hosttest
