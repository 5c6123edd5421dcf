// Package policytest owns what tests of policies need: cases written so that a
// person can read them, the columns that a policy sees of them, random cases
// from a seed, and the part of the host that turns a policy's answer into
// victims. It decides nothing about whom to evict.
//
// Tests use it and nothing else does. Nothing here is safe for concurrent use.
package policytest
