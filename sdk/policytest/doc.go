// Package policytest provides tools for tests of policies: a readable text form of
// cases, the columns that a policy receives for them, random cases from a seed, and
// the part of the host that turns the answer of a policy into victims. It never
// selects victims itself.
//
// Only tests and test commands import it. Nothing here is safe for concurrent use.
package policytest
