// Package steps lets a program outside of the process answer the calls of policies in a
// simulated run, as JSON lines. Session.Wrap puts itself between the run and a policy:
// each call of a hook is written with the columns that the policy reads and with the
// answer of the policy, and the answer of the program is used instead. The package makes no
// decision and does not verify answers; the host does, as for every policy.
//
// A Session serves one run, whose options must have one worker, so that the order of calls
// is determined.
package steps
