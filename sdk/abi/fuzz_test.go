package abi_test

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/policytest/probe"
)

// seeds returns the golden frames, including invalid ones.
func seeds(f *testing.F, pattern string) {
	f.Helper()
	list, err := filepath.Glob("testdata/" + pattern)
	if err != nil || len(list) == 0 {
		f.Fatalf("no golden frames: %v", err)
	}
	for _, path := range list {
		frame, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
	}
}

// fenced returns an aligned copy of a frame in the middle of a buffer, so that a read
// beyond its end is detected: the bytes after it do not belong to the frame.
func fenced(b []byte) []byte {
	buffer := abi.Grow(nil, len(b)+64)
	copy(buffer, b)
	return buffer[:len(b):len(b)]
}

// FuzzDecoder checks that, for any bytes, a decoder returns a result or an error, and
// that every element of a result can be read. Frames are large: fuzz with
// -fuzzminimizetime 10x, or minimisation takes all the time.
func FuzzDecoder(f *testing.F) {
	seeds(f, "*.frame")
	f.Fuzz(func(t *testing.T, b []byte) {
		var d abi.Decoder
		frame := fenced(b)
		if _, err := d.Load(frame); err != nil {
			return
		}
		answerAll(&d)
	})
}

// answerAll decodes a frame as each operation does, regardless of the frame's operation.
func answerAll(d *abi.Decoder) {
	if in, err := d.Candidates(); err == nil {
		readCandidates(in)
		var recheck policy.Recheck
		var scores policy.VictimScores
		if gap, err := d.Gap(); err == nil {
			for i := range gap {
				gap[i] = in.Rows.Priority[i]
			}
		}
		if err := d.VictimScores(&scores); err == nil {
			for row := range in.Rows.Len() {
				scores.Tier[row], scores.Score[row] = 1, 2
			}
		}
		_ = d.PutSelection(selectionOf(in))
		_ = d.PutRecheck(&recheck)
	}
	if in, err := d.Options(); err == nil {
		readOptions(in)
		var scores policy.OptionScores
		if err := d.OptionScores(&scores); err == nil {
			for i := range in.Len() {
				scores.Tiers[3][i], scores.Score[i] = 1, 2
			}
		}
	}
	if c, err := d.Config(probe.New().Settings()); err == nil {
		for _, v := range c.Values() {
			_ = v.Name + v.Item + v.Text
		}
	}
	description := probe.Description([]byte("[]"))
	_ = d.PutDescription(&description)
	d.PutError("why")
}

func selectionOf(in *policy.Candidates) *policy.Selection {
	var s policy.Selection
	s.Reset()
	for i := range in.Len() {
		for row := in.FirstRow[i]; row < in.FirstRow[i+1]; row++ {
			s.Pick(int(row))
		}
		s.Next()
	}
	return &s
}

// readCandidates reads every element that a policy may index.
func readCandidates(in *policy.Candidates) (sum float64) {
	for i := range in.Len() {
		for row := in.FirstRow[i]; row < in.FirstRow[i+1]; row++ {
			sum += float64(in.Rows.Priority[row])
		}
	}
	for d := range in.Dims {
		sum += in.Preemptor.Ask[d]
		for i := range in.Len() {
			sum += in.Need[d][i]
		}
	}
	return sum + readRows(&in.Rows, len(in.Dims)) + readShared(in.Shared, len(in.Dims))
}

func readOptions(in *policy.Options) (sum float64) {
	for i := range in.Len() {
		sum += float64(in.Node[i]) + float64(in.VictimCount[i]) + float64(in.HighestPriority[i]) + float64(in.PrioritySum[i])
	}
	if in.FirstVictim != nil {
		for i := range in.Len() {
			for row := in.FirstVictim[i]; row < in.FirstVictim[i+1]; row++ {
				sum += float64(in.Victims.Priority[row])
			}
		}
	}
	return sum + readRows(&in.Victims, len(in.Dims)) + readShared(in.Shared, len(in.Dims))
}

func readRows(r *policy.Rows, dims int) (sum float64) {
	for row := range r.Len() {
		if len(r.Use) > 0 {
			for d := range dims {
				sum += r.Use[d][row]
			}
		}
		if l := r.Labels; l != nil {
			for k := l.First[row]; k < l.First[row+1]; k++ {
				sum += float64(l.Key[k]) + float64(l.Value[k])
			}
		}
		if n := r.Annotations; n != nil {
			for k := range n.Names {
				sum += n.Values[k][row]
			}
		}
	}
	return sum
}

func readShared(s *policy.Shared, dims int) (sum float64) {
	if s == nil {
		return 0
	}
	for d := range dims {
		sum += s.Totals[d]
	}
	for i := range s.Namespaces.Name {
		sum += s.Namespaces.Weight[i]
		for _, use := range s.Namespaces.Use {
			sum += use[i]
		}
	}
	return sum
}

// FuzzAnswers checks that, if a guest changes its frame in any way, a host decodes
// the answer or reports the fault, and reads only its own areas.
func FuzzAnswers(f *testing.F) {
	seeds(f, "*.answer")
	f.Add([]byte{})
	r := rand.New(rand.NewPCG(11, 12))
	in, options := policytest.RandomCandidates(r, 6, 8), policytest.RandomOptions(r, 6, 4)
	f.Fuzz(func(t *testing.T, b []byte) {
		var e abi.Encoder
		scribble := func() []byte {
			frame := fenced(make([]byte, e.Size()))
			e.Write(frame)
			for i := range frame { // over all of it, so that counts and areas are hit
				if len(b) > 0 {
					frame[i] ^= b[i%len(b)]
				}
			}
			return frame
		}
		e.Describe()
		if d, err := e.Description(scribble()); err == nil {
			_ = d.Info.Name + string(d.Settings)
		}
		n := in.Rows.Len()
		e.Candidates(abi.OpPriorityDelta, in, probe.AllColumns)
		e.Gap(scribble(), make([]int32, n), new(policy.Recheck))
		e.Candidates(abi.OpScoreVictims, in, probe.AllColumns)
		e.VictimScores(scribble(), &policy.VictimScores{Tier: make([]int64, n), Score: make([]float64, n)})
		e.Candidates(abi.OpSelectVictims, in, probe.AllColumns)
		var s policy.Selection
		s.Reset()
		frame := scribble()
		if err := e.Selection(frame, &s); err == nil && s.Len() != in.Len() {
			t.Fatalf("%d answers for %d options", s.Len(), in.Len())
		}
		_ = e.ErrorText(frame)
		e.Options(options, probe.AllColumns)
		e.OptionScores(scribble(), policytest.NewScores(options.Len()))
	})
}

// A selection is a fault if its ends or counts do not match its picks.
func TestSelection_ReportsFaults(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(13, 14))
	in := policytest.RandomCandidates(r, 6, 8)
	for in.Len() < 3 || in.Rows.Len() < 3 {
		in = policytest.RandomCandidates(r, 6, 8)
	}
	for name, spoil := range map[string]func(count, ends []byte){
		"more than the capacity": func(count, _ []byte) { binary.LittleEndian.PutUint32(count, 1<<31) },
		"picks of no option":     func(count, _ []byte) { binary.LittleEndian.PutUint32(count, 1) },
		"ends beyond the picks":  func(_, ends []byte) { binary.LittleEndian.PutUint32(ends[4:], 9) },
		"negative ends":          func(_, ends []byte) { binary.LittleEndian.PutUint32(ends, 1<<31) },
	} {
		var e abi.Encoder
		var s policy.Selection
		s.Reset()
		e.Candidates(abi.OpSelectVictims, in, 0)
		frame := written(&e, nil)
		picks, ends := entryOf(frame, abi.AnswerPicks), entryOf(frame, abi.AnswerEnds)
		binary.LittleEndian.PutUint32(frame[picks+12:], 0) // none
		spoil(frame[picks+12:], frame[binary.LittleEndian.Uint32(frame[ends+8:]):])
		if err := e.Selection(frame, &s); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// entryOf returns the offset of an answer's entry.
func entryOf(frame []byte, id abi.ID) int {
	n, at := binary.LittleEndian.Uint32(frame[56:]), int(binary.LittleEndian.Uint32(frame[60:]))
	for range n {
		if abi.ID(binary.LittleEndian.Uint32(frame[at:])) == id {
			return at
		}
		at += abi.EntryLen
	}
	panic("the frame has no such answer")
}

// A short, targeted fuzz test in every run: words of golden frames are replaced by
// values at which arithmetic overflows.
func TestDecoder_SurvivesCorruptedWords(t *testing.T) {
	t.Parallel()
	list, err := filepath.Glob("testdata/*-all.frame")
	if err != nil || len(list) == 0 {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(15, 16))
	for _, path := range list {
		frame, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for range policytest.Count(t) / 4 {
			spoilt := fenced(frame)
			for range 1 + r.IntN(3) {
				binary.LittleEndian.PutUint32(spoilt[4*r.IntN(len(spoilt)/4):], spoil(r, len(spoilt)))
			}
			var d abi.Decoder
			if _, err := d.Load(spoilt); err == nil {
				answerAll(&d)
			}
		}
	}
}

// spoil returns a word at a boundary.
func spoil(r *rand.Rand, size int) uint32 {
	return []uint32{
		0, 1, 8, uint32(r.IntN(64)), uint32(size), uint32(size - 8), 1 << 29, 1<<31 - 1, 1 << 31, 1<<32 - 8, 1<<32 - 1, 0x0303, 0x0401,
		uint32(r.IntN(size)) &^ 7, r.Uint32(),
	}[r.IntN(15)]
}
