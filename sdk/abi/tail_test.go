package abi

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// Tail returns every byte that a guest may have written.
func TestTail_ContainsEveryAnswer(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		options := 1 + r.IntN(20)
		in := &policy.Candidates{Preemptor: &policy.Preemptor{Ask: []float64{1}}, Dims: []string{"cpu"}, Need: [][]float64{make([]float64, options)}}
		in.Freed, in.FirstRow = in.Need, []int32{0}
		for range options {
			in.FirstRow = append(in.FirstRow, in.FirstRow[len(in.FirstRow)-1]+int32(r.IntN(9)))
		}
		rows := int(in.FirstRow[options])
		in.Rows.Priority = make([]int32, rows)
		var e Encoder
		op := []Op{OpPriorityDelta, OpScoreVictims, OpSelectVictims}[r.IntN(3)]
		e.Candidates(op, in, 0)
		sent := Grow(nil, e.Size())
		e.Write(sent)
		answered := Grow(nil, len(sent))
		copy(answered, sent)
		var d Decoder
		if _, err := d.Load(answered); err != nil {
			t.Fatal(err)
		}
		var s policy.Selection
		s.Reset()
		for i := range options {
			if n := in.FirstRow[i+1] - in.FirstRow[i]; n > 0 {
				s.Pick(int(in.FirstRow[i]))
			}
			s.Next()
		}
		if op == OpSelectVictims {
			if err := d.PutSelection(&s); err != nil {
				t.Fatal(err)
			}
		} else if err := d.PutRecheck(&s.Recheck); err != nil {
			t.Fatal(err)
		}
		d.PutError("something")
		entries, from := d.Tail()
		if from < len(sent)/4 && rows > 100 {
			t.Errorf("%d of %d bytes returned", len(sent)-from, len(sent))
		}
		if err := e.PutTail(sent, entries, answered[from:], from); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(sent, answered) {
			t.Fatalf("operation %d: the reassembled frame differs from the answered one", op)
		}
	}
}

func TestPutTail_RejectsInvalidTail(t *testing.T) {
	t.Parallel()
	var e Encoder
	e.Describe()
	frame := Grow(nil, e.Size())
	e.Write(frame)
	entries := make([]byte, len(e.answers)*EntryLen)
	for _, tc := range []struct {
		entries []byte
		tail    int
		from    int
	}{
		{nil, len(frame), -1},
		{nil, len(frame), 1},
		{nil, len(frame) + 1, 0},
		{nil, 0, len(frame) + 1},
		{entries[1:], 8, len(frame) - 8},
		{append(entries, 0), 8, len(frame) - 8},
	} {
		if e.PutTail(frame, tc.entries, make([]byte, tc.tail), tc.from) == nil {
			t.Errorf("%d entries, %d bytes from %d were taken", len(tc.entries)/EntryLen, tc.tail, tc.from)
		}
	}
	for _, from := range []int{0, 100, len(frame)} {
		if err := e.PutTail(frame, entries, make([]byte, len(frame)-from), from); err != nil {
			t.Error(err)
		}
	}
}
