package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// repeat returns a stream of size bytes: head, then body repeatedly.
func repeat(head, body string, size int) io.Reader {
	chunk := strings.Repeat(body, 1+(64<<10)/len(body))
	return io.LimitReader(io.MultiReader(strings.NewReader(head), &endless{text: chunk}), int64(size))
}

type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

// noise returns random bytes.
type noise struct{ *rand.ChaCha8 }

// TestDecode_RejectsHostileInput decodes 100 MB of various inputs that are not scenarios.
// Decode must reject each after its first bytes, or by a limit on its expansion.
func TestDecode_RejectsHostileInput(t *testing.T) {
	t.Parallel()
	const size = 100 << 20
	head := "version: 1\nname: x\n"
	object := `{"version": 1, "name": "x", `
	for _, c := range []struct {
		name string
		r    io.Reader
		want string
	}{
		{"random bytes", io.LimitReader(noise{rand.NewChaCha8([32]byte{})}, size), "expected"},
		{"zeros", repeat("\x00", "\x00", size), "expected text, found the byte 0x00"},
		{"words", repeat("y\n", "y\n", size), "expected a mapping"},
		{"one word", repeat("y", "y", size), "found \"yyy"},
		{"numbers", repeat("1 ", "2 ", size), "expected a mapping"},
		{"blank", repeat(" \n", " \n", size), "the file is empty"},
		{"comments", repeat("#\n", "# a b\n", size/4), "found the end of the file"},
		{"documents", repeat("---\n", "---\n", size), "the file is empty"},
		{"nested lists", repeat(head+"nodes: ", "[", size), "too large for YAML"},
		{"nested mappings", repeat("{", "{", size), "too large for YAML"},
		{"nested dashes", repeat(head+"nodes:\n", "- ", size), "too large for YAML"},
		{"keys", repeat(head, "a: b\n", size), "too large for YAML"},
		{"elements", repeat(head+"nodes:\n", "- a\n", size), "too large for YAML"},
		{"aliases", repeat(head+"description: &a b\nnodes: [", "*a, ", size), "too large for YAML"},
		{"question marks", repeat(head, "? ", size), "too large for YAML"},
		{"text after a field", repeat(head, "y\n", size), "could not find expected ':'"},
		{"one long text", repeat("version: 1\nname: ", "x", size/8), "f:2: a string of more than 1 MiB"},
		{"JSON braces", repeat(object, `"a":{`, size), "nested more than 100"},
		{"JSON brackets", repeat(object+`"nodes":`, "[", size), "nested more than 100"},
		{"JSON text", repeat(object+`"name": "`, "x", size), "a string of more than 1 MiB"},
		{"JSON number", repeat(object+`"seed": `, "1", size), "expected , or }"},
		{"JSON elements", repeat(object+`"nodes":[`, "{},", size), "more than 10000 problems"},
		{"JSON nulls", repeat(object+`"nodes":[`, "null,", size), "more than 10000 problems"},
		{"JSON keys", repeat(object, `"a":1,`, size), "more than 10000 problems"},
		{"JSON garbage", repeat("{\"", "\\u12", size), "a string of more than 1 MiB"},
		{"JSON constraints", repeat(object+`"jobs":[{"id":"a","groups":[{"name":"g","constraints":[`, `{},`, size), "are almost empty"},
		{"JSON cut off", repeat(object+`"events":[`, `{"at":0,"submit":"j"},`, size/10), "the file ends"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Decode("f", c.r)
			checkError(t, err)
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("err = %.500v, want %q", err, c.want)
			}
		})
	}
}

// TestDecode_StopsAtDuplicateNames checks that a list of millions of elements with the
// same name is rejected after the first thousands, before it is read completely.
func TestDecode_StopsAtDuplicateNames(t *testing.T) {
	t.Parallel()
	head := `{"version": 1, "name": "x", `
	for _, c := range []struct{ name, start, body, want string }{
		{"nodes", `"nodes":[`, `{"id":"n"},` + "\n", `f:10000: nodes[9999].id: duplicate id "n": already used by nodes[0]; use a unique id`},
		{"running", `"running":[`, `{"id":"a","job":"j","group":"g","node":"n"},`, `running[9999].id: duplicate id "a": already used by running[0]`},
		{"groups", `"jobs":[{"id":"j","groups":[`, `{"name":"g"},`, `jobs[0].groups[9999].name: duplicate name "g": already used by jobs[0].groups[0]`},
		{"jobs without groups", `"jobs":[`, `{"id":"j"},`, "jobs[0].groups: groups is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &counted{Reader: repeat(head+c.start, c.body, 100<<20)}
			_, err := Decode("f", r)
			checkError(t, err)
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "more than 10000 problems up to line") {
				t.Errorf("err = %.500v, want %q", err, c.want)
			}
			if r.read > 2<<20 {
				t.Errorf("%d bytes were read", r.read)
			}
		})
	}
}

// counted counts the bytes that were read.
type counted struct {
	io.Reader
	read int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += n
	return n, err
}

func TestDecode_StopsAtTooManyNodes(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	b.WriteString(`{"version": 1, "name": "x", "nodes": [`)
	for i := range maxNodes + 1 {
		fmt.Fprintf(&b, "{\"id\":\"n%d\"},\n", i)
	}
	r := &counted{Reader: io.MultiReader(&b, repeat("", `{"id":"n"},`, 100<<20))}
	_, err := Decode("f", r)
	checkError(t, err)
	if want := "f:1000001: nodes[1000000]: more than 1000000 nodes in all; use fewer nodes"; err.Error() != want {
		t.Errorf("err = %v, want %q", err, want)
	}
	if r.read > 32<<20 {
		t.Errorf("%d bytes were read", r.read)
	}
}

// TestDecode_LimitsProblems checks that validation of a well-formed but meaningless file
// stops at the problem limit.
func TestDecode_LimitsProblems(t *testing.T) {
	t.Parallel()
	body := strings.Repeat(`{"at":"5s","submit":"j"},`, 20_000)
	_, err := Decode("f", strings.NewReader(`{"version":1,"name":"x","events":[`+strings.TrimSuffix(body, ",")+"]}"))
	checkError(t, err)
	if want := "f:1: more than 10000 problems: the rest of the file was not checked"; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("err = %.200v, want %q", err, want)
	}
}

// TestDecode_RefusesAliasBombs decodes ten mappings, each of which holds the previous
// one ten times: 10^10 values.
func TestDecode_RefusesAliasBombs(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("version: 1\nname: x\npolicies:\n- name: p\n  use: p\n  config:\n    a0: &a0 [1, 2]\n")
	for i := range 9 {
		this, last := string(rune('1'+i)), string(rune('0'+i))
		b.WriteString("    a" + this + ": &a" + this + " [" + strings.Repeat("*a"+last+", ", 10) + "]\n")
	}
	_, err := Decode("f", strings.NewReader(b.String()))
	checkError(t, err)
	if !strings.Contains(err.Error(), "aliases repeat them") {
		t.Error(err)
	}
	_, err = Decode("f", strings.NewReader("version: 1\nname: x\npolicies:\n- {name: p, use: p, config: &a {b: *a}}\n"))
	checkError(t, err)
	if !strings.Contains(err.Error(), "nested more than 100") {
		t.Error(err)
	}
}

func TestDecode_RefusesHugeFilesUnread(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "huge.json")
	if err := os.WriteFile(name, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, MaxSize+1); err != nil {
		t.Skip(err)
	}
	_, err := decodeFile(t, name)
	checkError(t, err)
	if !strings.Contains(err.Error(), "larger than 512 MiB") {
		t.Error(err)
	}
}

// TestDecode_LimitsStreams checks that a stream without a known size is rejected after
// MaxSize bytes.
func TestDecode_LimitsStreams(t *testing.T) {
	t.Parallel()
	l := &limited{r: repeat("{", " ", 100), left: 50}
	_, err := io.ReadAll(l)
	if !errors.Is(err, errTooLarge) {
		t.Error(err)
	}
}

type broken struct{}

var errBroken = errors.New("disk on fire")

func (broken) Read([]byte) (int, error) { return 0, errBroken }

// TestDecode_ReportsReadErrors checks that a failing disk is not reported as a syntax error.
func TestDecode_ReportsReadErrors(t *testing.T) {
	t.Parallel()
	for _, start := range []string{"", "version: 1\n", strings.Repeat("a: b\n", 30000), `{"version": 1`, `{"version": 1}`} {
		_, err := Decode("f", io.MultiReader(strings.NewReader(start), broken{}))
		checkError(t, err)
		if !errors.Is(err, errBroken) {
			t.Errorf("after %.20q: %v", start, err)
		}
	}
}

// TestDecode_IndependentOfReadSizes checks that window boundaries do not affect the result.
func TestDecode_IndependentOfReadSizes(t *testing.T) {
	t.Parallel()
	text := encoded(t, large(300), JSON)
	want, err := Decode("f", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 7, 4096, 65536} {
		got, err := Decode("f", &pieces{bytes.NewReader(text), size})
		if err != nil || len(got.Jobs) != len(want.Jobs) || got.Jobs[299].Groups[1].Labels["app"] != want.Jobs[299].Groups[1].Labels["app"] {
			t.Errorf("with reads of %d bytes: %v", size, err)
		}
	}
}

type pieces struct {
	r    io.Reader
	size int
}

func (p *pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.size)]) }

// A small file cannot request an unbounded number of instances.
func TestDecode_LimitsInstances(t *testing.T) {
	t.Parallel()
	group := func(name string, count int) string { return fmt.Sprintf(`{"name":%q,"count":%d}`, name, count) }
	file := func(jobs ...string) string {
		return `{"version":1,"name":"x","nodes":[{"id":"n"}],"jobs":[` + strings.Join(jobs, ",") + `]}`
	}
	job := func(id string, groups ...string) string {
		return fmt.Sprintf(`{"id":%q,"groups":[%s]}`, id, strings.Join(groups, ","))
	}
	var many []string
	for i := range 31 {
		many = append(many, job(fmt.Sprint("j", i), group("g", 1_000_000)))
	}
	for text, want := range map[string]string{
		file(job("a", group("g", 1_000_000))):                    "",
		file(job("a", group("g", 1_000_001))):                    "f:1: jobs[0].groups: more than 1000000 instances of one job; use smaller counts",
		file(job("a", group("g", 600_000), group("h", 600_000))): "f:1: jobs[0].groups: more than 1000000 instances of one job; use smaller counts",
		file(many...): "f:1: jobs[30].groups: more than 30000000 instances of all jobs; use smaller counts or fewer jobs",
	} {
		_, err := Decode("f", strings.NewReader(text))
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%.100s: %v, want %q", text, err, want)
		}
	}
}
