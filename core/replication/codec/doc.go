// Package codec owns the encoding of log entries: the conversion between the
// model and the messages of replicationpb, the limits of an entry's size, and the
// fields that a cluster's version allows.
//
// It applies nothing and sends nothing. The fsm package applies what Decode
// returns, the snapshot package uses the same conversions for its records, and
// servers exchange evaluations and plans in the encoding of the log.
//
// Encodings never change: entries of old releases are in logs and snapshots. The
// tests decode and encode recorded entries. Functions are safe for concurrent use;
// an Encoder or a Decoder is used by one goroutine, for one message.
package codec

//go:generate go run ./internal/codecgen messages_gen.go
