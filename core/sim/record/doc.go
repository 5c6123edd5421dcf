// Package record writes what a server decided as a scenario: what was there when
// the recording began, what happened until it ended, and, as expectations, what
// was placed where and who was evicted for it. It asks no server: whoever records
// brings the two states and the events between them.
//
// What scenarios cannot say is counted in the notes of a recording, never left
// out in silence. Nothing here is safe for concurrent use.
package record
