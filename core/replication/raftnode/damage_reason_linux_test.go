package raftnode_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/storage/doctor"
)

// A damage is a damaged file of a copy of an image.
type damage struct {
	image, dir, path string
	before, after    []byte // content, without the zeros at the end of before; nil if it was removed
	result           *result
}

// readContent returns the first bytes of a file, or nil if it does not exist or is a directory.
func readContent(t *testing.T, path string, limit int64) []byte {
	t.Helper()
	if info, err := os.Stat(path); errors.Is(err, os.ErrNotExist) || err == nil && info.IsDir() {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	b := make([]byte, limit)
	n, err := io.ReadFull(file, b)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return b[:n]
}

// A reason explains why damage to a kind of file has no effect. Damage without one is an
// error, even if the state is the same.
type reason struct {
	path  string // a regular expression
	text  string
	holds func(d *damage) bool
}

// Sizes of parts of Badger's files: the header of a value log, and the initialization vector and
// the check text of a registry without keys.
const (
	valueLogHeader = 20
	registryVector = 16
	registrySize   = registryVector + len("Hello Badger") + 8
)

// The two marks of a rollback guard.
const (
	markSize   = 36
	markStride = 512
)

// processID matches the content of the lock file.
var processID = regexp.MustCompile(`^\d+\n$`)

var reasons = []reason{
	{`^LOCK$`, "the ID of a process, which a start replaces", func(d *damage) bool {
		now, err := os.ReadFile(filepath.Join(d.dir, d.path))
		return err == nil && processID.Match(d.before) && processID.Match(now) && !bytes.Equal(now, d.before)
	}},
	{`^cluster-id$`, "the state holds the ID", func(d *damage) bool {
		return len(d.after) == 0 && d.result.Cluster != "" && bytes.Contains(d.before, []byte(d.result.Cluster))
	}},
	{`^decision-key$`, "the start creates another key", func(d *damage) bool {
		created, err := os.ReadFile(filepath.Join(d.dir, d.path))
		return d.after == nil && err == nil && len(created) == len(d.before) && !bytes.Equal(created, d.before)
	}},
	{`/DISCARD$`, "statistics of value logs, which hold no values", (*damage).valueLogIsEmpty},
	{`\.vlog$`, "a value log without values", (*damage).valueLogIsEmpty},
	{`/KEYREGISTRY$`, "without encryption it holds no keys, and its vector is not used", func(d *damage) bool {
		return len(d.before) <= registrySize && (d.after == nil || bytes.Equal(d.before[registryVector:], d.after[registryVector:]))
	}},
	{`^raft/log/.*\.sst$`, "the start does not read the block, which doctor names", func(d *damage) bool { return d.isNamedByDoctor() }},
	{`^(raft|store)/tail$`, "one of two marks is intact", func(d *damage) bool { return d.isIntact(0) || d.isIntact(markStride) }},
	{`^store/tail$`, "the start creates the guard again", func(d *damage) bool {
		created, err := os.ReadFile(filepath.Join(d.dir, d.path))
		return len(d.after) == 0 && err == nil && bytes.HasPrefix(created, []byte("cedetail"))
	}},
}

// harmless returns the outcome of damage that neither the server nor a read reports, and
// whether a reason applies.
func (d *damage) harmless() (text string, ok bool) {
	for _, r := range reasons {
		if regexp.MustCompile(r.path).MatchString(d.path) && r.holds(d) {
			return "without effect: " + r.text, true
		}
	}
	return "WITHOUT EFFECT, for an unknown reason", false
}

// valueLogIsEmpty reports whether each value log in the folder of the file has a header only.
func (d *damage) valueLogIsEmpty() bool {
	logs, err := filepath.Glob(filepath.Join(d.image, filepath.Dir(d.path), "*.vlog"))
	for _, path := range logs {
		size, sizeErr := contentSize(path)
		if err = errors.Join(err, sizeErr); size > valueLogHeader {
			return false
		}
	}
	return err == nil && len(logs) > 0
}

// isNamedByDoctor reports whether doctor found damage of the file.
func (d *damage) isNamedByDoctor() bool {
	for _, f := range d.result.Doctor {
		if f.Severity != doctor.Info && strings.Contains(f.Where+f.Problem, filepath.Base(d.path)) {
			return true
		}
	}
	return false
}

// isIntact reports whether the mark at an offset is as before.
func (d *damage) isIntact(at int) bool {
	end := at + markSize
	return len(d.before) >= end && len(d.after) >= end && bytes.Equal(d.before[at:end], d.after[at:end])
}
