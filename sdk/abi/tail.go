package abi

import (
	"encoding/binary"
	"errors"
)

var errTail = errors.New("the answer does not have the length of its area")

// Tail returns the parts of the frame that a call may have changed: the answer
// entries, and the end of the frame from the first answer on. A process returns only
// these, because the sender has the columns before them.
func (d *Decoder) Tail() (entries []byte, from int) {
	word := func(at int) int { return int(binary.LittleEndian.Uint32(d.frame[at:])) }
	at, n := word(offAnswersOff), word(offAnswers)
	entries = d.frame[at : at+n*EntryLen]
	from = min(len(d.frame), word(offErrorOff))
	for k := range n {
		from = min(from, word(at+k*EntryLen+8))
	}
	if at >= from {
		return nil, from
	}
	return entries, from
}

// PutTail copies the parts that a guest returned into the frame that was sent. An
// error is a fault of the guest.
func (e *Encoder) PutTail(frame, entries, tail []byte, from int) error {
	if from < 0 || from > len(frame) || len(tail) != len(frame)-from || len(entries) != 0 && len(entries) != len(e.answers)*EntryLen {
		return errTail
	}
	copy(frame[from:], tail)
	copy(frame[HeaderLen+len(e.columns)*EntryLen:], entries)
	return nil
}
