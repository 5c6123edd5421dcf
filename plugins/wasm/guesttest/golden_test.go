package guesttest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/abi"
)

// frames is the directory of the golden frames; its README.md describes them.
const frames = "../../../sdk/abi/testdata/"

func TestGolden_IsIdenticalInEveryLanguage(t *testing.T) {
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			code, err := os.ReadFile(guests + "probe-" + language + ".wasm")
			if err != nil {
				t.Fatal(err)
			}
			checkAllGolden(t, code)
		})
	}
}

// checkAllGolden passes every golden frame to a new instance of a probe.
func checkAllGolden(t *testing.T, code []byte) {
	t.Helper()
	checkGoldenBut(t, compile(t, code))
}

// checkGoldenBut skips frames with the given name prefixes, and returns the number of the
// others.
func checkGoldenBut(t *testing.T, m *compiled, unlike ...string) (put int) {
	t.Helper()
	list, err := os.ReadFile(frames + "frames.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		if line[0] == '#' {
			continue
		}
		var name, after string
		var op abi.Op
		var status abi.Status
		if _, err := fmt.Sscan(line, &name, &op, &status, &after); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if slices.ContainsFunc(unlike, func(start string) bool { return strings.HasPrefix(name, start) }) {
			continue
		}
		put++
		t.Run(name, func(t *testing.T) { checkGolden(t, m.start(t), name, op, status, after) })
	}
	return put
}

func checkGolden(t *testing.T, g *guest, name string, op abi.Op, want abi.Status, after string) {
	if after != "-" {
		if status, _ := g.answer(abi.OpConfigure, readFrame(t, after+".frame")); status != abi.OK {
			t.Fatalf("%s: status %d", after, status)
		}
	}
	status, answer := g.answer(op, readFrame(t, name+".frame"))
	if status != want {
		t.Fatalf("status %d, want %d", status, want)
	}
	if status != abi.OK && status != abi.PolicyError {
		return
	}
	expected := readFrame(t, name+".answer")
	if status == abi.PolicyError { // output before a failure is undefined
		answer, expected = words(answer), words(expected)
	}
	if !bytes.Equal(answer, expected) {
		t.Errorf("the answer differs from %s.answer%s", name, difference(answer, expected))
	}
}

// The frames in the directory bindings are answered by default.
func TestGoldenBindings_AreIdenticalInEveryLanguage(t *testing.T) {
	list, err := filepath.Glob(frames + "bindings/*.frame")
	if err != nil || len(list) == 0 {
		t.Fatalf("there are no frames (%v)", err)
	}
	inLanguages(t, "default", func(t *testing.T, g *guest) {
		for _, path := range list {
			name := "bindings/" + strings.TrimSuffix(filepath.Base(path), ".frame")
			checkGolden(t, g, name, abi.OpPreemptBindings, abi.OK, "-")
		}
	})
}

// words returns the error area of a frame.
func words(frame []byte) []byte {
	at := binary.LittleEndian.Uint32(frame[64:])
	if uint64(at) >= uint64(len(frame)) {
		return nil
	}
	return frame[at:]
}

// difference describes the first difference between two frames.
func difference(got, want []byte) string {
	for i := range got {
		if got[i] != want[i] {
			from, to := max(0, i-8), min(len(got), i+40)
			return fmt.Sprintf(" at byte %d: %q, want %q", i, got[from:to], want[from:to])
		}
	}
	return ""
}

func readFrame(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(frames + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
