// Package record converts a period of a server's history to a scenario: the state at
// the start of the recording, the events until its end, and the placements with their
// victims as expectations. It does not call a server: the caller provides the two
// states and the events between them.
//
// Facts that a scenario cannot express are counted in the notes of a recording. The
// package is not safe for concurrent use.
package record
