package process

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestLineWriter_SplitsAndTruncates(t *testing.T) {
	const text = "one\n\ntwo\r\n" + "0123456789\n" + "0123456789abc\n" + "three\nno end"
	want := []string{"one", "", "two\r", "0123456789", "0123456789 ...", "three", "no end"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var got []string
		l := &lineWriter{maxLen: 10, emit: func(line string) { got = append(got, line) }}
		for rest := text; rest != ""; {
			n := 1 + r.IntN(len(rest))
			if written, err := l.Write([]byte(rest[:n])); written != n || err != nil {
				t.Fatal(written, err)
			}
			rest = rest[n:]
		}
		l.flush()
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		if cap(l.buf) > 64 {
			t.Fatalf("buffer holds %d bytes", cap(l.buf))
		}
	}
}

func TestParseHclog_RejectsOtherLines(t *testing.T) {
	for line, want := range map[string]struct {
		level slog.Level
		text  string
	}{
		`{"@level":"info","@message":"hello","@module":"x","rows":3,"a":"b"}`: {slog.LevelInfo, "hello a=b rows=3"},
		`{"@level":"warn","@message":"w"}`:                                    {slog.LevelWarn, "w"},
		`{"@level":"error","@message":"e"}`:                                   {slog.LevelError, "e"},
		`{"@level":"trace","@message":"t"}`:                                   {slog.LevelDebug, "t"},
		`{"@level":["error"],"@message":"l"}`:                                 {slog.LevelDebug, "l"},
	} {
		if level, text, ok := parseHclog(line); !ok || level != want.level || text != want.text {
			t.Errorf("%s: got %v %q %v", line, level, text, ok)
		}
	}
	for _, line := range []string{"", "plain", "{", "{}", "[]", "null", `{"@message":1}`, `{"@message":null}`, `{"message":"x"}`, strings.Repeat("{", 10_000)} {
		if _, _, ok := parseHclog(line); ok {
			t.Errorf("%.40s was parsed as a line of hclog", line)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"@level":"info","@message":"hello","rows":3}`)
	f.Fuzz(func(_ *testing.T, line string) {
		parseHclog(line)
	})
}
