// Package certificate owns files that prove a decision to evict: the calls of policies with
// the frames that they received and their answers, the code of the policies, and the record
// of the decision, signed by a server. Verify makes the calls again and compares the answers
// bit for bit.
//
// The rules of the host that use the answers are not applied again: their result is part of
// the signed record.
//
// core/server/whatif writes certificates and cmd/internal/cli/decision verifies them. A Log
// is safe for concurrent use; all else is values.
package certificate
