// Package columns lays out options and candidates in the columns that policies read.
//
// It never calls a policy and never interprets an answer. core/preempt and
// core/preempt/binding call it.
//
// Every value serves one goroutine and keeps its memory between calls.
package columns
