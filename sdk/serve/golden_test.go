package serve

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policytest/probe"
)

var update = flag.Bool("update", false, "rewrite the golden frames of sdk/abi")

// frames is the folder of the golden frames. Its README.md describes them.
const frames = "../abi/testdata/"

//go:generate go test -run TestGolden_AnswersAreUnchanged -update .

func TestGolden_AnswersAreUnchanged(t *testing.T) {
	if *update {
		writeGolden(t)
	}
	list, err := os.ReadFile(frames + "frames.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		var name, after string
		var op abi.Op
		var status abi.Status
		if _, err := fmt.Sscan(line, &name, &op, &status, &after); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		t.Run(name, func(t *testing.T) { checkGolden(t, name, op, status, after) })
	}
}

func checkGolden(t *testing.T, name string, op abi.Op, status abi.Status, after string) {
	got, answer := answerOf(t, op, readFrame(t, name+".frame"), after)
	if got != status {
		t.Fatalf("status %d, want %d", got, status)
	}
	if status == abi.OK || status == abi.PolicyError {
		if !bytes.Equal(answer, readFrame(t, name+".answer")) {
			t.Errorf("the answer differs from %s.answer", name)
		}
	}
}

// answerOf returns the answer of a new guest to a copy of a frame. Unless after is a
// dash, the guest first answers the frame of that name.
func answerOf(t *testing.T, op abi.Op, frame []byte, after string) (abi.Status, []byte) {
	t.Helper()
	g := &guest{policy: probe.New()}
	Version = probe.Version
	if after != "-" {
		if status := g.call(abi.OpConfigure, aligned(readFrame(t, after+".frame"))); status != abi.OK {
			t.Fatalf("%s: status %d", after, status)
		}
	}
	answer := aligned(frame)
	return g.call(op, answer), answer
}

// aligned returns a copy of a frame with the alignment that frames require.
func aligned(frame []byte) []byte {
	b := abi.Grow(nil, len(frame))
	copy(b, frame)
	return b
}

func readFrame(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(frames + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// writeGolden writes every frame, its answer, and the list of frames.
func writeGolden(t *testing.T) {
	t.Helper()
	old, err := filepath.Glob(frames + "*.frame")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range old {
		_ = os.Remove(path)
		_ = os.Remove(strings.TrimSuffix(path, ".frame") + ".answer")
	}
	var list strings.Builder
	list.WriteString("# name, operation, status, and the frame that a guest has been configured with before, or a dash\n")
	for _, g := range goldens() {
		put(t, g.name+".frame", g.frame)
		after := "-"
		if g.after != "" {
			after = g.after
		}
		status, answer := answerOf(t, g.op, g.frame, after)
		if status == abi.OK || status == abi.PolicyError {
			put(t, g.name+".answer", answer)
		}
		if want := abi.BadFrame; strings.HasPrefix(g.name, "bad-") != (status == want) {
			t.Errorf("%s: status %d", g.name, status)
		}
		fmt.Fprintf(&list, "%s %d %d %s\n", g.name, g.op, status, after)
	}
	put(t, "frames.txt", []byte(list.String()))
}

func put(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(frames+name, b, 0o644); err != nil {
		t.Fatal(err)
	}
}
