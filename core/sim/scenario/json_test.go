package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// readAll returns the keys and values of a document in order, and whether it is valid.
func readAll(text []byte) (words []string, valid bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(fatal); !ok {
				panic(r)
			}
			valid = false
		}
	}()
	src := newJSONSource(bytes.NewReader(text))
	for {
		switch ev := src.next(); ev.kind {
		case kindEnd:
			return words, true
		case kindObject, kindObjectEnd, kindList, kindListEnd:
			words = append(words, "bracket")
		default:
			words = append(words, string(ev.text))
		}
	}
}

// decodeAll is readAll by encoding/json.
func decodeAll(text []byte) (words []string, valid bool) {
	if !json.Valid(text) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return words, true
		}
		switch v := token.(type) {
		case json.Delim:
			words = append(words, "bracket")
		case string:
			words = append(words, v)
		case json.Number:
			words = append(words, v.String())
		case bool:
			words = append(words, map[bool]string{true: "true", false: "false"}[v])
		default:
			words = append(words, "null")
		}
	}
}

// The reader accepts the documents that encoding/json accepts, with the same values.
func TestJSONSource_AgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	parts := []string{
		"{", "}", "[", "]", ",", ":", `"a"`, `"b\n"`, `"\u00e9"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\x"`, `"é`, `"`, "0", "-1.5e3", "01", "1.", "true",
		"null", "nil", " ", "\n", `"k":`, `"k":1,`, `{"a":[1,{"b":null}]}`,
	}
	d := rand.New(rand.NewPCG(3, 4))
	valid := 0
	for range 60_000 {
		var b strings.Builder
		b.WriteString(`{"k":`)
		for range d.IntN(5) {
			b.WriteString(parts[d.IntN(len(parts))])
		}
		b.WriteString(`}`)
		text := []byte(b.String())
		if !utf8.Valid(text) {
			continue
		}
		got, ok := readAll(text)
		want, wantOK := decodeAll(text)
		if ok != wantOK || ok && strings.Join(got, "\x00") != strings.Join(want, "\x00") {
			t.Fatalf("%q: valid %v with %q, want %v with %q", text, ok, got, wantOK, want)
		}
		if ok {
			valid++
		}
	}
	if valid < 1000 {
		t.Errorf("%d documents were valid: the generator tests too little", valid)
	}
}
