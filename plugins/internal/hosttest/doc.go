// Package hosttest owns what the tests of every host of policies ask: random
// questions with every column that there is, and the answers of an instance in
// a form that can be compared to the bit.
//
// Tests use it and nothing else does. Nothing here is safe for concurrent use.
package hosttest
